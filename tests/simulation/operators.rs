//! Operators: they raise and lower caps, revoke, and say what became of a charge once they know.

use std::sync::Arc;

use super::fleet::{Fleet, usd, vault_key_id};
use crate::domain::id::ReservationId;
use crate::domain::money::AmountMinor;
use crate::domain::reservation::{Reservation, State};
use crate::ledger::command::{Control, ControlRequest, Resolution};

/// Goes on until the world is calm.
pub(super) async fn work(fleet: Arc<Fleet>) {
    while !fleet.world.is_calm() {
        fleet.world.pause(2_000, 60_000).await;
        match fleet.world.below(10) {
            0 => cap(&fleet, fleet.scenario.max_amount * 2).await,
            1 => cap(&fleet, fleet.scenario.max_amount / 2).await,
            2 if fleet.world.chance(200) => {
                let id = vault_key_id(0);
                let reason = "leaked".to_owned();
                command(&fleet, Control::Revoke { id, reason }).await;
            }
            _ => resolve_what_is_known(&fleet).await,
        }
    }
}

async fn cap(fleet: &Fleet, total: i64) {
    let control = Control::UpdateKey {
        id: vault_key_id(0),
        expected_totals: vec![(usd(), AmountMinor::new(total).unwrap())],
        headroom: None,
        resume: false,
        reason: "INC-1".to_owned(),
    };
    command(fleet, control).await;
}

/// Looks every held reservation up at Stripe, and says what is certain.
pub(super) async fn resolve_what_is_known(fleet: &Fleet) {
    for id in fleet.database.in_state(State::Held) {
        let replica = fleet.world.pick(&fleet.replicas);
        let Some((life, ledger)) = replica.ledger() else {
            continue;
        };
        let found = life.run(async move { ledger.reads().reservation(id).await.ok().flatten() });
        let Some(row) = found.await.flatten() else {
            continue;
        };
        if let Some(resolution) = truth(fleet, &row) {
            let control = Control::Resolve {
                reservation: Box::new(row),
                resolution,
                reason: "seen in the dashboard".to_owned(),
            };
            command(fleet, control).await;
        }
    }
}

/// An operator cannot say that an authorisation is open, so it is voided in the dashboard.
pub(super) fn give_up_what_is_open(fleet: &Fleet) {
    for id in fleet.database.in_state(State::Held) {
        let key = fleet.database.upstream_key(id);
        let truth = fleet.witness.ask(|auditor| auditor.truth_of(id.0, &key));
        if let Ok(Some(charge)) = truth {
            fleet.stripe.void(&charge.id);
        }
    }
}

/// What the dashboard shows; `None` while nobody can know yet, or while it may still move.
fn truth(fleet: &Fleet, row: &Reservation) -> Option<Resolution> {
    let key = &row.send.upstream_key;
    let truth = fleet.witness.ask(|auditor| auditor.truth_of(row.id.0, key));
    match truth.ok()? {
        None => Some(Resolution::Released),
        Some(charge) if charge.voided => Some(Resolution::Released),
        Some(charge) => Some(Resolution::Settled {
            amount: AmountMinor::new(charge.captured?)?,
            object_id: charge.id,
        }),
    }
}

async fn command(fleet: &Fleet, control: Control) {
    let replica = fleet.world.pick(&fleet.replicas);
    let Some((life, ledger)) = replica.ledger() else {
        return;
    };
    let what = match &control {
        Control::Resolve {
            reservation,
            resolution,
            ..
        } => format!("row {} {resolution:?}", reservation.id.0),
        other => format!("{other:?}"),
    };
    let request = ControlRequest {
        control,
        actor: "operator".to_owned(),
        idempotency: None,
    };
    let done = life.run(async move { ledger.control(request).await }).await;
    let done = done.map(|done| done.map(|done| done.map(|done| done.replayed)));
    fleet.world.say(format_args!("operator: {what}: {done:?}"));
}

/// The reservations that are still unknown.
pub(super) fn unknown(fleet: &Fleet) -> Vec<ReservationId> {
    let mut ids = fleet.database.in_state(State::Held);
    ids.extend(fleet.database.in_state(State::InFlight));
    ids
}
