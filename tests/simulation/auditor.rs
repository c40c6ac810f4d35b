//! The auditor: is told what the ledger stored and what Stripe did, and knows nothing of how either came
//! to be. It shares no code with the product: plain numbers and texts, compared after every step.

use std::collections::{BTreeMap, BTreeSet};

pub(super) use super::facts::{Charge, Key, Row, Sent, Stored};

/// What the auditor says: nothing, or what is wrong.
pub(super) type Verdict = Result<(), String>;

/// How long after its reservation was stored a request may still leave (design §2.4).
const FORWARD_WINDOW_MS: i64 = 30_000;

/// How long after its last reservation a request that was not given up may be carried out: until its
/// deadline, and some minutes for a slow Stripe.
const WINDOW_MS: i64 = 300_000;

/// What the auditor knows.
pub(super) struct Auditor {
    /// One charge for each slot and amount is promised.
    slots_are_single: bool,
    keys: BTreeMap<String, Key>,
    rows: BTreeMap<i64, Row>,
    /// Which reservation each key was last given to.
    sent_under: BTreeMap<String, i64>,
    /// When each reservation was last stored to be sent.
    reserved_at: BTreeMap<i64, i64>,
    /// The highest cap each vault key ever had.
    highest: BTreeMap<String, i64>,
    sent: BTreeMap<u64, Sent>,
    /// Which reservation each request left for.
    sent_for: BTreeMap<u64, i64>,
    /// The key of each request that left.
    key_of: BTreeMap<u64, String>,
    /// Keys that Stripe remembers: another request under them does nothing.
    remembered: BTreeSet<String>,
    /// Requests that Stripe is carrying out, or will finish later.
    under_way: BTreeSet<u64>,
    charges: BTreeMap<String, Charge>,
}

impl Auditor {
    pub(super) fn new(slots_are_single: bool) -> Self {
        Self {
            slots_are_single,
            keys: BTreeMap::new(),
            rows: BTreeMap::new(),
            sent_under: BTreeMap::new(),
            reserved_at: BTreeMap::new(),
            highest: BTreeMap::new(),
            sent: BTreeMap::new(),
            sent_for: BTreeMap::new(),
            key_of: BTreeMap::new(),
            remembered: BTreeSet::new(),
            under_way: BTreeSet::new(),
            charges: BTreeMap::new(),
        }
    }

    /// A transaction was stored.
    pub(super) fn stored(&mut self, stored: Stored) -> Verdict {
        let used: BTreeMap<String, i64> = self
            .keys
            .values()
            .map(|key| (key.id.clone(), key.reserved + key.settled))
            .collect();
        for key in stored.keys {
            let highest = self.highest.entry(key.id.clone()).or_insert(0);
            *highest = (*highest).max(key.max_amount);
            self.keys.insert(key.id.clone(), key);
        }
        for row in stored.rows {
            let old = self.rows.get(&row.id);
            if old.map(|old| &old.upstream_key) != Some(&row.upstream_key) {
                self.sent_under.insert(row.upstream_key.clone(), row.id);
            }
            if old.map(|old| old.sends) != Some(row.sends) {
                self.reserved_at.insert(row.id, stored.at_ms);
            }
            self.rows.insert(row.id, row);
        }
        for (row, kind) in stored.flags {
            let late = kind == "late_settlement" && !self.was_late_news(row);
            if late || ["double_charge", "settled_above_reserved"].contains(&kind) {
                return Err(format!("{kind} on {row}: it cannot come of true answers"));
            }
        }
        for id in stored.bypasses {
            let charge = self.charges.get(&id);
            if charge.is_none_or(|charge| charge.made_by.is_some()) {
                return Err(format!(
                    "a charge of our own is said to have gone around: {charge:?}"
                ));
            }
        }
        for key in self.keys.values() {
            let used_now = key.reserved + key.settled;
            let before = used.get(&key.id).copied().unwrap_or(0);
            if used_now > key.max_amount && used_now > before {
                return Err(format!("invariant 1: new spend above the cap: {key:?}"));
            }
        }
        self.check()
    }

    /// An old answer may say that an authorisation is open which was voided, and given back, since.
    fn was_late_news(&self, row: i64) -> bool {
        let object = self.rows.get(&row).and_then(|row| row.object_id.as_ref());
        let charge = object.and_then(|id| self.charges.get(id));
        charge.is_some_and(|charge| charge.voided)
    }

    /// The first byte of a request left a proxy.
    pub(super) fn left(&mut self, sent: Sent) -> Verdict {
        let Some(row) = self.sent_under.get(&sent.key) else {
            return Err(format!("sent without a stored reservation: {sent:?}"));
        };
        let late = self
            .reserved_at
            .get(row)
            .is_none_or(|at| sent.at_ms - at > FORWARD_WINDOW_MS);
        if late {
            return Err(format!("left after its time: {sent:?} for {row}"));
        }
        self.sent_for.insert(sent.number, *row);
        self.key_of.insert(sent.number, sent.key.clone());
        self.sent.insert(sent.number, sent);
        self.check()
    }

    /// Stripe began to carry a request out, and remembers its key.
    pub(super) fn began(&mut self, number: u64) -> Verdict {
        if let Some(sent) = self.sent.get(&number) {
            self.remembered.insert(sent.key.clone());
            self.under_way.insert(number);
        }
        self.check()
    }

    /// Nothing more will come of a request.
    pub(super) fn over(&mut self, number: u64) -> Verdict {
        self.sent.remove(&number);
        self.under_way.remove(&number);
        self.check()
    }

    /// Stripe forgot a key.
    pub(super) fn forgot(&mut self, key: &str) -> Verdict {
        self.remembered.remove(key);
        self.check()
    }

    /// A charge was made, captured or voided.
    pub(super) fn charge(&mut self, charge: Charge) -> Verdict {
        self.charges.insert(charge.id.clone(), charge);
        self.check()
    }

    /// A client was told that this charge is what it asked for.
    pub(super) fn told(&self, id: &str, slot: &str, amount: i64) -> Verdict {
        match self.charges.get(id) {
            Some(charge) if charge.slot == slot && charge.amount == amount => Ok(()),
            other => Err(format!(
                "a client of {slot} for {amount} was told {id}: {other:?}"
            )),
        }
    }

    fn check(&self) -> Verdict {
        self.sums()?;
        self.money()?;
        self.covered()?;
        self.once()
    }

    /// A cap's sums are those of its reservations.
    fn sums(&self) -> Verdict {
        for key in self.keys.values() {
            let rows = || self.rows.values().filter(|row| row.vault_key == key.id);
            let reserved: i64 = rows().map(|row| row.reserved).sum();
            let settled: i64 = rows().map(|row| row.settled).sum();
            if (reserved, settled) != (key.reserved, key.settled) {
                return Err(format!("sums: {reserved} + {settled} in rows, {key:?}"));
            }
        }
        let stray = self
            .rows
            .values()
            .find(|row| row.reserved != 0 && !["in_flight", "held", "open"].contains(&row.state));
        stray.map_or(Ok(()), |row| Err(format!("reserved for nothing: {row:?}")))
    }

    /// Invariant 2: what Stripe took through a vault key never passes its cap.
    fn money(&self) -> Verdict {
        for (id, highest) in &self.highest {
            let taken: i64 = self
                .charges
                .values()
                .filter(|charge| self.payer(charge) == Some(id))
                .filter_map(|charge| charge.captured)
                .sum();
            if taken > *highest {
                return Err(format!(
                    "invariant 2: Stripe took {taken} through {id}, cap {highest}"
                ));
            }
        }
        Ok(())
    }

    fn payer<'a>(&'a self, charge: &'a Charge) -> Option<&'a String> {
        let made_for = charge.made_by.and_then(|number| self.sent_for.get(&number));
        let row = match made_for {
            Some(id) => self.rows.get(id),
            None => self.owners(charge).next(),
        };
        row.map(|row| &row.vault_key)
    }

    fn owners<'a>(&'a self, charge: &'a Charge) -> impl Iterator<Item = &'a Row> {
        self.rows
            .values()
            .filter(|row| row.object_id.as_ref() == Some(&charge.id))
    }

    /// What a charge took, or may take, is covered by the reservations it belongs to; so is what a
    /// request that is still on its way may do.
    fn covered(&self) -> Verdict {
        for charge in self.charges.values() {
            let Some(exposed) = charge.exposed() else {
                continue;
            };
            let cover = self.cover(charge);
            if cover < exposed {
                return Err(format!(
                    "{charge:?} is covered by {cover}: {:?}",
                    self.near(charge)
                ));
            }
        }
        for sent in self.sent.values() {
            let under_way = self.under_way.contains(&sent.number);
            if !under_way && self.remembered.contains(&sent.key) {
                continue;
            }
            let Some(cover) = self.cover_of(sent) else {
                continue;
            };
            if cover < sent.amount {
                return Err(format!("{sent:?} may still run, covered by {cover}"));
            }
        }
        Ok(())
    }

    /// `None` where it can do nothing.
    fn cover_of(&self, sent: &Sent) -> Option<i64> {
        if let Some(id) = &sent.charge {
            let charge = self.charges.get(id)?;
            let open = charge.captured.is_none() && !charge.voided;
            return open.then(|| self.cover(charge));
        }
        let row = self.sent_for.get(&sent.number);
        let row = row.and_then(|id| self.rows.get(id));
        Some(row.map_or(0, |row| row.reserved + row.settled))
    }

    fn cover(&self, charge: &Charge) -> i64 {
        self.near(charge)
            .iter()
            .map(|row| row.reserved + row.settled)
            .sum()
    }

    /// The reservations that know the charge, or that it was made for.
    fn near(&self, charge: &Charge) -> Vec<&Row> {
        let made_for = charge.made_by.and_then(|number| self.sent_for.get(&number));
        let belongs = |row: &&Row| match &row.object_id {
            Some(object_id) => *object_id == charge.id,
            None => made_for == Some(&row.id),
        };
        self.rows.values().filter(belongs).collect()
    }

    /// One charge for one idempotency key, however old it is, and for one slot and amount.
    fn once(&self) -> Verdict {
        let (mut keys, mut slots) = (BTreeMap::new(), BTreeMap::new());
        for charge in self.charges.values().filter(|charge| !charge.voided) {
            let Some(number) = charge.made_by else {
                continue;
            };
            let key = self.key_of.get(&number);
            let by_key = key.and_then(|key| keys.insert(key, charge));
            let by_slot = self.slots_are_single.then_some(());
            let by_slot =
                by_slot.and_then(|()| slots.insert((&charge.slot, charge.amount), charge));
            if let Some(first) = by_key.or(by_slot) {
                return Err(format!("charged twice: {first:?} and {charge:?}"));
            }
        }
        if !self.slots_are_single {
            return Ok(());
        }
        // A reservation that is given up keeps its place: nobody knows that it made nothing.
        let mut places = BTreeMap::new();
        for row in self.rows.values().filter(|row| row.state != "released") {
            if let Some(intent) = &row.intent
                && let Some(first) = places.insert(intent, row)
            {
                return Err(format!("one place is held twice: {first:?} and {row:?}"));
            }
        }
        Ok(())
    }

    /// After everything arrived and everybody who could find out did: nothing is unknown, and the ledger
    /// says what Stripe took.
    pub(super) fn at_rest(&self) -> Verdict {
        self.check()?;
        if let Some(row) = self
            .rows
            .values()
            .find(|row| ["in_flight", "held"].contains(&row.state))
        {
            return Err(format!("still unknown at rest: {row:?}"));
        }
        self.charges
            .values()
            .try_for_each(|charge| self.counted(charge))?;
        let known = |row: &&Row| {
            row.object_id
                .as_ref()
                .is_none_or(|id| !self.charges.contains_key(id))
        };
        match self.rows.values().filter(known).find(|row| row.settled > 0) {
            Some(row) => Err(format!("settled without a charge: {row:?}")),
            None => Ok(()),
        }
    }

    /// A charge is counted by the reservation it was made for; and beside it by one that captured it
    /// while nobody knew who had made it: too much, never too little.
    fn counted(&self, charge: &Charge) -> Verdict {
        let (adopted, made): (Vec<&Row>, Vec<&Row>) = self
            .owners(charge)
            .filter(|row| row.state != "released")
            .partition(|row| row.adopted);
        let wrong = || Err(format!("{charge:?} is counted by {made:?} and {adopted:?}"));
        let mut owners = made.iter().chain(&adopted);
        if made.len() > 1 || adopted.len() > 1 {
            return wrong();
        }
        let right = match charge.captured {
            Some(captured) => {
                let anybody = !made.is_empty() || !adopted.is_empty() || charge.made_by.is_none();
                anybody && owners.all(|row| row.settled == captured)
            }
            // Nobody told the ledger that a voided one will not be captured any more.
            None if charge.voided => owners.all(|row| row.state == "open"),
            None if charge.made_by.is_none() => owners.all(|row| row.settled == 0),
            None => made.len() == 1 && owners.all(|row| row.settled == 0),
        };
        if right { Ok(()) } else { wrong() }
    }

    /// After the reconciler had its time: what Stripe shows is known.
    pub(super) fn reconciled(&self) -> Verdict {
        for row in self
            .rows
            .values()
            .filter(|row| row.state == "held" && !row.adopted)
        {
            if let Ok(Some(charge)) = self.truth_of(row.id, &row.upstream_key)
                && (charge.captured.is_some() || charge.voided)
                && self.was_in_time(row, &charge)
            {
                return Err(format!("held although Stripe shows {charge:?}: {row:?}"));
            }
        }
        Ok(())
    }

    /// Made while its send was under way, where the reconciler looks for it. What is rolled forward later
    /// is seen by whoever followed the feed then.
    fn was_in_time(&self, row: &Row, charge: &Charge) -> bool {
        let sent = self.reserved_at.get(&row.id).copied().unwrap_or(0);
        charge.made_at_ms - sent < WINDOW_MS
    }

    /// The charge a key made, for an operator who looks into Stripe's dashboard; `Err` while nobody can
    /// say.
    pub(super) fn truth_of(&self, row: i64, key: &str) -> Result<Option<Charge>, ()> {
        let row = self.rows.get(&row).ok_or(())?;
        if self.sent.values().any(|sent| sent.key == key) {
            return Err(());
        }
        Ok(self
            .charges
            .values()
            .find(|charge| self.near(charge).iter().any(|near| near.id == row.id))
            .cloned())
    }
}
