//! What one seed is about: how large the fleet is, who asks for what, and how bad the weather is.

use super::database::Kind;
use super::world::World;
use crate::domain::vault_key::OnDuplicate;

/// One run's plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) kind: Kind,
    pub(super) replicas: usize,
    pub(super) vault_keys: usize,
    pub(super) on_duplicate: OnDuplicate,
    /// Each vault key's cap, in minor units.
    pub(super) max_amount: i64,
    pub(super) jobs: usize,
    pub(super) customers: u64,
    pub(super) crash_permille: u64,
    pub(super) freeze_permille: u64,
    /// How often Stripe is in trouble.
    pub(super) trouble_permille: u64,
    pub(super) decline_permille: u64,
    pub(super) operators: bool,
    /// How often the product asks again for an answer that was lost.
    pub(super) resends_max: u32,
    /// The reconciler runs.
    pub(super) reconciles: bool,
    /// And gives up what left no trace.
    pub(super) writes_off: bool,
    /// How far the database's clock may be from Stripe's.
    pub(super) clock_ms_max: u64,
}

impl Scenario {
    pub(super) fn draw(world: &World) -> Self {
        let sqlite = world.chance(200);
        let replicas = if sqlite {
            1
        } else {
            *world.pick(&[1, 2, 2, 3])
        };
        let reconciles = world.chance(500);
        Self {
            kind: if sqlite { Kind::Sqlite } else { Kind::Postgres },
            replicas,
            vault_keys: *world.pick(&[1, 1, 2]),
            on_duplicate: *world.pick(&[
                OnDuplicate::Replay,
                OnDuplicate::Replay,
                OnDuplicate::Replay,
                OnDuplicate::Reject,
                OnDuplicate::Flag,
            ]),
            max_amount: *world.pick(&[400, 800, 3000]),
            jobs: *world.pick(&[2, 3, 4, 6]),
            customers: *world.pick(&[1, 2, 3]),
            crash_permille: *world.pick(&[0, 3, 10, 30]),
            freeze_permille: *world.pick(&[0, 0, 5, 20]),
            trouble_permille: *world.pick(&[0, 30, 100, 250]),
            decline_permille: *world.pick(&[0, 50, 200]),
            operators: world.chance(600),
            resends_max: *world.pick(&[0, 1, 2, 3]),
            reconciles,
            writes_off: reconciles && world.chance(300),
            // The windows in which the reconciler looks allow for a minute.
            clock_ms_max: if reconciles { 25_000 } else { 300_000 },
        }
    }
}
