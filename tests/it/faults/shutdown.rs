//! SIGTERM under load, and secrets that change while the process serves.

mod rotation;

use http::Method;
use spendcap::sandbox::{Fault, FaultKind, Moment};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::patience::{until, within};
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, Outside};

const AT_WORK: u32 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_finishes_what_is_under_way_and_leaves_nothing_held() {
    for ledger in [LedgerKind::Sqlite, LedgerKind::Postgres] {
        let settings = [("SPENDCAP_PROXY_DRAIN_MS", "1500")];
        let mut outside = Outside::start(ledger, &settings).await;
        let key = outside.issue(1_000_000).await;
        let at = Moment::BeforeCommit;
        let gate = Fault::new(FaultKind::Gate { at }).method("POST");
        outside.sandbox.add_fault(gate.times(AT_WORK));
        let mut at_work = JoinSet::new();
        for n in 0..AT_WORK {
            let (client, url) = (outside.client.clone(), outside.proxy_url());
            let secret = key.secret.clone();
            at_work.spawn(async move {
                let customer = format!("cus_{n}");
                try_charge(&client, &url, &secret, charge(&customer))
                    .await
                    .unwrap()
            });
        }
        let held = usize::try_from(AT_WORK).unwrap();
        within("requests at Stripe", outside.sandbox.wait_until_held(held)).await;

        outside.daemon.terminate();
        let operator = outside.operator();
        until("it is not ready", async || {
            let ready = operator.admin(Method::GET, "/readyz", None).await;
            (ready.status == 503).then_some(())
        })
        .await;
        operator
            .admin(Method::GET, "/healthz", None)
            .await
            .expect(200);
        // Load balancers have not noticed yet.
        let late = outside.charge(&key, charge("cus_late")).await.expect(200);
        assert_eq!(late.header("connection"), "close");
        until("nobody is let in", async || {
            TcpStream::connect(outside.daemon.proxy).await.err()
        })
        .await;
        assert_eq!(outside.sandbox.held(), held);
        outside.sandbox.release_gate();
        for answer in at_work.join_all().await {
            assert_eq!(answer.expect(200).header("connection"), "close");
        }
        let (status, log) = outside.daemon.ended().await;
        assert_eq!(status.code(), Some(0), "{log}");

        outside.restart().await;
        for state in ["held", "in_flight"] {
            outside.until_state(state, 0).await;
        }
        assert_eq!(outside.sandbox.charges().len(), held + 1);
        outside.assert_balanced(&key).await;
    }
}

fn charge(customer: &str) -> Charge<'_> {
    Charge {
        customer,
        idempotency_key: Some(customer),
        ..Charge::default()
    }
}
