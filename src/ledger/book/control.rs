//! An operator's command meets the book: carried out, audited, and repeatable under its key.

use super::{Book, BookError, ControlRecord, NewAuditEntry, Rotation};
use crate::domain::cap::{Cap, Headroom};
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::outcome::Outcome;
use crate::domain::reservation::{Reservation, State};
use crate::domain::settlement::{Report, release};
use crate::domain::vault_key::{KeyStatus, VaultKey};
use crate::ledger::command::{
    Control, ControlDone, ControlError, ControlRequest, Resolution, Subject,
};

/// What the audit log calls the ledger as a whole.
const LEDGER: &str = "ledger";

pub(super) type Outcomes = Result<Result<Done, ControlError>, BookError>;

pub(super) struct Done {
    pub(super) subject: Subject,
    pub(super) action: &'static str,
    pub(super) reason: String,
    pub(super) detail: String,
}

impl Book {
    pub(super) fn control(
        &mut self,
        request: &ControlRequest,
    ) -> Result<Result<ControlDone, ControlError>, BookError> {
        if let Some(key) = request.idempotency
            && let Some(record) = self.control_records.get(&key.digest)
        {
            if record.key != key {
                return Ok(Err(ControlError::KeyReused));
            }
            return Ok(Ok(ControlDone {
                subject: self.subject(&record.subject)?,
                replayed: true,
            }));
        }
        let done = match self.carry_out_control(&request.control, &request.actor)? {
            Ok(done) => done,
            Err(error) => return Ok(Err(error)),
        };
        let name = subject_name(&done.subject);
        self.audit(&request.actor, &done, &name);
        if let Some(key) = request.idempotency {
            let record = ControlRecord { key, subject: name };
            self.control_records.insert(key.digest, record.clone());
            self.changes.control_records.push(record);
        }
        Ok(Ok(ControlDone {
            subject: done.subject,
            replayed: false,
        }))
    }

    fn carry_out_control(&mut self, control: &Control, actor: &str) -> Outcomes {
        match control {
            Control::CreateKey { key, secret_hash } => Ok(Ok(self.create_key(key, *secret_hash))),
            Control::UpdateKey {
                id,
                expected_totals,
                headroom,
                resume,
                reason,
            } => {
                let update = KeyUpdate {
                    expected_totals,
                    headroom: *headroom,
                    resume: *resume,
                    reason: reason.clone(),
                };
                Ok(self.update_key(id, update))
            }
            Control::Revoke { id, reason } => Ok(self.revoke(id, reason)),
            Control::Rotate {
                id,
                secret_hash,
                secret_hint,
                grace_ms,
            } => Ok(self.rotate(id, *secret_hash, secret_hint, *grace_ms)),
            Control::Resolve {
                reservation,
                resolution,
                reason,
                ..
            } => self.resolve(reservation, resolution, reason),
            Control::Acknowledge { flag } => Ok(self.acknowledge(*flag, actor)),
            Control::Rebuild(lost) => self.rebuild(lost),
            Control::EndLost(end) => Ok(self.end_lost(end)),
        }
    }

    /// The subject of an earlier command, as it stands now.
    fn subject(&self, name: &str) -> Result<Subject, BookError> {
        if name == LEDGER {
            return Ok(Subject::Ledger);
        }
        let key = name
            .parse::<VaultKeyId>()
            .ok()
            .and_then(|id| self.vault_keys.get(&id));
        if let Some(key) = key {
            return Ok(Subject::VaultKey(Box::new(key.clone())));
        }
        let id = name.parse::<ReservationId>().ok();
        if let Some(row) = id.and_then(|id| self.reservations.get(&id)) {
            return Ok(Subject::Reservation(Box::new(row.clone())));
        }
        let flag = name
            .parse::<FlagId>()
            .ok()
            .and_then(|id| self.flags.get(&id));
        // The stores load what a record names, so a record without its subject is a damaged ledger.
        flag.map(|flag| Subject::Flag(Box::new(flag.clone())))
            .ok_or_else(|| BookError::Missing(name.to_owned()))
    }

    fn create_key(&mut self, key: &VaultKey, secret_hash: [u8; 32]) -> Done {
        let key = VaultKey {
            created_at: self.now,
            ..key.clone()
        };
        self.changes.new_keys.insert(key.id.clone(), secret_hash);
        self.vault_keys.insert(key.id.clone(), key.clone());
        let caps: Vec<String> = key
            .caps
            .iter()
            .map(|cap| {
                format!(
                    "{} expected {} cap {}",
                    cap.currency, cap.expected_total, cap.max_amount
                )
            })
            .collect();
        Done {
            action: "vault_key.create",
            reason: String::new(),
            detail: format!("period {}, {}", key.billing_period, caps.join(", ")),
            subject: Subject::VaultKey(Box::new(key)),
        }
    }

    fn living_key(&mut self, id: &VaultKeyId) -> Result<&mut VaultKey, ControlError> {
        let key = self
            .vault_keys
            .get_mut(id)
            .ok_or(ControlError::NotFound("vault key"))?;
        if key.status == KeyStatus::Revoked {
            Err(ControlError::Revoked)
        } else {
            Ok(key)
        }
    }

    fn update_key(&mut self, id: &VaultKeyId, update: KeyUpdate<'_>) -> Result<Done, ControlError> {
        let key = self.living_key(id)?;
        let mut changed = key.clone();
        let details = update.apply(&mut changed)?;
        let (old, new): (Vec<Currency>, Vec<Currency>) = (currencies(key), currencies(&changed));
        *key = changed.clone();
        for currency in new {
            self.cap_changed(id, currency, old.contains(&currency));
        }
        self.changes.changed_keys.insert(id.clone());
        Ok(Done {
            subject: Subject::VaultKey(Box::new(changed)),
            action: "vault_key.update",
            reason: update.reason,
            detail: details.join("; "),
        })
    }

    fn revoke(&mut self, id: &VaultKeyId, reason: &str) -> Result<Done, ControlError> {
        let key = self
            .vault_keys
            .get_mut(id)
            .ok_or(ControlError::NotFound("vault key"))?;
        key.status = KeyStatus::Revoked;
        let subject = Subject::VaultKey(Box::new(key.clone()));
        self.changes.changed_keys.insert(id.clone());
        let (reason, detail) = (reason.to_owned(), String::new());
        Ok(Done {
            subject,
            action: "vault_key.revoke",
            reason,
            detail,
        })
    }

    fn rotate(
        &mut self,
        id: &VaultKeyId,
        secret_hash: [u8; 32],
        secret_hint: &str,
        grace_ms: i64,
    ) -> Result<Done, ControlError> {
        let old_expire_at = self.now.plus_ms(grace_ms);
        let key = self.living_key(id)?;
        secret_hint.clone_into(&mut key.secret_hint);
        let subject = Subject::VaultKey(Box::new(key.clone()));
        self.changes.changed_keys.insert(id.clone());
        let vault_key = id.clone();
        self.changes.rotations.push(Rotation {
            vault_key,
            secret_hash,
            old_expire_at,
        });
        let detail = format!("old secrets end at {}", old_expire_at.unix_seconds());
        Ok(Done {
            subject,
            action: "vault_key.rotate",
            reason: String::new(),
            detail,
        })
    }

    /// `seen` is the row that the evidence is about.
    fn resolve(&mut self, seen: &Reservation, resolution: &Resolution, reason: &str) -> Outcomes {
        let id = seen.id;
        let Some(row) = self.reservations.get(&id).cloned() else {
            return Ok(Err(ControlError::NotFound("reservation")));
        };
        match (row.state, resolution) {
            (State::Held | State::Open | State::WrittenOff, _)
            // Proof that money moved is taken in every state in which it is news.
            | (State::Released, Resolution::Settled { .. }) => {}
            (state, _) => return Ok(Err(ControlError::NotResolvable(state))),
        }
        let sends = row.send.sends;
        // Proof that money moved always counts; that it did not is proof of the sends up to then.
        if *resolution == Resolution::Released && sends != seen.send.sends {
            return Ok(Err(ControlError::SentAgain(sends)));
        }
        let before = row.state.as_str();
        match resolution {
            Resolution::Settled { amount, object_id } => {
                if let Some(own) = row.object_id.as_ref().filter(|own| *own != object_id) {
                    return Ok(Err(ControlError::OtherObject(own.clone())));
                }
                let (object_id, amount) = (object_id.clone(), *amount);
                let outcome = Outcome::Settled { object_id, amount };
                // One object is counted once. From Stripe that would say that this row made nothing; of an
                // operator's word it is not known which half is wrong.
                if let Some(owner) = self.foreign_owner(&row, &outcome) {
                    return Ok(Err(ControlError::ObjectTaken(owner)));
                }
                self.settle(&Report {
                    reservation: row,
                    outcome,
                })?;
            }
            Resolution::Released => self.put(release(&row, self.now))?,
        }
        let resolved = self.reservations.get(&id).cloned();
        let resolved = resolved.ok_or_else(|| BookError::Missing(id.to_string()))?;
        let (after, settled) = (resolved.state.as_str(), resolved.amount_settled);
        let detail = format!("{before} to {after}, settled {settled}");
        let subject = Subject::Reservation(Box::new(resolved));
        let reason = reason.to_owned();
        Ok(Ok(Done {
            subject,
            action: "reservation.resolve",
            reason,
            detail,
        }))
    }

    fn acknowledge(&mut self, id: FlagId, actor: &str) -> Result<Done, ControlError> {
        let flag = self
            .flags
            .get_mut(&id)
            .ok_or(ControlError::NotFound("flag"))?;
        flag.acknowledged_by = Some(actor.to_owned());
        self.changes.acknowledged.insert(id, actor.to_owned());
        let subject = Subject::Flag(Box::new(flag.clone()));
        let detail = flag.kind.as_str().to_owned();
        Ok(Done {
            subject,
            action: "flag.acknowledge",
            reason: String::new(),
            detail,
        })
    }

    fn audit(&mut self, actor: &str, done: &Done, subject: &str) {
        let entry = NewAuditEntry::chained(
            self.audit_tail,
            self.now.0,
            [actor, done.action, subject, &done.reason, &done.detail],
            done.action,
        );
        self.audit_tail = entry.hash;
        self.changes.audit.push(entry);
    }
}

struct KeyUpdate<'a> {
    expected_totals: &'a [(Currency, AmountMinor)],
    headroom: Option<Headroom>,
    resume: bool,
    reason: String,
}

impl KeyUpdate<'_> {
    /// Changes the key and tells how. A cap below its usage stays: usage is a fact, and the next charge
    /// is refused.
    fn apply(&self, key: &mut VaultKey) -> Result<Vec<String>, ControlError> {
        let mut details = Vec::new();
        if let Some(headroom) = self.headroom {
            details.push(format!("headroom {} to {headroom}", key.headroom));
            key.headroom = headroom;
        }
        for (currency, expected_total) in self.expected_totals {
            let old = key.cap(*currency).map(|cap| cap.expected_total);
            if key.cap(*currency).is_none() {
                key.caps
                    .push(Cap::fresh(*currency, AmountMinor::ZERO, AmountMinor::ZERO));
                key.caps.sort_by_key(|cap| cap.currency);
            }
            if let Some(cap) = key.cap_mut(*currency) {
                cap.expected_total = *expected_total;
            }
            let old = old.unwrap_or_default();
            details.push(format!(
                "{currency} expected_total {old} to {expected_total}"
            ));
        }
        let headroom = key.headroom;
        for cap in &mut key.caps {
            let max = headroom.max_amount(cap.expected_total);
            cap.max_amount = max.ok_or(ControlError::CapOverflow)?;
        }
        if self.resume && key.status == KeyStatus::Stopped {
            key.status = KeyStatus::Active;
            details.push("resumed".to_owned());
        }
        Ok(details)
    }
}

fn currencies(key: &VaultKey) -> Vec<Currency> {
    key.caps.iter().map(|cap| cap.currency).collect()
}

fn subject_name(subject: &Subject) -> String {
    match subject {
        Subject::VaultKey(key) => key.id.to_string(),
        Subject::Reservation(row) => row.id.to_string(),
        Subject::Flag(flag) => flag.id.to_string(),
        Subject::Ledger => LEDGER.to_owned(),
    }
}
