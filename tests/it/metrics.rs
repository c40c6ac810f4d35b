//! `/metrics`: the numbers are right, on both ledgers, and Prometheus's own tool finds nothing to say.

use serde_json::json;

use crate::support::patience::until;
use crate::support::scrape::Scrape;
use crate::support::{Charge, LedgerKind, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_and_its_repeat_are_counted_and_move_the_gauges() {
    for ledger in [LedgerKind::Sqlite, LedgerKind::Postgres] {
        let world = World::on(ledger).await;
        let key = world.issue(30_000, json!({})).await;
        world.charge(&key, Charge::default()).await.expect(200);
        world.charge(&key, Charge::default()).await.expect(200);
        let cap = [
            ("vault_key", key.id.as_str()),
            ("billing_period", "2026-08"),
            ("currency", "usd"),
        ];
        let seen = until("the settle shows", async || {
            let seen = Scrape::of(&world, 0).await;
            (seen.find("spendcap_settled_minor", &cap) == Some(9900)).then_some(seen)
        })
        .await;
        assert_eq!(seen.get("spendcap_expected_total_minor", &cap), 30_000);
        assert_eq!(seen.get("spendcap_max_amount_minor", &cap), 33_000);
        assert_eq!(seen.sum("spendcap_reserved_minor", &cap), 0);
        assert_eq!(seen.all("spendcap_reserved_minor").count(), 3);
        let requests = |decision| {
            let labels = [("operation", "charges.create"), ("decision", decision)];
            seen.get("spendcap_requests_total", &labels)
        };
        assert_eq!(requests("send"), 1);
        assert_eq!(requests("answer_with_existing"), 1);
        assert_eq!(seen.sum("spendcap_requests_total", &[]), 2);
        assert_eq!(seen.get("spendcap_ledger_up", &[]), 1);
    }
}
