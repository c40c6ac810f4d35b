//! What the ledger holds, as it was read for one scrape. Every replica exports the same, so queries take
//! the `max by (…)` of it.

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, IntGaugeVec, Opts};

use super::MetricsError;
use crate::domain::flag::FlagKind;
use crate::domain::money::{AmountMinor, Currency};

/// Whose cap it is.
#[derive(Clone, Copy, Debug)]
pub struct CapLabels<'a> {
    /// The vault key's id, or `other`.
    pub vault_key: &'a str,
    /// Its billing period, or `other`.
    pub billing_period: &'a str,
    /// In which currency.
    pub currency: Currency,
}

/// A cap and what is used of it, in minor units.
#[derive(Clone, Copy, Debug)]
pub struct CapAmounts {
    /// What is expected to be billed.
    pub expected_total: AmountMinor,
    /// The cap.
    pub max_amount: AmountMinor,
    /// What Stripe took.
    pub settled: AmountMinor,
    /// Reserved for what was sent and has no answer yet.
    pub in_flight: AmountMinor,
    /// Reserved for objects that exist and whose money may still move.
    pub open: AmountMinor,
    /// Reserved for what has an unknown outcome.
    pub held: AmountMinor,
}

/// The ledger's gauges.
#[derive(Debug)]
pub struct LedgerGauges {
    expected_total: IntGaugeVec,
    max_amount: IntGaugeVec,
    settled: IntGaugeVec,
    reserved: IntGaugeVec,
    flags_open: IntGaugeVec,
    held_reservations: IntGauge,
    oldest_held: IntGauge,
    takes_money: bool,
}

const CAP: [&str; 3] = ["vault_key", "billing_period", "currency"];
const RESERVED: [&str; 4] = ["vault_key", "billing_period", "currency", "state"];

impl LedgerGauges {
    /// No cap, no flag of any kind, nothing held.
    pub fn empty() -> Result<Self, MetricsError> {
        let flags_open = gauges(
            "spendcap_flags_open",
            "Flags that nobody acknowledged, by kind.",
            &["kind"],
        )?;
        for kind in FlagKind::ALL {
            flags_open.with_label_values(&[kind.as_str()]).set(0);
        }
        Ok(Self {
            expected_total: gauges(
                "spendcap_expected_total_minor",
                "What a vault key is expected to bill, in minor units.",
                &CAP,
            )?,
            max_amount: gauges(
                "spendcap_max_amount_minor",
                "The cap of a vault key, in minor units.",
                &CAP,
            )?,
            settled: gauges(
                "spendcap_settled_minor",
                "What Stripe took under a vault key, in minor units.",
                &CAP,
            )?,
            reserved: gauges(
                "spendcap_reserved_minor",
                "What is reserved under a vault key and may still move, in minor units, by state.",
                &RESERVED,
            )?,
            flags_open,
            held_reservations: IntGauge::new(
                "spendcap_held_reservations",
                "Reservations whose outcome is unknown.",
            )?,
            oldest_held: IntGauge::new(
                "spendcap_oldest_held_seconds",
                "Age of the oldest unproven send among them; 0 where there is none.",
            )?,
            takes_money: true,
        })
    }

    /// Commits may be lost: the ledger takes no money.
    pub fn takes_no_money(&mut self) {
        self.takes_money = false;
    }

    pub(super) fn takes_money(&self) -> bool {
        self.takes_money
    }

    /// Adds a cap.
    pub fn cap(&self, labels: CapLabels<'_>, amounts: &CapAmounts) {
        let CapLabels {
            vault_key,
            billing_period,
            currency,
        } = labels;
        let of_the_cap = [vault_key, billing_period, currency.as_str()];
        for (gauge, amount) in [
            (&self.expected_total, amounts.expected_total),
            (&self.max_amount, amounts.max_amount),
            (&self.settled, amounts.settled),
        ] {
            gauge.with_label_values(&of_the_cap).set(amount.get());
        }
        for (state, amount) in [
            ("in_flight", amounts.in_flight),
            ("open", amounts.open),
            ("held", amounts.held),
        ] {
            let [vault_key, billing_period, currency] = of_the_cap;
            let labels = [vault_key, billing_period, currency, state];
            self.reserved.with_label_values(&labels).set(amount.get());
        }
    }

    /// So many flags of this kind that nobody acknowledged.
    pub fn flags(&self, kind: FlagKind, count: i64) {
        self.flags_open
            .with_label_values(&[kind.as_str()])
            .set(count);
    }

    /// So many rows are held, the oldest for so long.
    pub fn held(&self, count: i64, oldest_seconds: i64) {
        self.held_reservations.set(count);
        self.oldest_held.set(oldest_seconds);
    }

    pub(super) fn families(&self) -> Vec<MetricFamily> {
        let all: [&dyn Collector; 7] = [
            &self.expected_total,
            &self.max_amount,
            &self.settled,
            &self.reserved,
            &self.flags_open,
            &self.held_reservations,
            &self.oldest_held,
        ];
        let mut families: Vec<_> = all.iter().flat_map(|metric| metric.collect()).collect();
        // A family without a metric is no text that Prometheus takes.
        families.retain(|family| !family.get_metric().is_empty());
        families
    }
}

fn gauges(name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, MetricsError> {
    Ok(IntGaugeVec::new(Opts::new(name, help), labels)?)
}
