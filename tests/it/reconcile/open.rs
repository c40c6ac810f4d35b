//! Objects that are known and still open: they say by themselves what became of them.

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind};

use super::{LEDGERS, at_stripe, reconciling, row_of, until_state};
use crate::support::{Charge, VaultKey, World};

async fn authorise(world: &World, key: &VaultKey) -> String {
    let charge = Charge {
        more: "&capture=false",
        ..Charge::default()
    };
    let made = world.charge(key, charge).await.expect(200).json();
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorisation_that_is_captured_elsewhere_is_settled() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = authorise(&world, &key).await;
        assert_eq!(row_of(&world, "cus_1").await["state"], "open");
        let path = format!("/v1/charges/{charge}/capture");
        at_stripe(&world, &path, "amount=4000").await;
        let row = until_state(&world, "cus_1", "settled").await;
        assert_eq!(row["amount_settled"], 4000, "{row}");
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorisation_that_is_voided_or_expires_gives_the_money_back() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = authorise(&world, &key).await;
        at_stripe(&world, "/v1/refunds", &format!("charge={charge}")).await;
        let row = until_state(&world, "cus_1", "released").await;
        assert_eq!(row["object_id"], charge, "{row}");
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_debit_is_settled_or_given_back_when_it_ends() {
    for kind in LEDGERS {
        for (paid, state) in [(true, "settled"), (false, "released")] {
            let world = reconciling(kind, 1).await;
            let key = world.issue(100_000, json!({})).await;
            let charge = Charge {
                customer: "cus_pending_1",
                ..Charge::default()
            };
            let made = world.charge(&key, charge).await.expect(200).json();
            assert_eq!(row_of(&world, "cus_pending_1").await["state"], "open");
            assert!(
                world
                    .sandbox
                    .end_pending(made["id"].as_str().unwrap(), paid)
            );
            until_state(&world, "cus_pending_1", state).await;
            world.assert_balanced(&key).await;
        }
    }
}

/// An authorisation whose answer was lost is found as what it is; a capture whose answer was lost is
/// told by the charge.
#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_of_authorisation_and_capture_are_found() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        let lost = Fault::new(FaultKind::CommitThenFin).method("POST");
        world.sandbox.add_fault(lost.clone().once());
        let charge = Charge {
            more: "&capture=false",
            ..Charge::default()
        };
        world.charge(&key, charge).await.expect(504);
        let row = until_state(&world, "cus_1", "open").await;
        let made = &world.made()[0];
        assert_eq!(row["object_id"], made.id, "{row}");

        world.sandbox.add_fault(lost.once());
        let bearer = format!("Bearer {}", key.secret);
        let headers = [("authorization", bearer.as_str())];
        let url = format!("{}/v1/charges/{}/capture", world.proxy_url(0), made.id);
        let captured = world.client.send(Method::POST, &url, &headers, "").await;
        captured.expect(504);
        until_state(&world, "cus_1", "settled").await;
        world.assert_balanced(&key).await;
    }
}
