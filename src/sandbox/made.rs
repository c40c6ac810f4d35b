//! The charges really made: the truth that tests and the demo count by.

use serde::{Deserialize, Serialize};

use super::charges::{Charge, ChargeStatus};
use super::world::World;

/// One charge that exists: collected, authorised or pending, never a declined one. Amounts are in
/// the currency's minor unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeCharge {
    pub id: String,
    pub account: String,
    pub customer: Option<String>,
    pub amount: i64,
    pub currency: String,
    pub captured: bool,
    pub amount_captured: i64,
    pub amount_refunded: i64,
    /// Whether all of it went back.
    pub refunded: bool,
    pub pending: bool,
    pub idempotency_key: Option<String>,
    /// Unix seconds.
    pub created: i64,
}

/// Every charge made on any account, oldest first within an account.
pub(crate) fn list(world: &World) -> Vec<MadeCharge> {
    let mut made = Vec::new();
    for account in world.accounts() {
        let books = account.books();
        let charges = books.charges.iter().filter(|charge| charge.is_made());
        made.extend(charges.map(|charge| describe(&account.id, charge)));
    }
    made
}

fn describe(account: &str, charge: &Charge) -> MadeCharge {
    MadeCharge {
        id: charge.id.clone(),
        account: account.to_owned(),
        customer: charge.customer.clone(),
        amount: charge.amount,
        currency: charge.currency.clone(),
        captured: charge.captured,
        amount_captured: charge.amount_captured,
        amount_refunded: charge.amount_refunded,
        refunded: charge.is_refunded(),
        pending: charge.status == ChargeStatus::Pending,
        idempotency_key: charge.idempotency_key.clone(),
        created: charge.created,
    }
}
