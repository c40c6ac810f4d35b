//! The auditor: looks at the rows and at the small Stripe, and knows nothing of how either came to be.

use super::history::History;
use super::stripe::{Call, Charge};
use super::*;

/// What each vault key used before a step.
pub(super) fn usage(history: &History) -> BTreeMap<VaultKeyId, i64> {
    let used = |key: &VaultKey| {
        let caps = key.caps.iter();
        caps.map(|cap| cap.reserved.get() + cap.settled.get()).sum()
    };
    let keys = history.store.keys.values();
    keys.map(|key| (key.id.clone(), used(key))).collect()
}

/// Checks everything that must hold after every step.
pub(super) fn audit(history: &History, before: &BTreeMap<VaultKeyId, i64>) {
    caps_are_sums_and_hold(history, before);
    what_may_move_is_reserved(history);
    let kinds = [
        FlagKind::LateSettlement,
        FlagKind::DoubleCharge,
        FlagKind::SettledAboveReserved,
    ];
    for kind in kinds {
        assert!(
            !history.store.has_flag(kind),
            "{kind:?} cannot come of true answers"
        );
    }
}

fn caps_are_sums_and_hold(history: &History, before: &BTreeMap<VaultKeyId, i64>) {
    let used_now = usage(history);
    for key in history.store.keys.values() {
        let mut sums = (0, 0);
        for row in history
            .store
            .rows
            .values()
            .filter(|row| row.vault_key == key.id)
        {
            sums.0 += row.amount_reserved.get();
            sums.1 += row.amount_settled.get();
            let counts = matches!(row.state, State::InFlight | State::Open | State::Held);
            assert!(counts || row.amount_reserved.is_zero(), "{row:?}");
        }
        let cap = &key.caps[0];
        assert_eq!((cap.reserved.get(), cap.settled.get()), sums, "{}", key.id);
        let over = used_now[&key.id] > cap.max_amount.get();
        if over && key.enforcement == Enforcement::Enforce {
            assert!(
                used_now[&key.id] <= before[&key.id],
                "new spend above the cap of {}",
                key.id
            );
        }
    }
}

/// Each charge, and each send that may still make or capture one, is covered by the rows it belongs to.
fn what_may_move_is_reserved(history: &History) {
    for charge in history
        .stripe
        .charges
        .iter()
        .filter(|charge| charge.is_live())
    {
        if let Some(amount) = exposure(charge) {
            let covered = cover(history, charge);
            assert!(covered >= amount, "{charge:?} is covered by {covered} only");
        }
    }
    for sent in history
        .sends
        .iter()
        .filter(|sent| history.may_still_run(sent))
    {
        let (covered, amount) = match &sent.call {
            Call::Create { amount, .. } => {
                let row = &history.store.rows[&sent.row.id];
                (
                    row.amount_reserved.get() + row.amount_settled.get(),
                    *amount,
                )
            }
            Call::Capture { charge, amount } => {
                let charge = history.stripe.charge(charge).unwrap();
                if charge.captured.is_some() || charge.voided {
                    continue;
                }
                (cover(history, charge), *amount)
            }
        };
        assert!(
            covered >= amount,
            "{:?} may run, covered by {covered} only",
            sent.call
        );
    }
}

/// What a charge took, or may take by itself: one made past the proxy only counts once it is captured.
fn exposure(charge: &Charge) -> Option<i64> {
    match (charge.captured, charge.made_by) {
        (Some(captured), _) => Some(captured),
        (None, Some(_)) => Some(charge.amount),
        (None, None) => None,
    }
}

fn cover(history: &History, charge: &Charge) -> i64 {
    let belongs = |row: &&Reservation| match &row.object_id {
        Some(object_id) => *object_id == charge.id,
        None => charge.made_by == Some(row.id.0),
    };
    let rows = history.store.rows.values().filter(belongs);
    rows.map(|row| row.amount_reserved.get() + row.amount_settled.get())
        .sum()
}

/// How many charges took money, or may, for one customer, and one amount where it is given.
fn live_charges(history: &History, customer: &str, amount: Option<i64>) -> usize {
    let charges = history.stripe.charges.iter().filter(|charge| {
        charge.is_live()
            && charge.made_by.is_some()
            && charge.customer == customer
            && amount.is_none_or(|amount| charge.amount == amount)
    });
    charges.count()
}

/// One charge for one idempotency key, for as long as the ledger lasts and not only Stripe's 24 hours.
pub(super) fn one_charge_per_key(history: &History) {
    let live = || {
        history
            .stripe
            .charges
            .iter()
            .filter(|charge| charge.is_live())
    };
    for charge in live() {
        let twins = live().filter(|other| other.key == charge.key).count();
        assert_eq!(twins, 1, "one key charged twice: {charge:?}");
    }
}

/// One charge for one customer and amount.
pub(super) fn one_charge_per_intent(history: &History) {
    one_charge_per_key(history);
    for charge in &history.stripe.charges {
        let count = live_charges(history, &charge.customer, Some(charge.amount));
        assert!(count <= 1, "{count} charges for one intent: {charge:?}");
    }
}

/// One charge for one customer.
pub(super) fn one_charge_per_slot(history: &History) {
    one_charge_per_key(history);
    for charge in &history.stripe.charges {
        let count = live_charges(history, &charge.customer, None);
        assert!(count <= 1, "{count} charges in one slot: {charge:?}");
    }
}

/// After everything arrived: nothing is unknown, and the books say what Stripe took.
pub(super) fn at_rest(history: &History) {
    for row in history.store.rows.values() {
        let unknown = matches!(row.state, State::InFlight | State::Held);
        assert!(!unknown, "still unknown: {row:?}");
    }
    let settled: i64 = history
        .store
        .rows
        .values()
        .map(|row| row.amount_settled.get())
        .sum();
    let taken: i64 = history
        .stripe
        .charges
        .iter()
        .filter_map(|charge| charge.captured)
        .sum();
    assert_eq!(settled, taken, "settled against what Stripe took");
    for charge in &history.stripe.charges {
        let owners = history.store.rows.values().filter(|row| {
            row.state != State::Released && row.object_id.as_ref() == Some(&charge.id)
        });
        let owners = owners.count();
        let counted = match (charge.is_live(), exposure(charge)) {
            (true, Some(_)) => owners == 1,
            // Adopted by a capture that came to nothing.
            (true, None) => owners <= 1,
            (false, _) => owners == 0,
        };
        assert!(counted, "{owners} rows count {charge:?}");
    }
}
