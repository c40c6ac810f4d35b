//! What the small Stripe's answers prove.

use super::stripe::{Charge, Reply};
use super::*;

pub(super) fn charge_outcome(charge: &Charge) -> Outcome {
    let object_id = charge.id.clone();
    match charge.captured {
        Some(amount) => Outcome::Settled {
            object_id,
            amount: minor(amount),
        },
        None if charge.voided => Outcome::Dead { object_id },
        None => Outcome::Open {
            object_id,
            ceiling: minor(charge.amount),
        },
    }
}

pub(super) fn create_outcome(reply: Reply) -> Outcome {
    match reply {
        Reply::Charge(charge) => charge_outcome(&charge),
        Reply::Declined | Reply::Refused { replayed: true } => Outcome::StoredRefusal,
        Reply::Refused { replayed: false } => Outcome::RefusedThisSend,
        Reply::Broken => Outcome::Unknown,
    }
}

/// A refused capture says nothing of earlier ones, so the proxy reads the charge.
pub(super) fn capture_outcome(reply: Reply, charge: &Charge) -> Outcome {
    match (reply, charge.captured) {
        (Reply::Charge(charge), _) => charge_outcome(&charge),
        (Reply::Broken, _) => Outcome::Unknown,
        (_, None) if !charge.voided => Outcome::RefusedThisSend,
        _ => charge_outcome(charge),
    }
}
