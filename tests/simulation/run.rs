//! One run: a storm, then calm, then everybody finishes what they began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::clients::{Intent, Keys, bill, capture};
use super::fleet::Fleet;
use super::operators;
use super::world::World;

/// What came of a run.
pub(super) struct Outcome {
    pub(super) failure: Option<String>,
    pub(super) trace: String,
    pub(super) counts: BTreeMap<&'static str, u64>,
}

/// Runs one seed in this thread.
pub(super) fn run(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let world = runtime.block_on(async {
        let world = Arc::new(World::new(seed));
        tokio::select! {
            biased;
            () = world.failed() => {}
            () = play(&world) => {}
        }
        world
    });
    drop(runtime);
    Outcome {
        failure: world.failure(),
        trace: world.trace(),
        counts: world.counts(),
    }
}

async fn play(world: &Arc<World>) {
    let fleet = Fleet::new(world);
    for replica in &fleet.replicas {
        tokio::spawn(Arc::clone(replica).supervise());
    }
    let neighbour = |number| bill(Arc::clone(&fleet), Intent::neighbour(number), 9);
    if fleet.scenario.writes_off {
        neighbour(1_000).await;
        leap(600_000).await;
    }
    let intents = storm(&fleet).await;
    if fleet.scenario.writes_off {
        leap(600_000).await;
        neighbour(1_001).await;
    }
    world.say(format_args!("calm"));
    // What is under way arrives or is given up, what was interrupted is rolled forward, deadlines pass.
    for _ in 0..2 {
        leap(3_600_000).await;
        world.pause(60_000, 60_000).await;
    }
    if fleet.scenario.reconciles {
        let hours = if fleet.scenario.writes_off { 26 } else { 13 };
        leap(hours * 3_600_000).await;
        world.pause(120_000, 120_000).await;
        fleet.witness.see(|auditor| auditor.reconciled());
    }
    let again = intents
        .iter()
        .map(|intent| tokio::spawn(bill(Arc::clone(&fleet), intent.clone(), 3)));
    join(again.collect()).await;
    world.pause(150_000, 150_000).await;
    finish(&fleet).await;
    fleet.witness.see(|auditor| auditor.at_rest());
}

/// Jobs, operators and the weather, until the jobs are done.
async fn storm(fleet: &Arc<Fleet>) -> Vec<Intent> {
    let mut intents = Vec::new();
    let mut jobs = Vec::new();
    for _ in 0..fleet.scenario.jobs {
        let keys = *fleet.world.pick(&[Keys::Stable, Keys::Fresh, Keys::None]);
        let count = 1 + fleet.world.below(3);
        let number = |at: usize| u64::try_from(intents.len() + at).unwrap();
        let mine: Vec<Intent> = (0..usize::try_from(count).unwrap())
            .map(|at| Intent::draw(fleet, keys, number(at)))
            .collect();
        intents.extend(mine.clone());
        jobs.push(tokio::spawn(job(Arc::clone(fleet), mine)));
    }
    if fleet.scenario.operators {
        tokio::spawn(operators::work(Arc::clone(fleet)));
    }
    let weather = tokio::spawn(weather(Arc::clone(fleet)));
    join(jobs).await;
    fleet.world.calm_down();
    join(vec![weather]).await;
    intents
}

async fn job(fleet: Arc<Fleet>, intents: Vec<Intent>) {
    fleet.world.pause(0, 3_000).await;
    for intent in intents {
        let tries = u32::try_from(1 + fleet.world.below(5)).unwrap();
        bill(Arc::clone(&fleet), intent.clone(), tries).await;
        if fleet.world.chance(60) {
            let (charge, amount) = (
                fleet.stripe.authorise_elsewhere(intent.amount),
                intent.amount,
            );
            capture(&fleet, &intent, &charge, &format!("amount={amount}"), tries).await;
        }
        fleet.world.pause(0, 10_000).await;
    }
}

/// Around the moments that the product counts: to send, to be held.
const SHORT_LEAPS_MS: [u64; 4] = [20_000, 40_000, 130_000, 3_600_000];

/// Around the last re-send and Stripe's memory of keys.
const LONG_LEAPS_MS: [u64; 3] = [3_600_000, 11 * 3_600_000, 25 * 3_600_000];

/// What happens to everybody at once.
async fn weather(fleet: Arc<Fleet>) {
    while !fleet.world.is_calm() {
        fleet.world.pause(500, 40_000).await;
        match fleet.world.below(12) {
            0 | 1 => fleet
                .database
                .go_down(i64::try_from(fleet.world.below(9_000)).unwrap()),
            2 => {
                let max = fleet.scenario.clock_ms_max;
                let ms = i64::try_from(fleet.world.below(2 * max)).unwrap();
                fleet.database.jump_to(ms - i64::try_from(max).unwrap());
            }
            3 | 4 => fleet.stripe.void_one(),
            5 => leap(*fleet.world.pick(&SHORT_LEAPS_MS)).await,
            6 => leap(*fleet.world.pick(&LONG_LEAPS_MS)).await,
            _ => {}
        }
    }
}

/// Time passes for everybody, and nobody does anything meanwhile; every hour what is due happens.
async fn leap(ms: u64) {
    let mut left = ms;
    while left > 0 {
        // First what takes minutes: a request that Stripe runs, the wait for its answer.
        let step = left.min(if left.is_multiple_of(3_600_000) {
            150_000
        } else {
            3_450_000
        });
        tokio::time::advance(Duration::from_millis(step)).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        left -= step;
    }
}

/// Operators look until nothing is unknown; what is only authorised and was never captured is given up
/// first.
async fn finish(fleet: &Arc<Fleet>) {
    for _ in 0..4 {
        operators::resolve_what_is_known(fleet).await;
        if operators::unknown(fleet).is_empty() {
            return;
        }
        operators::give_up_what_is_open(fleet);
        fleet.world.pause(50_000, 50_000).await;
    }
}

async fn join(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.unwrap();
    }
}
