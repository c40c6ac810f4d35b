//! Random histories against an auditor that knows nothing of how the ledger works: it keeps what a
//! Stripe would have taken, and the books have to agree with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spendcap::clock::Clock;
use spendcap::domain::outcome::Outcome;
use spendcap::domain::vault_key::VaultKey;
use spendcap::ledger::Ledger;
use spendcap::ledger::command::{Ticket, Verdict};

use super::on_both;
use super::place::{DEADLINE_MS, Place};
use super::scene::{ask, check_sums, issue, paid, settle, used, vault_key};

on_both!(the_books_agree_with_what_was_taken);

const TASKS: u64 = 16;
const STEPS: u64 = 40;
const CUSTOMERS: u64 = 12;
const CAP: i64 = 900;

/// A Stripe of one endpoint: an idempotency key gets what it got before.
#[derive(Default)]
struct Auditor {
    /// By idempotency key: what the first send under it did.
    stored: HashMap<String, Stored>,
    /// By vault key: what was taken.
    taken: HashMap<String, i64>,
    /// By customer and amount: how many charges there are.
    charges: HashMap<(String, i64), u32>,
}

#[derive(Clone)]
enum Stored {
    Charge(String, i64),
    Decline,
}

impl Auditor {
    fn execute(&mut self, ticket: &Ticket, customer: &str, declines: bool) -> Stored {
        let row = ticket.reservation();
        let number = self.stored.len();
        if let Some(stored) = self.stored.get(&row.send.upstream_key) {
            return stored.clone();
        }
        let minor = row.amount.get();
        let stored = if declines {
            Stored::Decline
        } else {
            *self.taken.entry(row.vault_key.to_string()).or_default() += minor;
            *self
                .charges
                .entry((customer.to_owned(), minor))
                .or_default() += 1;
            Stored::Charge(format!("ch_{number}"), minor)
        };
        self.stored
            .insert(row.send.upstream_key.clone(), stored.clone());
        let taken = self
            .taken
            .get(row.vault_key.as_str())
            .copied()
            .unwrap_or_default();
        assert!(taken <= CAP, "{} took {taken} of {CAP}", row.vault_key);
        stored
    }
}

/// A small generator with a printed seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

#[derive(Clone)]
struct Run {
    ledger: Ledger,
    keys: [VaultKey; 2],
    auditor: Arc<Mutex<Auditor>>,
    clock: Clock,
}

#[expect(clippy::print_stdout, reason = "a failure shows the seed")]
async fn the_books_agree_with_what_was_taken(place: Place) {
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    println!("seed {seed}");
    let opened = place.open().await;
    let keys = [vault_key(&[("usd", CAP)]), vault_key(&[("usd", CAP)])];
    for key in &keys {
        issue(&opened.ledger, key).await;
    }
    let run = Run {
        ledger: opened.ledger.clone(),
        keys,
        auditor: Arc::default(),
        clock: place.clock.clone(),
    };
    let tasks = (0..TASKS).map(|task| {
        let (run, dice) = (run.clone(), Dice(u64::from(seed) * TASKS + task));
        tokio::spawn(client(run, dice, task))
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    check_sums(&run.ledger).await;
    resolve(&run).await;
    audit(&run).await;
    drop(run);
    opened.close().await;
}

/// A billing job that repeats itself, under old keys and new ones, for customers others bill too.
async fn client(run: Run, mut dice: Dice, task: u64) {
    for step in 0..STEPS {
        let key = &run.keys[usize::try_from(dice.roll(2)).unwrap()];
        let customer = format!("cus_{}", dice.roll(CUSTOMERS));
        let minor = if dice.roll(4) == 0 { 20 } else { 100 };
        let text = match dice.roll(3) {
            0 => format!("{customer}-{minor}"),
            _ => format!("{task}-{step}"),
        };
        if dice.roll(60) == 0 {
            run.clock
                .advance(Duration::from_millis(DEADLINE_MS.unsigned_abs()));
        }
        if let Verdict::Send(ticket) = run
            .ledger
            .reserve(ask(key, &customer, minor, &text))
            .await
            .unwrap()
        {
            let outcome = send(&run, &ticket, &customer, dice.roll(10));
            settle(&run.ledger, &ticket, outcome).await;
        }
    }
}

/// What the network and Stripe do to one send.
fn send(run: &Run, ticket: &Ticket, customer: &str, luck: u64) -> Outcome {
    if luck == 0 || run.clock.now() > ticket.reservation().send.forward_by {
        return Outcome::NotSent;
    }
    if luck == 1 {
        return Outcome::Unknown;
    }
    if luck == 2 {
        return Outcome::RefusedThisSend;
    }
    let executed = run
        .auditor
        .lock()
        .unwrap()
        .execute(ticket, customer, luck == 3);
    match executed {
        _ if luck == 4 => Outcome::Unknown,
        Stored::Charge(object_id, minor) => paid(&object_id, minor),
        Stored::Decline => Outcome::StoredRefusal,
    }
}

/// Everybody asks once more, with luck, until nothing is unresolved.
async fn resolve(run: &Run) {
    run.clock
        .advance(Duration::from_millis(DEADLINE_MS.unsigned_abs()));
    run.ledger.sweep().await.unwrap();
    for (customer, minor) in (0..CUSTOMERS).flat_map(|it| [(it, 20), (it, 100)]) {
        let customer = format!("cus_{customer}");
        for key in &run.keys {
            let text = format!("last-{customer}-{minor}-{}", key.id);
            let verdict = run
                .ledger
                .reserve(ask(key, &customer, minor, &text))
                .await
                .unwrap();
            match verdict {
                Verdict::Send(ticket) => {
                    let outcome = send(run, &ticket, &customer, 9);
                    settle(&run.ledger, &ticket, outcome).await;
                }
                Verdict::Read(_) | Verdict::Refuse(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

async fn audit(run: &Run) {
    for key in &run.keys {
        let (reserved, settled) = used(&run.ledger, key).await;
        let taken = {
            let auditor = run.auditor.lock().unwrap();
            auditor
                .taken
                .get(key.id.as_str())
                .copied()
                .unwrap_or_default()
        };
        assert_eq!((reserved, settled), (0, taken), "{}", key.id);
        assert!(settled <= CAP);
    }
    let auditor = run.auditor.lock().unwrap();
    for (charge, count) in &auditor.charges {
        assert_eq!(*count, 1, "{charge:?} was charged {count} times");
    }
    assert!(
        !auditor.charges.is_empty(),
        "a history in which nothing happens proves nothing"
    );
}
