//! A ledger in memory: loads what [`Wanted`] names and nothing else, writes what [`Changes`] names and
//! nothing else, and keeps the rules that a database keeps with its indexes.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::ledger::LostCommits;

pub(super) struct MemoryStore {
    pub(super) now: UnixMs,
    pub(super) keys: BTreeMap<VaultKeyId, VaultKey>,
    pub(super) rows: BTreeMap<ReservationId, Reservation>,
    pub(super) requests: BTreeMap<Digest16, Request>,
    pub(super) flags: BTreeMap<(ReservationId, FlagKind), i64>,
    pub(super) audit: Vec<NewAuditEntry>,
    pub(super) lost: Option<LostCommits>,
    records: Vec<ControlRecord>,
    next_id: i64,
}

impl MemoryStore {
    pub(super) fn new(now: UnixMs, keys: impl IntoIterator<Item = VaultKey>) -> Self {
        Self {
            now,
            keys: keys.into_iter().map(|key| (key.id.clone(), key)).collect(),
            rows: BTreeMap::new(),
            requests: BTreeMap::new(),
            flags: BTreeMap::new(),
            audit: Vec::new(),
            lost: None,
            records: Vec::new(),
            next_id: 0,
        }
    }

    /// One batch in one transaction.
    pub(super) fn run(&mut self, batch: &[Work]) -> Vec<Answer> {
        let wanted = Wanted::by(batch);
        let mut book = Book::open(self.load(&wanted), TIMES);
        let answers = batch
            .iter()
            .map(|work| book.run(work).expect("the books can be kept"))
            .collect();
        self.commit(&book);
        answers
    }

    pub(super) fn reserve(&mut self, ask: &Ask) -> Verdict {
        match self.run(&[Work::Reserve(Box::new(ask.clone()))]).pop() {
            Some(Answer::Verdict(verdict)) => verdict,
            other => panic!("a reserve answered {other:?}"),
        }
    }

    pub(super) fn settle(&mut self, reservation: &Reservation, outcome: Outcome) -> Settled {
        let reservation = reservation.clone();
        let report = Report {
            reservation,
            outcome,
        };
        match self.run(&[Work::Settle(Box::new(report))]).pop() {
            Some(Answer::Settled(settled)) => settled,
            other => panic!("a settle answered {other:?}"),
        }
    }

    pub(super) fn control(&mut self, control: Control) -> Result<ControlDone, ControlError> {
        let request = ControlRequest {
            control,
            actor: "operator".to_owned(),
            idempotency: None,
        };
        self.control_request(request)
    }

    pub(super) fn control_request(
        &mut self,
        request: ControlRequest,
    ) -> Result<ControlDone, ControlError> {
        match self.run(&[Work::Control(Box::new(request))]).pop() {
            Some(Answer::Control(done)) => done,
            other => panic!("a command answered {other:?}"),
        }
    }

    fn load(&mut self, wanted: &Wanted) -> Loaded {
        let requests: Vec<Request> = wanted
            .requests
            .iter()
            .filter_map(|digest| self.requests.get(digest).cloned())
            .collect();
        let records: Vec<ControlRecord> = self
            .records
            .iter()
            .filter(|record| wanted.control_keys.contains(&record.key.digest))
            .cloned()
            .collect();
        let mut ids: BTreeSet<ReservationId> = wanted.reservations.clone();
        ids.extend(requests.iter().map(|request| request.reservation));
        for row in self.rows.values() {
            let live = row.state != State::Released;
            let mut claims = row.slot_claim.iter().chain(&row.intent_claim);
            let claimed = live && claims.any(|claim| wanted.claims.contains(claim));
            let object = row.object_id.clone().map(|id| (row.account.clone(), id));
            let is_object = object.is_some_and(|object| wanted.objects.contains(&object));
            let late = row.state == State::InFlight && row.send.deadline <= self.now;
            if claimed || is_object || (wanted.overdue && late) {
                ids.insert(row.id);
            }
        }
        let key_wanted = |key: &&VaultKey| {
            let named = records
                .iter()
                .any(|record| record.subject == key.id.as_str());
            named || wanted.vault_keys.contains(&key.id)
        };
        let fresh_ids = (0..wanted.fresh_ids).map(|_| self.fresh_id()).collect();
        Loaded {
            now: self.now,
            vault_keys: self.keys.values().filter(key_wanted).cloned().collect(),
            reservations: ids
                .iter()
                .filter_map(|id| self.rows.get(id).cloned())
                .collect(),
            requests,
            flags: Vec::new(),
            control_records: records,
            feed_cursors: Vec::new(),
            audit_tail: self.audit.last().map_or([0; 32], |entry| entry.hash),
            lost: self.lost.clone(),
            fresh_ids,
        }
    }

    fn fresh_id(&mut self) -> ReservationId {
        self.next_id += 1;
        ReservationId(self.next_id)
    }

    fn commit(&mut self, book: &Book) {
        let changes = book.changes();
        self.lost = self.lost.take().filter(|_| !changes.lost_ended);
        for id in changes.new_keys.keys() {
            self.keys.insert(id.clone(), book.vault_keys[id].clone());
        }
        for id in &changes.changed_keys {
            let stored = self.keys.get_mut(id).unwrap();
            let caps = std::mem::take(&mut stored.caps);
            *stored = VaultKey {
                caps,
                ..book.vault_keys[id].clone()
            };
        }
        for (id, currency) in changes.new_caps.iter().chain(&changes.changed_caps) {
            let cap = book.cap(id, *currency).unwrap().clone();
            let caps = &mut self.keys.get_mut(id).unwrap().caps;
            caps.retain(|stored| stored.currency != *currency);
            caps.push(cap);
            caps.sort_by_key(|cap| cap.currency);
        }
        self.commit_rows(book);
        for (flag, count) in &changes.flags {
            assert!(self.rows.contains_key(&flag.0), "a flag on a stored row");
            *self.flags.entry(*flag).or_insert(0) += count;
        }
        self.audit.extend(changes.audit.iter().cloned());
        self.records.extend(changes.control_records.iter().cloned());
        self.compare(book);
    }

    fn commit_rows(&mut self, book: &Book) {
        let changes = book.changes();
        for id in &changes.new_reservations {
            let row = book.reservation(*id).unwrap().clone();
            assert_eq!(row.version, 1);
            assert!(self.rows.insert(*id, row).is_none(), "{id} is new");
        }
        for (id, version) in &changes.changed_reservations {
            let row = book.reservation(*id).unwrap().clone();
            let old = self.rows.insert(*id, row.clone()).unwrap();
            assert_eq!((old.version, row.version), (*version, version + 1));
        }
        for digest in &changes.new_requests {
            let request = book.request(*digest).unwrap().clone();
            assert!(self.requests.insert(*digest, request).is_none());
        }
        for (digest, from) in &changes.moved_requests {
            let request = book.request(*digest).unwrap().clone();
            let old = self.requests.insert(*digest, request).unwrap();
            assert_eq!(old.reservation, *from);
        }
        let mut claims = BTreeSet::new();
        for row in self
            .rows
            .values()
            .filter(|row| row.state != State::Released)
        {
            for claim in row.slot_claim.iter().chain(&row.intent_claim) {
                assert!(claims.insert(*claim), "two rows hold one claim: {row:?}");
            }
        }
    }

    /// Everything that differs from what was loaded is named in the changes.
    fn compare(&self, book: &Book) {
        for (id, key) in &book.vault_keys {
            assert_eq!(self.keys.get(id), Some(key));
        }
        for (id, row) in &book.reservations {
            assert_eq!(self.rows.get(id), Some(row));
        }
        for (digest, request) in &book.requests {
            assert_eq!(self.requests.get(digest), Some(request));
        }
    }

    pub(super) fn has_flag(&self, kind: FlagKind) -> bool {
        self.flags.keys().any(|flag| flag.1 == kind)
    }
}
