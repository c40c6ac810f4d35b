//! Reads at a bounded rate, and not at all where the real key may not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{BootMs, Clock};
use crate::stripe::answer::ChargeFacts;
use crate::stripe::event::{EventPage, EventQuery};
use crate::stripe::read::{self, ReadError, StripeRead};

/// How long a read that the real key may not make is not tried again: a permission is given by hand.
const FORBIDDEN_PAUSE: Duration = Duration::from_mins(15);

/// Accounts for which it is kept in mind that the key may not read; a bound of memory.
const FORBIDDEN_MAX: usize = 1000;

/// What may be read or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    /// `GET /v1/charges/{id}`.
    Charges,
    /// `GET /v1/events`.
    Events,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Charges => "charges",
            Self::Events => "events",
        }
    }
}

#[derive(Debug)]
pub(super) struct Paced {
    stripe: Arc<dyn StripeRead>,
    clock: Clock,
    pause: Duration,
    next: Option<BootMs>,
    /// Until when a kind is not read on an account.
    forbidden: HashMap<(Kind, String), BootMs>,
}

impl Paced {
    pub(super) fn new(stripe: Arc<dyn StripeRead>, clock: Clock, reads_per_second: u32) -> Self {
        Self {
            stripe,
            clock,
            pause: Duration::from_secs(1) / reads_per_second.max(1),
            next: None,
            forbidden: HashMap::new(),
        }
    }

    pub(super) async fn charge(
        &mut self,
        account: &str,
        id: &str,
    ) -> Result<ChargeFacts, ReadError> {
        self.turn(Kind::Charges, account).await?;
        let found = read::charge(&*self.stripe, account, id).await;
        self.remember(Kind::Charges, account, found.as_ref().err());
        found
    }

    pub(super) async fn events(
        &mut self,
        account: &str,
        query: &EventQuery<'_>,
    ) -> Result<EventPage, ReadError> {
        self.turn(Kind::Events, account).await?;
        let found = read::events(&*self.stripe, account, query).await;
        self.remember(Kind::Events, account, found.as_ref().err());
        found
    }

    /// Waits until the next read may go out; refuses one that would be refused anyway.
    async fn turn(&mut self, kind: Kind, account: &str) -> Result<(), ReadError> {
        if self.is_forbidden(kind, account) {
            return Err(ReadError::Forbidden);
        }
        if let Some(next) = self.next {
            let wait = next.since(self.clock.boot()).min(self.pause);
            tokio::time::sleep(wait).await;
        }
        self.next = Some(self.clock.boot().after(self.pause));
        Ok(())
    }

    pub(super) fn is_forbidden(&self, kind: Kind, account: &str) -> bool {
        let until = self.forbidden.get(&(kind, account.to_owned()));
        until.is_some_and(|until| self.clock.boot() < *until)
    }

    pub(super) fn is_anything_forbidden(&self) -> bool {
        !self.forbidden.is_empty()
    }

    /// Says once that a read is refused, and once that it is not any more.
    fn remember(&mut self, kind: Kind, account: &str, error: Option<&ReadError>) {
        let name = (kind, account.to_owned());
        let what = kind.as_str();
        match error {
            Some(ReadError::Forbidden) => {
                if self.forbidden.len() >= FORBIDDEN_MAX {
                    self.forbidden.clear();
                }
                let until = self.clock.boot().after(FORBIDDEN_PAUSE);
                if self.forbidden.insert(name, until).is_none() {
                    tracing::warn!(
                        what,
                        account,
                        "The real key may not read this: what is held stays so until a repeat or an \
                         operator resolves it"
                    );
                }
            }
            Some(ReadError::Busy) => {}
            Some(ReadError::Missing | ReadError::Unreadable) | None => {
                if self.forbidden.remove(&name).is_some() {
                    tracing::info!(what, account, "The real key may read this now");
                }
            }
        }
    }
}
