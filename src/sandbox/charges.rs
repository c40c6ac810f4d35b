//! `POST /v1/charges` and the charge object (contract §1.3).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::Scene;
use super::balance;
use super::cards::{self, Decline, Verdict};
use super::customers;
use super::errors::ApiError;
use super::events;
use super::expand::Expand;
use super::form::Param;
use super::money;
use super::params::{self, Params};
use super::reply::Reply;
use super::shelf::{PageQuery, Shelved, list_object};

/// Everything `POST /v1/charges` takes.
const CREATE_PARAMS: [&str; 20] = [
    "amount",
    "application_fee",
    "application_fee_amount",
    "capture",
    "card",
    "currency",
    "customer",
    "description",
    "destination",
    "expand",
    "metadata",
    "on_behalf_of",
    "radar_options",
    "receipt_email",
    "shipping",
    "source",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
    "transfer_group",
];

/// A charge. Amounts are in the currency's minor unit, times in unix seconds.
#[derive(Debug, Clone)]
pub(crate) struct Charge {
    pub(crate) id: String,
    pub(crate) amount: i64,
    pub(crate) amount_captured: i64,
    pub(crate) amount_refunded: i64,
    pub(crate) balance_transaction: Option<String>,
    pub(crate) captured: bool,
    pub(crate) created: i64,
    pub(crate) currency: String,
    pub(crate) customer: Option<String>,
    pub(crate) livemode: bool,
    pub(crate) source: Option<String>,
    pub(crate) status: ChargeStatus,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) details: ChargeDetails,
}

/// What a charge carries and nobody decides on.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChargeDetails {
    pub(crate) description: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) receipt_email: Option<String>,
    pub(crate) statement_descriptor: Option<String>,
    pub(crate) statement_descriptor_suffix: Option<String>,
    pub(crate) transfer_group: Option<String>,
}

/// Whether the payment came off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChargeStatus {
    Succeeded,
    Pending,
    Failed(Decline),
}

impl Charge {
    /// Whether the charge exists for money's sake: everything but a declined one.
    pub(crate) fn is_made(&self) -> bool {
        !matches!(self.status, ChargeStatus::Failed(_))
    }

    pub(crate) fn is_refunded(&self) -> bool {
        let taken = if self.captured {
            self.amount_captured
        } else {
            self.amount
        };
        let returned_by_capture = if self.captured {
            self.amount - taken
        } else {
            0
        };
        self.is_made() && taken > 0 && self.amount_refunded - returned_by_capture >= taken
    }
}

impl Shelved for Arc<Charge> {
    fn id(&self) -> &str {
        &self.id
    }

    fn created(&self) -> i64 {
        self.created
    }
}

/// A charge request whose parameters are well formed.
#[derive(Debug)]
pub(crate) struct NewCharge {
    amount: i64,
    currency: String,
    customer: Option<String>,
    source: Option<Param>,
    capture: bool,
    details: ChargeDetails,
    expand: Expand,
}

impl NewCharge {
    /// Reads the parameters. A failure here binds no idempotency key.
    pub(crate) fn read(params: &Params) -> Result<Self, ApiError> {
        params.only(&CREATE_PARAMS)?;
        let amount = params
            .integer("amount")?
            .ok_or_else(|| params::missing("amount"))?;
        let currency = params
            .text("currency")?
            .ok_or_else(|| params::missing("currency"))?;
        let currency = money::currency(currency)?;
        money::check_amount(amount, &currency)?;
        let customer = params.text("customer")?.map(str::to_owned);
        let source = params
            .0
            .get("source")
            .or_else(|| params.0.get("card"))
            .cloned();
        if customer.is_none() && source.is_none() {
            let error = ApiError::invalid("Must provide source or customer.");
            return Err(error.code("parameter_missing"));
        }
        let details = ChargeDetails {
            description: params.free_text("description")?,
            metadata: params.metadata()?,
            receipt_email: params.free_text("receipt_email")?,
            statement_descriptor: params.free_text("statement_descriptor")?,
            statement_descriptor_suffix: params.free_text("statement_descriptor_suffix")?,
            transfer_group: params.free_text("transfer_group")?,
        };
        let capture = params.boolean("capture")?.unwrap_or(true);
        let expand = Expand::read(params, "")?;
        Ok(Self {
            amount,
            currency,
            customer,
            source,
            capture,
            details,
            expand,
        })
    }

    /// Charges the card. `decline` overrules the test cards.
    pub(crate) fn execute(
        self,
        scene: &Scene<'_>,
        decline: Option<Decline>,
    ) -> Result<Reply, ApiError> {
        let verdict = match decline {
            Some(decline) => Verdict::Declined(decline),
            None => cards::judge(self.source.as_ref(), self.customer.as_deref())?,
        };
        if let Some(customer) = &self.customer {
            customers::ensure(scene, customer)?;
        }
        let expand = self.expand;
        let mut charge = self.into_charge(scene, verdict);
        let mut books = scene.account.books();
        let kind = match charge.status {
            ChargeStatus::Succeeded => "charge.succeeded",
            ChargeStatus::Pending => "charge.pending",
            ChargeStatus::Failed(_) => "charge.failed",
        };
        if charge.amount_captured > 0 {
            balance::collect(scene, &mut books, &mut charge);
        }
        let charge = Arc::new(charge);
        books.charges.push(Arc::clone(&charge));
        events::record(scene, &mut books, kind, Arc::clone(&charge));
        match charge.status {
            ChargeStatus::Failed(decline) => Err(ApiError::declined(decline, Some(&charge.id))),
            _ => Ok(expand.reply(&books, charge)),
        }
    }

    fn into_charge(self, scene: &Scene<'_>, verdict: Verdict) -> Charge {
        let status = match verdict {
            Verdict::Succeeds => ChargeStatus::Succeeded,
            Verdict::Waits => ChargeStatus::Pending,
            Verdict::Declined(decline) => ChargeStatus::Failed(decline),
        };
        let source = match self.source {
            Some(Param::Text(id)) => Some(id),
            _ => self.customer.as_deref().map(customers::payment_method_of),
        };
        let paid = status == ChargeStatus::Succeeded && self.capture;
        Charge {
            id: scene.world.ids.next("ch_"),
            amount: self.amount,
            amount_captured: if paid { self.amount } else { 0 },
            amount_refunded: 0,
            balance_transaction: None,
            captured: self.capture && !matches!(verdict, Verdict::Declined(_)),
            created: scene.now,
            currency: self.currency,
            customer: self.customer,
            livemode: scene.world.livemode(),
            source,
            status,
            idempotency_key: scene
                .origin
                .as_ref()
                .and_then(|from| from.idempotency_key.clone()),
            details: self.details,
        }
    }
}

/// `GET /v1/charges/{id}`.
pub(crate) fn get(scene: &Scene<'_>, id: &str, params: &Params) -> Result<Reply, ApiError> {
    params.only(&["expand"])?;
    let expand = Expand::read(params, "")?;
    let books = scene.account.books();
    let charge = books.charges.get(id).cloned();
    let charge = charge.ok_or_else(|| ApiError::missing("charge", id, "id"))?;
    Ok(expand.reply(&books, charge))
}

/// `GET /v1/charges`.
pub(crate) fn list(scene: &Scene<'_>, params: &Params) -> Result<Reply, ApiError> {
    let mut known = PageQuery::PARAMS.to_vec();
    known.extend(["customer", "transfer_group", "payment_intent"]);
    params.only(&known)?;
    let query = PageQuery::read(params)?;
    let customer = params.text("customer")?;
    let group = params.text("transfer_group")?;
    let intent = params.text("payment_intent")?;
    let expand = Expand::read(params, "data.")?;
    let books = scene.account.books();
    let (page, has_more) = books.charges.page(&query, |charge| {
        intent.is_none()
            && (customer.is_none() || charge.customer.as_deref() == customer)
            && (group.is_none() || charge.details.transfer_group.as_deref() == group)
    })?;
    let data = page
        .iter()
        .map(|charge| expand.render(&books, charge))
        .collect();
    Ok(Reply::ok(&list_object("/v1/charges", data, has_more)))
}
