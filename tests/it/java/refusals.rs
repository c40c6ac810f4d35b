//! What a job sees once the cap is reached, and that it is no declined card.

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind};

use super::jvm::Jvm;
use crate::support::{LedgerKind, World};

/// A cap of $217.80, which fits two charges of $99.00.
const EXPECTED_TOTAL_MINOR: i64 = 19_800;

#[tokio::test(flavor = "multi_thread")]
async fn a_reached_cap_stops_the_run_and_no_card_failed() {
    for status in [402, 403] {
        let world = World::on(LedgerKind::Sqlite).await;
        let more = json!({ "refusal_status": status });
        let key = world.issue(EXPECTED_TOTAL_MINOR, more).await;
        let decline = Fault::new(FaultKind::Decline).customer("cus_declined");
        world.sandbox.add_fault(decline);
        let customers = ["cus_declined", "cus_1", "cus_2", "cus_3"];
        let arguments = [["one-by-one", "stable-key"].as_slice(), &customers].concat();
        let calls = Jvm::start(&world.proxy_url(0), &key.secret, &arguments);
        let calls = calls.ended().await;
        let ends: Vec<_> = calls
            .iter()
            .map(|call| (call.status, call.code.as_str(), call.verdict.as_str()))
            .collect();
        let expected = [
            (402, "card_declined", "CARD_FAILED"),
            (200, "", "PAID"),
            (200, "", "PAID"),
            (status, "spend_cap_reached", "STOP_THE_RUN"),
        ];
        assert_eq!(ends, expected);
        assert_eq!(world.made().len(), 2);
    }
}
