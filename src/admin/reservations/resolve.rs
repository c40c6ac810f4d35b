//! What an operator found out about a reservation.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::json::Fields;
use super::super::param;
use crate::admin::error::BadParameter;
use crate::domain::money::AmountMinor;
use crate::domain::reservation::State;
use crate::ledger::command::Resolution;

/// What became of a reservation.
#[derive(Debug, ToSchema)]
pub(crate) struct ReservationResolve {
    /// `settled`: the money moved. `released`: it did not, and will not.
    #[schema(value_type = String, example = "settled")]
    state: State,
    /// How much moved, in minor units; with `settled` only.
    #[schema(value_type = i64, required = false, minimum = 0, example = 9900)]
    amount: Option<AmountMinor>,
    /// The Stripe object that shows it; with `settled` only.
    #[schema(nullable = false, example = "ch_3NqK2e")]
    object_id: Option<String>,
    /// Take the operator's word: Stripe is not asked. By default the object is read first, and what it
    /// contradicts is refused.
    #[schema(value_type = bool, required = false)]
    pub(super) unread: bool,
    /// The reservation's `sends` when you looked: refused where it was sent again since. Without it, what
    /// it has when the command arrives.
    #[schema(value_type = u32, required = false, example = 1)]
    pub(super) sends: Option<u32>,
    /// Why, and on what evidence: 1 to 500 characters, for the audit log.
    #[schema(min_length = 1, max_length = 500)]
    pub(super) reason: String,
}

impl ReservationResolve {
    pub(crate) const FIELDS: [&str; 6] =
        ["state", "amount", "object_id", "unread", "sends", "reason"];

    pub(super) fn read(fields: Map<String, Value>) -> Result<Self, BadParameter> {
        let mut fields = Fields::new(fields, &Self::FIELDS)?;
        Ok(Self {
            state: fields.required("state", resolved_state)?,
            amount: fields.optional("amount", param::amount)?,
            object_id: fields.optional("object_id", param::object_id)?,
            unread: fields.optional("unread", param::boolean)?.unwrap_or(false),
            sends: fields.optional("sends", sends)?,
            reason: fields.required("reason", param::reason)?,
        })
    }

    /// Settled has its evidence, released has none.
    pub(super) fn resolution(&self) -> Result<Resolution, BadParameter> {
        match (self.state, self.amount, self.object_id.clone()) {
            (State::Settled, Some(amount), Some(object_id)) => {
                Ok(Resolution::Settled { amount, object_id })
            }
            (State::Settled, None, _) => Err(param::missing("amount")),
            (State::Settled, _, None) => Err(param::missing("object_id")),
            (_, None, None) => Ok(Resolution::Released),
            (_, Some(_), _) => Err(only_settled("amount")),
            (_, _, Some(_)) => Err(only_settled("object_id")),
        }
    }
}

fn resolved_state(param: &str, value: &Value) -> Result<State, BadParameter> {
    let known = [State::Settled, State::Released];
    let parse = |name: &str| State::parse(name).filter(|state| known.contains(state));
    param::choice(param, value, parse, &known.map(State::as_str))
}

fn sends(param: &str, value: &Value) -> Result<u32, BadParameter> {
    let sends = param::integer(param, value, i64::from(u32::MAX))?;
    Ok(u32::try_from(sends).unwrap_or(u32::MAX))
}

fn only_settled(param: &str) -> BadParameter {
    let message = format!("{param} goes with the state settled; released means that nothing moved");
    param::exclusive(param, &message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<Resolution, BadParameter> {
        let Value::Object(fields) = body else {
            panic!("an object");
        };
        ReservationResolve::read(fields)?.resolution()
    }

    #[test]
    fn settled_has_its_evidence_and_released_has_none() {
        let settled =
            json!({"state": "settled", "amount": 9900, "object_id": "ch_1", "reason": "seen"});
        let (amount, object_id) = (AmountMinor::new(9900).unwrap(), "ch_1".to_owned());
        let resolution = read(settled).unwrap();
        assert_eq!(resolution, Resolution::Settled { amount, object_id });
        let released = read(json!({"state": "released", "reason": "not in the feed"})).unwrap();
        assert_eq!(released, Resolution::Released);
    }

    #[test]
    fn anything_else_names_the_parameter() {
        for (body, param) in [
            (json!({"reason": "x"}), "state"),
            (json!({"state": "held", "reason": "x"}), "state"),
            (
                json!({"state": "settled", "object_id": "ch_1", "reason": "x"}),
                "amount",
            ),
            (
                json!({"state": "settled", "amount": 1, "reason": "x"}),
                "object_id",
            ),
            (
                json!({"state": "settled", "amount": "1", "object_id": "ch_1", "reason": "x"}),
                "amount",
            ),
            (
                json!({"state": "settled", "amount": 1, "object_id": "", "reason": "x"}),
                "object_id",
            ),
            (
                json!({"state": "released", "amount": 0, "reason": "x"}),
                "amount",
            ),
            (
                json!({"state": "released", "object_id": "ch_1", "reason": "x"}),
                "object_id",
            ),
            (json!({"state": "released"}), "reason"),
            (
                json!({"state": "released", "sends": -1, "reason": "x"}),
                "sends",
            ),
            (
                json!({"state": "released", "reason": "x", "note": 1}),
                "note",
            ),
        ] {
            assert_eq!(
                read(body.clone()).unwrap_err().param.as_deref(),
                Some(param),
                "{body}"
            );
        }
    }
}
