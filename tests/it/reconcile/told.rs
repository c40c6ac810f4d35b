//! What a Stripe of the test's own tells, pass by pass: what no real one would do on demand.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use spendcap::clock::Clock;
use spendcap::domain::flag::FlagKind;
use spendcap::domain::outcome::Outcome;
use spendcap::domain::reservation::{Reservation, State};
use spendcap::domain::vault_key::{KeyStatus, VaultKey};
use spendcap::ledger::{FlagFilter, Ledger, Page, ReservationFilter};
use spendcap::reconcile::{ReconcileParts, ReconcileSettings, Reconciler};
use spendcap::stripe::read::{ReadAnswer, Reading, StripeRead};
use spendcap::telemetry::metrics::Metrics;

use crate::ledger::place::Place;
use crate::ledger::scene::{ask, check_sums, issue, reserve, settle, vault_key};

/// Charges, each with one event.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<(Value, String)>>);

impl Told {
    /// A charge of `cus_1` under an idempotency key, made at a unix second.
    fn paid(&self, id: &str, amount: i64, key: &str, created: i64) {
        let charge = json!({"id": id, "object": "charge", "amount": amount, "currency": "usd",
            "customer": "cus_1", "captured": true, "amount_captured": amount,
            "status": "succeeded", "created": created});
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.push((charge, key.to_owned()));
    }

    fn answer(&self, path_and_query: &str) -> Option<Value> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = path_and_query.strip_prefix("/v1/charges/") {
            let (charge, _) = told.iter().find(|(charge, _)| charge["id"] == id)?;
            return Some(charge.clone());
        }
        let query = path_and_query.strip_prefix("/v1/events?")?;
        let second = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            let (_, second) = pairs.find(|(known, _)| known == name)?;
            second.parse::<i64>().ok()
        };
        let stretch = second("created[gte]")?..=second("created[lte]")?;
        let events = told.iter().rev().filter_map(|(charge, key)| {
            let created = charge["created"]
                .as_i64()
                .filter(|at| stretch.contains(at))?;
            Some(
                json!({"id": format!("evt_{}", charge["id"]), "type": "charge.succeeded",
                "created": created, "data": {"object": charge},
                "request": {"id": "req_1", "idempotency_key": key}}),
            )
        });
        let data: Vec<Value> = events.collect();
        Some(json!({"object": "list", "data": data, "has_more": false}))
    }
}

impl StripeRead for Told {
    fn read<'a>(&'a self, path_and_query: &'a str, _: &'a str) -> Reading<'a> {
        let answer = self.answer(path_and_query);
        let status = match answer {
            Some(_) => StatusCode::OK,
            None => StatusCode::NOT_FOUND,
        };
        let body = answer.unwrap_or_default().to_string().into();
        Box::pin(async move { Ok(ReadAnswer { status, body }) })
    }
}

fn reconciler(ledger: &Ledger, stripe: &Arc<Told>, clock: &Clock) -> Reconciler {
    Reconciler::new(ReconcileParts {
        ledger: ledger.clone(),
        stripe: Arc::clone(stripe) as _,
        clock: clock.clone(),
        metrics: Arc::new(Metrics::new().unwrap()),
        settings: ReconcileSettings {
            interval: Duration::from_millis(1),
            reads_per_second: 1000,
            feed_interval: Duration::from_millis(1),
            write_off: false,
        },
    })
}

/// A held create of 9900 by `cus_1` under `k-1`.
async fn held(ledger: &Ledger, key: &VaultKey) -> Reservation {
    issue(ledger, key).await;
    let ticket = reserve(ledger, ask(key, "cus_1", 9900, "k-1")).await;
    settle(ledger, &ticket, Outcome::Unknown).await;
    read(ledger, ticket.reservation()).await
}

async fn read(ledger: &Ledger, row: &Reservation) -> Reservation {
    ledger.reads().reservation(row.id).await.unwrap().unwrap()
}

async fn flags(ledger: &Ledger) -> Vec<(FlagKind, i64)> {
    let (filter, page) = (FlagFilter::default(), Page::default());
    let flags = ledger.reads().flags(&filter, &page);
    let flags = flags.await.unwrap().data.into_iter();
    flags.map(|flag| (flag.kind, flag.count)).collect()
}

#[tokio::test]
async fn two_charges_under_one_key_are_the_double_charge_they_are() {
    for place in [Place::sqlite(), Place::postgres().await] {
        let opened = place.open().await;
        let (ledger, stripe) = (&opened.ledger, Arc::new(Told::default()));
        let key = vault_key(&[("usd", 100_000)]);
        let row = held(ledger, &key).await;
        let now = place.clock.now().unix_seconds();
        stripe.paid("ch_1", 9900, "k-1", now);
        stripe.paid("ch_2", 9900, "k-1", now);
        let mut first = reconciler(ledger, &stripe, &place.clock);
        let mut second = reconciler(ledger, &stripe, &place.clock);
        tokio::join!(first.pass(), second.pass());
        first.pass().await;

        let (filter, page) = (ReservationFilter::default(), Page::default());
        let rows = ledger.reads().reservations(&filter, &page);
        let rows = rows.await.unwrap().data;
        assert_eq!(rows.len(), 2, "{rows:#?}");
        assert!(rows.iter().all(|row| row.state == State::Settled));
        assert_eq!(read(ledger, &row).await.amount_settled.get(), 9900);
        assert_eq!(flags(ledger).await, [(FlagKind::DoubleCharge, 1)]);
        let stopped = ledger.reads().vault_key(&key.id).await.unwrap().unwrap();
        assert_eq!(stopped.status, KeyStatus::Stopped);
        check_sums(ledger).await;
        drop((first, second));
        opened.close().await;
    }
}

/// The feed comes to the row by its key, whatever state it is in: it is no charge that went around.
#[tokio::test]
async fn a_trace_that_comes_after_the_write_off_is_a_late_settlement() {
    let place = Place::sqlite();
    let opened = place.open().await;
    let (ledger, stripe) = (&opened.ledger, Arc::new(Told::default()));
    let mut reconciler = reconciler(ledger, &stripe, &place.clock);
    reconciler.pass().await;
    let key = vault_key(&[("usd", 100_000)]);
    let row = held(ledger, &key).await;
    place.clock.advance(Duration::from_hours(25));
    assert!(ledger.write_off(row.clone()).await.unwrap());
    // Stripe rolled it forward hours after it was sent; another's charge was made beside it.
    let later = row.created_at.unix_seconds() + 20 * 3600;
    stripe.paid("ch_1", 9900, "k-1", later);
    stripe.paid("ch_9", 9901, "k-1", later);
    for _ in 0..40 {
        reconciler.pass().await;
    }
    let row = read(ledger, &row).await;
    assert_eq!(
        (row.state, row.object_id.as_deref()),
        (State::Settled, Some("ch_1"))
    );
    let flagged = [(FlagKind::Bypass, 1), (FlagKind::LateSettlement, 1)];
    let mut found = flags(ledger).await;
    found.sort();
    let mut wanted = flagged.to_vec();
    wanted.sort();
    assert_eq!(found, wanted);
    check_sums(ledger).await;
    drop(reconciler);
    opened.close().await;
}
