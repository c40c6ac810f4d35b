//! What an operator says became of a reservation, held against what Stripe says: a slip of the hand would
//! stop a vault key or free money that moved.

use super::super::AdminState;
use super::super::error::AdminError;
use crate::domain::outcome::Outcome;
use crate::domain::reservation::{Reservation, State};
use crate::ledger::command::Resolution;
use crate::stripe::answer::ChargeFacts;
use crate::stripe::read;

/// Reads the object that the resolution is about and refuses what it contradicts. A release of a row
/// whose object nobody knows has nothing to be held against.
pub(super) async fn check(
    state: &AdminState,
    row: &Reservation,
    resolution: &Resolution,
) -> Result<(), AdminError> {
    let resolvable = match resolution {
        Resolution::Settled { .. } => !matches!(row.state, State::InFlight | State::Settled),
        Resolution::Released => !matches!(
            row.state,
            State::InFlight | State::Settled | State::Released
        ),
    };
    if !resolvable {
        // The ledger says why.
        return Ok(());
    }
    let object_id = match (resolution, &row.object_id) {
        (Resolution::Settled { object_id, .. }, _) | (Resolution::Released, Some(object_id)) => {
            object_id
        }
        (Resolution::Released, None) => return Ok(()),
    };
    let owner = state.ledger.reads().object_owner(&row.account, object_id);
    let owner = owner.await?.filter(|owner| owner.state != State::Released);
    if let Some(owner) = owner.filter(|owner| owner.id != row.id) {
        let says = format!("{object_id} is the object of {}", owner.id);
        return Err(AdminError::EvidenceContradicts(says));
    }
    let found = read::charge(&*state.stripe, &row.account, object_id).await;
    let facts = found.map_err(|error| AdminError::EvidenceUnread {
        object_id: object_id.clone(),
        error,
    })?;
    contradiction(row, resolution, &facts)
        .map_or(Ok(()), |says| Err(AdminError::EvidenceContradicts(says)))
}

/// What the charge says against the resolution, if anything.
fn contradiction(
    row: &Reservation,
    resolution: &Resolution,
    facts: &ChargeFacts,
) -> Option<String> {
    let id = &facts.id;
    if facts.currency != row.currency {
        return Some(format!(
            "{id} is in {}, not {}",
            facts.currency, row.currency
        ));
    }
    if row.customer.is_some() && facts.customer != row.customer {
        let whose = facts.customer.as_deref().unwrap_or("no customer");
        return Some(format!("{id} is of {whose}"));
    }
    match (resolution, facts.outcome()) {
        (Resolution::Settled { amount, .. }, Outcome::Settled { amount: moved, .. }) => {
            (moved != *amount).then(|| format!("{id} moved {moved}, not {amount}"))
        }
        (Resolution::Released, Outcome::Settled { amount, .. }) => {
            Some(format!("{id} moved {amount}"))
        }
        (_, Outcome::Open { .. }) => Some(format!(
            "{id} is neither captured nor given up: its money may still move"
        )),
        (Resolution::Settled { .. }, _) => Some(format!("{id} moved nothing")),
        (Resolution::Released, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::tests::held;
    use crate::domain::money::AmountMinor;
    use crate::stripe::answer::charge_facts;

    fn facts(more: &str) -> ChargeFacts {
        let body = format!(
            r#"{{"object":"charge","id":"ch_1","amount":100,"amount_captured":100,{more}}}"#
        );
        charge_facts(body.as_bytes()).unwrap()
    }

    #[test]
    fn the_charge_is_believed_and_not_the_operator() {
        let settled = Resolution::Settled {
            amount: AmountMinor::new(100).unwrap(),
            object_id: "ch_1".to_owned(),
        };
        let released = Resolution::Released;
        let paid = r#""currency":"usd","customer":"cus_1","captured":true,"status":"succeeded""#;
        let open = r#""currency":"usd","customer":"cus_1","captured":false,"status":"succeeded""#;
        let dead = r#""currency":"usd","customer":"cus_1","captured":false,"status":"failed""#;
        for (resolution, more, says) in [
            (&settled, paid.to_owned(), None),
            (&settled, paid.replace("usd", "eur"), Some("ch_1 is in eur")),
            (&settled, paid.replace("cus_1", "cus_2"), Some("of cus_2")),
            (
                &settled,
                paid.replace(r#""cus_1""#, "null"),
                Some("of no customer"),
            ),
            (&settled, open.to_owned(), Some("may still move")),
            (&settled, dead.to_owned(), Some("moved nothing")),
            (&released, paid.to_owned(), Some("moved 100")),
            (&released, open.to_owned(), Some("may still move")),
            (&released, dead.to_owned(), None),
        ] {
            let said = contradiction(&held(), resolution, &facts(&more));
            match says {
                Some(says) => assert!(said.as_ref().unwrap().contains(says), "{said:?}"),
                None => assert_eq!(said, None, "{more}"),
            }
        }
        let less = Resolution::Settled {
            amount: AmountMinor::new(99).unwrap(),
            object_id: "ch_1".to_owned(),
        };
        let said = contradiction(&held(), &less, &facts(paid));
        assert_eq!(said.as_deref(), Some("ch_1 moved 100, not 99"));
    }
}
