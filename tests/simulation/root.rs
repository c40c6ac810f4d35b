//! The simulation: the product's decision, writer, pipeline and reconciler over a simulated database,
//! Stripe, network and clock, in one thread and driven by one seed (see docs/RELIABILITY.md).
#![expect(
    clippy::disallowed_methods,
    reason = "which seeds to run is said in the environment"
)]

mod auditor;
mod clients;
mod database;
mod facts;
mod fleet;
mod life;
mod network;
mod operators;
mod replica;
mod rng;
mod run;
mod scenario;
mod stripe;
mod witness;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::mistake::{Mistake, plant};
use run::run;
use world::lock;

/// How many seeds every run of the tests takes.
const SEEDS: u64 = 10_000;

/// Lines of the trace that a failure shows.
const TRACE_LINES: usize = 60;

/// `17` is one seed, `0..50000` a range.
fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("SPENDCAP_SIMULATION_SEEDS") else {
        return 0..SEEDS;
    };
    let wrong = "SPENDCAP_SIMULATION_SEEDS is a seed such as 17, or a range such as 0..50000";
    let number = |text: &str| text.parse::<u64>().expect(wrong);
    text.split_once("..").map_or_else(
        || number(&text)..number(&text) + 1,
        |(first, end)| number(first)..number(end),
    )
}

#[test]
fn every_seed_keeps_the_promises() {
    let range = seeds();
    let next = AtomicU64::new(range.start);
    let failed: Mutex<BTreeMap<u64, String>> = Mutex::default();
    let counts: Mutex<BTreeMap<&'static str, u64>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= range.end || !lock(&failed).is_empty() {
                        return;
                    }
                    let outcome = run(seed);
                    for (name, count) in outcome.counts {
                        *lock(&counts).entry(name).or_insert(0) += count;
                    }
                    if let Some(reason) = outcome.failure {
                        lock(&failed).insert(seed, report(seed, &reason, &outcome.trace));
                    }
                }
            });
        }
    });
    println!("{:#?}", lock(&counts));
    let failed = lock(&failed);
    if let Some(report) = failed.values().next() {
        panic!("{report}");
    }
}

fn report(seed: u64, reason: &str, trace: &str) -> String {
    let lines: Vec<&str> = trace.lines().collect();
    let first = if std::env::var("SPENDCAP_SIMULATION_SEEDS").is_ok() {
        0
    } else {
        lines.len().saturating_sub(TRACE_LINES)
    };
    format!(
        "{}\n\nseed {seed}: {reason}\nrun it again, with its whole trace:\n    \
         SPENDCAP_SIMULATION_SEEDS={seed} cargo test --lib every_seed\n",
        lines[first..].join("\n")
    )
}

#[test]
fn a_seed_runs_the_same_way_every_time() {
    for seed in 0..40 {
        let (first, second) = (run(seed), run(seed));
        let lines = first.trace.lines().zip(second.trace.lines());
        for (line, again) in lines {
            assert_eq!(line, again, "seed {seed}");
        }
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

/// Seeds within which a planted mistake must show.
const SEEDS_TO_FIND: u64 = 1_000;

/// Runs seeds with a mistake until one fails.
fn finds(mistake: Mistake) {
    plant(Some(mistake));
    let found = (0..SEEDS_TO_FIND).find_map(|seed| Some((seed, run(seed).failure?)));
    plant(None);
    let (seed, reason) = found.expect("the simulation does not see the mistake");
    println!("{mistake:?}: seed {seed}: {reason}");
    assert_eq!(
        run(seed).failure,
        None,
        "seed {seed} fails without the mistake"
    );
}

#[test]
fn a_release_on_401_after_an_unproven_send_is_found() {
    finds(Mistake::ReleaseOn401AfterAnUnprovenSend);
}

#[test]
fn a_send_without_a_look_at_forward_by_is_found() {
    finds(Mistake::ForwardWithoutCheckingForwardBy);
}

#[test]
fn a_settle_that_is_dropped_on_already_is_found() {
    finds(Mistake::SettleDroppedOnAlready);
}

#[test]
fn a_slot_that_a_write_off_frees_is_found() {
    finds(Mistake::SlotFreedByAWriteOff);
}

#[test]
fn a_cap_that_is_read_outside_the_lock_is_found() {
    finds(Mistake::CapReadOutsideTheLock);
}
