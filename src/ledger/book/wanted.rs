//! What a batch needs to see before it can be decided.

use std::collections::BTreeSet;

use crate::domain::decision::Ask;
use crate::domain::digest::Digest16;
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};
use crate::domain::reservation::Reservation;
use crate::domain::settlement::Report;

use crate::ledger::command::{Control, ControlRequest, Rebuild, Resolution, Work};

/// The rows a store loads, all sets sorted so that locks are taken in one order everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Locked first, in order, each with all its caps.
    pub vault_keys: BTreeSet<VaultKeyId>,
    /// Request rows, each with the reservation it points at.
    pub requests: BTreeSet<Digest16>,
    /// Unreleased reservations that hold one of these as slot or intent.
    pub claims: BTreeSet<Digest16>,
    /// Reservations by id.
    pub reservations: BTreeSet<ReservationId>,
    /// Reservations by (account, object id), every one of them.
    pub objects: BTreeSet<(String, String)>,
    /// In-flight reservations past their deadline, a bounded number.
    pub overdue: bool,
    /// Flags by id.
    pub flags: BTreeSet<FlagId>,
    /// Admin commands by idempotency key.
    pub control_keys: BTreeSet<Digest16>,
    /// How far the feeds of these accounts were read.
    pub feeds: BTreeSet<String>,
    /// The last audit entry, locked until the commit.
    pub audit_tail: bool,
    /// How many fresh reservation ids the batch may use.
    pub fresh_ids: usize,
}

impl Wanted {
    /// What a batch needs.
    pub fn by<'a>(batch: impl IntoIterator<Item = &'a Work>) -> Self {
        let mut wanted = Self::default();
        for work in batch {
            match work {
                Work::Reserve(ask) => wanted.add_ask(ask),
                Work::Settle(report) => wanted.add_report(report),
                Work::Sweep => wanted.overdue = true,
                Work::Observe(report) => {
                    wanted.feeds.insert(report.account.clone());
                }
                Work::WriteOff(row) => {
                    wanted.vault_keys.insert(row.vault_key.clone());
                    wanted.reservations.insert(row.id);
                }
                Work::Control(request) => wanted.add_control(request),
            }
        }
        wanted
    }

    /// Adds what an earlier admin command worked on, so that its repeat can be answered.
    pub fn add_subject(&mut self, name: &str) {
        if let Ok(id) = name.parse::<VaultKeyId>() {
            self.vault_keys.insert(id);
        } else if let Ok(id) = name.parse::<ReservationId>() {
            self.reservations.insert(id);
        } else if let Ok(id) = name.parse::<FlagId>() {
            self.flags.insert(id);
        }
    }

    fn add_ask(&mut self, ask: &Ask) {
        self.fresh_ids = self.fresh_ids.saturating_add(1);
        self.vault_keys.insert(ask.vault_key.clone());
        self.requests.extend(ask.key.digests());
        self.claims.extend(ask.slot().map(|slot| slot.digest()));
        self.claims.extend(ask.intent_digest());
        if let Some(target) = &ask.target {
            self.objects
                .insert((ask.account.clone(), target.object_id.clone()));
            if let Some((reservation, vault_key)) = &target.owner {
                self.reservations.insert(*reservation);
                self.vault_keys.insert(vault_key.clone());
            }
        }
    }

    fn add_report(&mut self, report: &Report) {
        let row = &report.reservation;
        self.add_row(row);
        if let Some(object_id) = report.outcome.object_id() {
            self.objects
                .insert((row.account.clone(), object_id.to_owned()));
        }
    }

    /// A row that comes back to life, or is rebuilt, asks whether its claims are still free.
    fn add_row(&mut self, row: &Reservation) {
        self.fresh_ids = self.fresh_ids.saturating_add(1);
        self.vault_keys.insert(row.vault_key.clone());
        self.reservations.insert(row.id);
        self.claims
            .extend(row.slot_claim.iter().chain(&row.intent_claim));
    }

    fn add_rebuild(&mut self, lost: &Rebuild) {
        let row = &lost.reservation;
        self.fresh_ids = self.fresh_ids.saturating_add(1);
        self.vault_keys.insert(row.vault_key.clone());
        self.requests.insert(lost.request);
        self.claims
            .extend(row.slot_claim.iter().chain(&row.intent_claim));
        self.objects.extend(
            row.object_id
                .clone()
                .map(|object_id| (row.account.clone(), object_id)),
        );
    }

    fn add_control(&mut self, request: &ControlRequest) {
        self.audit_tail = true;
        self.control_keys
            .extend(request.idempotency.map(|key| key.digest));
        match &request.control {
            Control::CreateKey { key, .. } => {
                // Looked up so that a repeat under the same key finds what it made.
                self.vault_keys.insert(key.id.clone());
            }
            Control::UpdateKey { id, .. }
            | Control::Revoke { id, .. }
            | Control::Rotate { id, .. } => {
                self.vault_keys.insert(id.clone());
            }
            Control::Resolve {
                reservation: row,
                resolution,
                ..
            } => {
                self.add_row(row);
                if let Resolution::Settled { object_id, .. } = resolution {
                    self.objects
                        .insert((row.account.clone(), object_id.clone()));
                }
            }
            Control::Acknowledge { flag } => {
                self.flags.insert(*flag);
            }
            Control::Rebuild(lost) => self.add_rebuild(lost),
            Control::EndLost(_) => {}
        }
    }
}
