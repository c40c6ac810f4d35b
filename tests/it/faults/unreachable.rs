//! Nobody listens where Stripe should be: nothing was sent, so nothing stays reserved.

use serde_json::json;

use crate::support::http::Reply;
use crate::support::relay::ClosedPort;
use crate::support::{Charge, LedgerKind, VaultKey, World};

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_sent_is_given_back_and_goes_through_later() {
    for ledger in [LedgerKind::Sqlite, LedgerKind::Postgres] {
        let port = ClosedPort::take();
        let url = format!("http://{}", port.addr());
        let settings = [("SPENDCAP_UPSTREAM_BASE_URL", url.as_str())];
        let mut world = World::start(ledger, 0, &settings).await;
        let relay = port.open(world.sandbox.addr());
        world.add_replica().await;
        let port = relay.close().await;
        let asked_at_start = world.sandbox.requests_total();
        let mut wanted = Vec::new();
        for policy in ["replay", "reject", "flag"] {
            let more = json!({ "on_duplicate": policy, "namespace": policy });
            let key = world.issue(100_000, more).await;
            for keys in [("same", "same"), ("fresh", "other"), ("", "")] {
                wanted.push((key.clone(), format!("cus_{policy}_{}", keys.0), keys));
            }
        }
        for (key, customer, keys) in &wanted {
            let refused = ask(&world, key, customer, keys.0).await.expect(502);
            assert_eq!(refused.code(), "upstream_unreachable");
            assert_eq!(refused.header("stripe-should-retry"), "true");
            let filter = format!("customer={customer}");
            let rows = world.operator().reservations(&filter).await;
            assert_eq!(rows[0]["state"], "released", "{rows:?}");
            assert_eq!(world.cap(key, "usd").await["reserved"], 0);
        }
        assert_eq!(world.sandbox.requests_total(), asked_at_start);
        let _relay = port.open(world.sandbox.addr());
        for (key, customer, keys) in &wanted {
            ask(&world, key, customer, keys.1).await.expect(200);
            assert_eq!(world.sandbox.charges_of(customer).len(), 1);
        }
        let mut settled = 0;
        for (key, ..) in wanted.iter().step_by(3) {
            let cap = world.cap(key, "usd").await;
            assert_eq!(cap["reserved"], 0);
            settled += cap["settled"].as_i64().unwrap();
        }
        assert_eq!(settled, world.taken());
    }
}

async fn ask(world: &World, key: &VaultKey, customer: &str, name: &str) -> Reply {
    let idempotency_key = format!("{customer}-{name}");
    let charge = Charge {
        customer,
        idempotency_key: (!name.is_empty()).then_some(&idempotency_key),
        ..Charge::default()
    };
    world.charge(key, charge).await
}
