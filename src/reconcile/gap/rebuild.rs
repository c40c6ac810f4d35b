//! One charge of the gap: known, waited for, or to be made again.

use super::find::Found;
use super::{GapError, Run, SKEW_MS, UNATTRIBUTED_MAX, Unattributed};
use crate::domain::evidence::check_made_by;
use crate::domain::id::ReservationId;
use crate::domain::idempotency::{Fingerprint, KeyScope};
use crate::domain::money::AmountMinor;
use crate::domain::operation::{MoneyOperation, Permission};
use crate::domain::outcome::Outcome;
use crate::domain::reservation::{Reservation, SendState, Slot, State};
use crate::domain::settlement::Report;
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;
use crate::ledger::command::{Control, Rebuild};
use crate::reconcile::scan::candidate;
use crate::stripe::answer::ChargeFacts;

impl Run<'_> {
    pub(super) async fn take(&mut self, account: &str, found: Found) -> Result<(), GapError> {
        self.report.charges += 1;
        if self.is_owned(account, &found.charge_id).await? {
            self.report.known += 1;
            return Ok(());
        }
        // Whatever passes spendcap carries a key: the client's, or a derived one.
        let Some(key) = found.key else {
            self.report.passed_over += 1;
            return Ok(());
        };
        let facts = self.charge(account, &found.charge_id).await?;
        let outcome = facts.outcome();
        if matches!(outcome, Outcome::Dead { .. }) {
            self.report.passed_over += 1;
            return Ok(());
        }
        if self.settle_waiting(account, &key, &facts).await? {
            self.report.settled += 1;
            return Ok(());
        }
        let at = match found.operation {
            MoneyOperation::ChargesCreate => facts.created.unwrap_or(found.at),
            MoneyOperation::ChargesCapture => found.at,
        };
        let mut candidates = self.candidates(account, &facts, at);
        if candidates.len() > 1
            && let Some(named) = &self.order.vault_key
        {
            candidates.retain(|key| key.id == *named);
        }
        if let [vault_key] = candidates.as_slice() {
            let wanted = rebuilt(vault_key, account, found.operation, &key, &facts, at);
            return self.rebuild(wanted, &key).await;
        }
        // Named, and not among them, leaves none: then it is nobody's as well.
        self.leave(account, &facts, at);
        Ok(())
    }

    async fn is_owned(&self, account: &str, charge_id: &str) -> Result<bool, GapError> {
        let reads = self.reader.ledger.reads();
        let owner = reads.object_owner(account, charge_id).await?;
        Ok(owner.is_some_and(|owner| owner.state != State::Released))
    }

    /// A reservation that was sent under this key and has no answer yet gets it.
    async fn settle_waiting(
        &self,
        account: &str,
        key: &str,
        facts: &ChargeFacts,
    ) -> Result<bool, GapError> {
        let rows = self.reader.ledger.reads().unanswered(key, account).await?;
        let made = candidate(facts);
        let waiting = rows.into_iter().find(|row| {
            row.operation.creates() && row.object_id.is_none() && check_made_by(row, &made).is_ok()
        });
        let Some(reservation) = waiting else {
            return Ok(false);
        };
        let report = Report {
            reservation,
            outcome: facts.outcome(),
        };
        self.reader.ledger.settle(report).await.stored().await?;
        Ok(true)
    }

    /// Under which vault keys the charge can have been made.
    fn candidates(&self, account: &str, facts: &ChargeFacts, at: UnixMs) -> Vec<VaultKey> {
        let may_have = |key: &&VaultKey| {
            // A vault key may be lost as well, and issued again since: then the operator names it.
            let named = self.order.vault_key.as_ref() == Some(&key.id);
            let created_at = Some(key.created_at).filter(|_| !named);
            let begins = key.starts_at.max(created_at);
            let valid = begins.is_none_or(|begins| begins.plus_ms(-SKEW_MS) <= at)
                && at <= key.expires_at.plus_ms(SKEW_MS);
            let for_account = account.is_empty() || key.accounts.iter().any(|it| it == account);
            valid
                && for_account
                && key.cap(facts.currency).is_some()
                && key.may(Permission::ChargesWrite)
        };
        self.keys.iter().filter(may_have).cloned().collect()
    }

    async fn rebuild(&mut self, reservation: Reservation, key: &str) -> Result<(), GapError> {
        let scope = KeyScope {
            account: &reservation.account,
            livemode: self.livemode,
            billing_period: &reservation.billing_period,
        };
        let rebuild = Rebuild {
            request: scope.given(key),
            reservation,
            since: self.order.since,
        };
        match self.control(Control::Rebuild(Box::new(rebuild))).await? {
            Ok(()) => self.report.rebuilt += 1,
            // Its own answer came meanwhile, or another run was first.
            Err(_) => self.report.known += 1,
        }
        Ok(())
    }

    fn leave(&mut self, account: &str, facts: &ChargeFacts, at: UnixMs) {
        self.report.unattributed_count += 1;
        if self.report.unattributed.len() < UNATTRIBUTED_MAX {
            let candidates = self.candidates(account, facts, at);
            self.report.unattributed.push(Unattributed {
                charge: facts.id.clone(),
                account: account.to_owned(),
                customer: facts.customer.clone(),
                amount: facts.amount,
                currency: facts.currency,
                created: at,
                candidates: candidates.into_iter().map(|key| key.id).collect(),
            });
        }
    }
}

/// The reservation as the charge says it was. Its reference is not known: none is claimed. A capture of a
/// charge that was made elsewhere claims no place, as it did not when it was reserved.
fn rebuilt(
    key: &VaultKey,
    account: &str,
    operation: MoneyOperation,
    upstream_key: &str,
    facts: &ChargeFacts,
    at: UnixMs,
) -> Reservation {
    let customer = facts.customer.clone().filter(|_| operation.creates());
    let slot = customer.map(|customer| Slot {
        account: account.to_owned(),
        namespace: key.namespace.clone(),
        billing_period: key.billing_period.clone(),
        customer,
        reference: String::new(),
    });
    let intent = slot
        .as_ref()
        .map(|slot| slot.intent_digest(operation, facts.amount, facts.currency));
    let (state, reserved, settled) = match facts.outcome() {
        Outcome::Settled { amount, .. } => (State::Settled, AmountMinor::ZERO, amount),
        Outcome::Open { ceiling, .. } => (State::Open, ceiling, AmountMinor::ZERO),
        _ => (State::Released, AmountMinor::ZERO, AmountMinor::ZERO),
    };
    Reservation {
        id: ReservationId(0),
        version: 1,
        vault_key: key.id.clone(),
        account: account.to_owned(),
        namespace: key.namespace.clone(),
        billing_period: key.billing_period.clone(),
        customer: facts.customer.clone(),
        reference: String::new(),
        slot_claim: slot.as_ref().map(Slot::digest),
        intent_claim: intent,
        operation,
        currency: facts.currency,
        amount: if operation.creates() {
            facts.amount
        } else {
            settled
        },
        amount_reserved: reserved,
        amount_settled: settled,
        amount_refunded: facts.amount_given_back,
        state,
        object_id: Some(facts.id.clone()),
        send: SendState {
            operation,
            upstream_key: upstream_key.to_owned(),
            fingerprint: Fingerprint::UNKNOWN,
            sends: 1,
            unproven: 0,
            first_unproven_at: None,
            forward_by: at,
            deadline: at,
        },
        attempt: 0,
        outcome_stored: true,
        server_error: false,
        created_at: at,
        resolved_at: (state == State::Settled).then_some(at),
    }
}
