//! Ways out for an operator: a vault key that was lost too, a connected account that is gone.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::json;
use spendcap::reconcile::gap::{GapEnd, GapError, GapOrder, GapReader};
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT;
use spendcap::stripe::read::{ReadAnswer, ReadError, Reading, StripeRead};

use super::{charge, long_ago, reconcile};
use crate::support::hold::note_lost_commits;
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, World};

#[tokio::test(flavor = "multi_thread")]
async fn the_charges_of_a_lost_vault_key_go_to_the_one_that_is_issued_again_and_named() {
    let world = World::on(LedgerKind::Sqlite).await;
    let bearer = format!("Bearer {SECRET_KEY_DEFAULT}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
        ("idempotency-key", "first"),
    ];
    let url = format!("{}/v1/charges", world.sandbox.base_url());
    let body = "amount=9900&currency=usd&customer=cus_1";
    let made = world.client.send(Method::POST, &url, &headers, body).await;
    made.expect(200);
    world.clock.advance(Duration::from_mins(5));
    let key = world.issue(9_900, json!({})).await;
    note_lost_commits(world.ledger_url()).await;

    let since = long_ago(&world);
    let refused = reconcile(&world, json!({"since": since})).await.expect(200);
    let refused = refused.json();
    assert_eq!(refused["status"], "unattributed", "{refused}");
    let named = json!({"since": since, "vault_key": key.id});
    let ended = reconcile(&world, named).await.expect(200).json();
    assert_eq!(
        (&ended["status"], &ended["rebuilt"]),
        (&json!("ended"), &json!(1)),
        "{ended}"
    );
    let again = world.charge(&key, charge("cus_1", Some("fresh"))).await;
    again.expect(200);
    assert_eq!(world.made().len(), 1, "charged once");
    world.assert_balanced(&key).await;
}

/// A charge authorised past spendcap before the gap, captured through it, and the capture's row lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_capture_of_a_charge_that_was_made_elsewhere_counts_against_the_cap() {
    for by_spendcap in [true, false] {
        let world = World::on(LedgerKind::Sqlite).await;
        let key = world.issue(20_000, json!({})).await;
        let stripe = world.sandbox.base_url();
        let authorise = Charge {
            more: "&capture=false",
            ..charge("cus_1", None)
        };
        let made = try_charge(&world.client, &stripe, SECRET_KEY_DEFAULT, authorise).await;
        let charge_id = made.unwrap().expect(200).json()["id"].clone();
        let charge_id = charge_id.as_str().unwrap();
        world.clock.advance(Duration::from_hours(3));
        let bearer = format!("Bearer {SECRET_KEY_DEFAULT}");
        let mut headers = vec![("authorization", bearer.as_str())];
        // What passes spendcap carries a key; the Dashboard's captures have none.
        headers.extend(by_spendcap.then_some(("idempotency-key", "capture-1")));
        let url = format!("{stripe}/v1/charges/{charge_id}/capture");
        let captured = world.client.send(Method::POST, &url, &headers, "").await;
        captured.expect(200);
        world.clock.advance(Duration::from_mins(5));
        note_lost_commits(world.ledger_url()).await;

        for rebuilt in [i32::from(by_spendcap), 0] {
            let since = world.clock.now().unix_seconds() - 3600;
            let ended = reconcile(&world, json!({"since": since})).await;
            assert_eq!(ended.expect(200).json()["rebuilt"], rebuilt);
        }
        let rows = world.reservations(&key).await;
        assert_eq!(rows.len(), usize::from(by_spendcap), "{rows:?}");
        for row in &rows {
            assert_eq!(row["operation"], "charges.capture");
            assert_eq!(row["object_id"], charge_id);
            world.assert_balanced(&key).await;
        }
        // It holds nobody's place: the customer's own charge is made.
        world
            .charge(&key, charge("cus_1", Some("own")))
            .await
            .expect(200);
    }
}

/// Shows an empty feed of the platform, and no other account's.
#[derive(Debug)]
struct Disconnected;

impl StripeRead for Disconnected {
    fn read<'a>(&'a self, _path_and_query: &'a str, account: &'a str) -> Reading<'a> {
        let (status, body) = if account.is_empty() {
            let empty = r#"{"object":"list","data":[],"has_more":false}"#;
            (StatusCode::OK, empty)
        } else {
            (StatusCode::FORBIDDEN, "{}")
        };
        let body = Bytes::from_static(body.as_bytes());
        Box::pin(async move { Ok(ReadAnswer { status, body }) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_gone_refuses_money_until_an_operator_leaves_it() {
    let world = World::on(LedgerKind::Sqlite).await;
    let accounts = json!({"accounts": ["acct_gone"]});
    let key = world.issue(9_900, accounts).await;
    note_lost_commits(world.ledger_url()).await;
    let reader = GapReader {
        ledger: world.apps[0].ledger().clone(),
        stripe: Arc::new(Disconnected),
        clock: world.clock.clone(),
    };
    let mut order = GapOrder {
        since: world.clock.now().plus_ms(-3_600_000),
        vault_key: None,
        leave: None,
        actor: "ops".to_owned(),
    };
    let account = "acct_gone".to_owned();
    let error = ReadError::Forbidden;
    let unread = Err(GapError::Account { account, error });
    assert_eq!(reader.read(&order).await, unread);
    world.charge(&key, charge("cus_1", None)).await.expect(503);

    order.leave = Some("INC-1: disconnected in May".to_owned());
    let left = reader.read(&order).await.unwrap();
    assert_eq!(left.end, GapEnd::Ended);
    world.charge(&key, charge("cus_1", None)).await.expect(200);
    let log = world.admin(Method::GET, "/v1/audit_log", None).await;
    assert!(log.text.contains("accounts not read: acct_gone"), "{log:?}");
}
