//! A charge.

use std::collections::BTreeMap;

use crate::simulation::auditor;
use crate::simulation::database::START;

#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) amount: i64,
    pub(super) voided: bool,
    made_by: Option<u64>,
    slot: String,
    customer: Option<String>,
    captured: Option<i64>,
    made_at_ms: i64,
}

/// It cannot be captured, or not so much of it.
pub(super) struct Refusal;

impl Charge {
    pub(super) fn made(
        number: usize,
        made_by: u64,
        made_at_ms: i64,
        form: &BTreeMap<String, String>,
    ) -> Self {
        let amount = form.get("amount").unwrap().parse().unwrap();
        let at_once = form.get("capture").is_none_or(|capture| capture == "true");
        Self {
            id: format!("ch_{number}"),
            amount,
            voided: false,
            made_by: Some(made_by),
            slot: form.get("metadata[slot]").cloned().unwrap_or_default(),
            customer: form.get("customer").cloned(),
            captured: at_once.then_some(amount),
            made_at_ms,
        }
    }

    pub(super) fn elsewhere(number: usize, made_at_ms: i64, amount: i64) -> Self {
        Self {
            id: format!("ch_{number}"),
            amount,
            voided: false,
            made_by: None,
            slot: String::new(),
            customer: Some("cus_elsewhere".to_owned()),
            captured: None,
            made_at_ms,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.captured.is_none() && !self.voided
    }

    pub(super) fn capture(&mut self, amount: Option<i64>) -> Result<(), Refusal> {
        let amount = amount.unwrap_or(self.amount);
        if !self.is_open() || amount > self.amount {
            return Err(Refusal);
        }
        self.captured = Some(amount);
        Ok(())
    }

    pub(super) fn json(&self) -> String {
        serde_json::json!({
            "id": self.id,
            "object": "charge",
            "amount": self.amount,
            "amount_captured": self.captured.unwrap_or(0),
            "captured": self.captured.is_some(),
            "created": START.plus_ms(self.made_at_ms).unix_seconds(),
            "currency": "usd",
            "customer": self.customer,
            "refunded": self.voided,
            "status": "succeeded",
        })
        .to_string()
    }

    pub(super) fn plain(&self) -> auditor::Charge {
        auditor::Charge {
            made_at_ms: self.made_at_ms,
            id: self.id.clone(),
            made_by: self.made_by,
            slot: self.slot.clone(),
            amount: self.amount,
            captured: self.captured,
            voided: self.voided,
        }
    }
}
