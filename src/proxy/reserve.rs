//! Durably reserved before anything leaves: ask the ledger, wait where another request is first.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Proxy;
use super::classify::{Judged, find_target};
use super::pipeline::refuse;
use crate::clock::BootMs;
use crate::domain::decision::{Ask, FORWARD_WINDOW_MS, Look};
use crate::domain::flag::FlagKind;
use crate::domain::refusal::Refusal;
use crate::ledger::LedgerError;
use crate::ledger::command::{Existing, Refused, Ticket, Verdict, Waiting};
use crate::telemetry::metrics::Tally;

/// First pause between two looks at a reservation that another process may settle.
const POLL_FIRST: Duration = Duration::from_millis(25);

/// Longest pause between two looks.
const POLL_MAX: Duration = Duration::from_millis(500);

/// How often the owner of an object is looked up again after another request took it.
const LOOKS_MAX: u32 = 4;

/// What came of asking the ledger.
pub(super) enum Reserved {
    /// Send it.
    Send(Cleared),
    /// Answer with the object that exists.
    Existing(Existing),
}

/// **Proof** of a reservation, with the last moment at which it may be spent.
pub(super) struct Cleared {
    pub(super) ticket: Ticket,
    /// On the clock since boot, counted from before the reserve was queued.
    pub(super) send_by: BootMs,
}

pub(super) async fn reserve(
    proxy: &Proxy,
    judged: &Judged,
    tally: &mut Tally,
) -> Result<Reserved, Refused> {
    let ask = judged.ask.clone();
    decided(proxy, judged, ask, proxy.settings.repeat_wait, tally).await
}

/// Asks once more for a request that was sent and has no answer: what was observed counts once.
pub(super) async fn reserve_again(
    proxy: &Proxy,
    judged: &Judged,
    wait_max: Duration,
    tally: &mut Tally,
) -> Result<Reserved, Refused> {
    let ask = Ask {
        look: Look::Again,
        ..judged.ask.clone()
    };
    let wait = proxy.settings.repeat_wait.min(wait_max);
    decided(proxy, judged, ask, wait, tally).await
}

async fn decided(
    proxy: &Proxy,
    judged: &Judged,
    mut ask: Ask,
    wait: Duration,
    tally: &mut Tally,
) -> Result<Reserved, Refused> {
    let mut patience = Patience::new(wait);
    let mut looks = 0;
    loop {
        proxy.breaker.admit().map_err(refuse)?;
        let asked_at = proxy.clock.boot();
        let verdict = proxy.ledger.reserve(ask.clone()).await;
        match verdict.map_err(|error| refuse(ledger_refusal(error)))? {
            Verdict::Send(ticket) => {
                let window = Duration::from_millis(FORWARD_WINDOW_MS.unsigned_abs());
                let send_by = asked_at.after(window);
                return Ok(Reserved::Send(Cleared { ticket, send_by }));
            }
            Verdict::Read(mut existing) => {
                existing.flags.extend(patience.observed);
                return Ok(Reserved::Existing(existing));
            }
            Verdict::Wait(waiting) => {
                patience.wait(waiting).await?;
                ask.look = Look::Again;
            }
            Verdict::LookAgain if looks < LOOKS_MAX => {
                looks += 1;
                ask = look_again(proxy, judged, ask, tally).await?;
            }
            Verdict::LookAgain => return Err(refuse(Refusal::IdempotencyKeyInUse)),
            Verdict::Refuse(refused) => {
                forget_dead_key(proxy, judged, &refused.refusal);
                return Err(refused);
            }
        }
    }
}

async fn look_again(
    proxy: &Proxy,
    judged: &Judged,
    mut ask: Ask,
    tally: &mut Tally,
) -> Result<Ask, Refused> {
    if let Some(target) = &ask.target {
        let charge = target.object_id.clone();
        let found = find_target(
            proxy,
            &charge,
            &ask.account,
            &judged.upstream_headers,
            tally,
        )
        .await?;
        ask.target = Some(found.target);
    }
    Ok(ask)
}

/// How long this request has waited, and what it saw meanwhile.
struct Patience {
    until: Instant,
    pause: Duration,
    observed: Vec<FlagKind>,
}

impl Patience {
    fn new(wait: Duration) -> Self {
        Self {
            until: Instant::now() + wait,
            pause: POLL_FIRST,
            observed: Vec::new(),
        }
    }

    /// Waits for this process's news of the reservation, or polls for another's.
    async fn wait(&mut self, mut waiting: Waiting) -> Result<(), Refused> {
        for kind in std::mem::take(&mut waiting.flags) {
            if !self.observed.contains(&kind) {
                self.observed.push(kind);
            }
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let flags = std::mem::take(&mut self.observed);
            return Err(Refused {
                refusal: Refusal::IdempotencyKeyInUse,
                flags,
            });
        }
        tokio::select! {
            // Where both are ready, it is news and no reason to wait longer next time.
            biased;
            () = waiting.woken() => {}
            () = sleep(self.pause.min(left)) => self.pause = (self.pause * 2).min(POLL_MAX),
        }
        Ok(())
    }
}

/// What another replica did to the key is news to this one's cache.
fn forget_dead_key(proxy: &Proxy, judged: &Judged, refusal: &Refusal) {
    if matches!(refusal, Refusal::VaultKeyRevoked | Refusal::VaultKeyInvalid) {
        proxy.keys.forget(judged.authenticated.secret_hash());
    }
}

fn ledger_refusal(error: LedgerError) -> Refusal {
    match error {
        LedgerError::Overloaded => Refusal::Overloaded,
        LedgerError::Unavailable | LedgerError::Inconsistent => Refusal::LedgerUnavailable,
    }
}
