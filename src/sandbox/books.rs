//! Everything one Stripe account holds: charges, customers, events, money and idempotency keys.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::balance::Transaction;
use super::charges::Charge;
use super::customers::Customer;
use super::events::Event;
use super::idempotency::KeyStore;
use super::shelf::Shelf;

/// One account. Objects and idempotency keys are separate per account (contract §2.1).
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) keys: KeyStore,
    books: Mutex<Books>,
}

/// The objects of one account. Locked for the few microseconds of one command, never across an
/// await.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) charges: Shelf<Arc<Charge>>,
    pub(crate) customers: Shelf<Arc<Customer>>,
    pub(crate) events: Shelf<Arc<Event>>,
    pub(crate) transactions: Shelf<Arc<Transaction>>,
    /// Net money per currency, in minor units.
    pub(crate) balance: BTreeMap<String, i64>,
}

impl Account {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            keys: KeyStore::default(),
            books: Mutex::default(),
        }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
