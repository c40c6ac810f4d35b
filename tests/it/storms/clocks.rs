//! The time of day jumps, in a real process: days forward, days back, and right again. Nothing is charged
//! twice by it, nobody has to help afterwards, and the last moment to send does not move with it.

use std::path::PathBuf;
use std::time::Duration;

use spendcap::domain::decision::FORWARD_WINDOW_MS;
use spendcap::sandbox::{Fault, FaultKind, Moment};
use tempfile::NamedTempFile;

use crate::support::patience::{until, within};
use crate::support::relay::Relay;
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, Outside, VaultKey, tls};

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_charges_nobody_twice_and_is_survived_without_help() {
    for ledger in [LedgerKind::Sqlite, LedgerKind::Postgres] {
        let watch = Watch::new();
        let outside = Outside::start(ledger, &watch.settings()).await;
        let key = outside.issue(10_000_000).await;
        outside
            .charge(&key, charge("cus_1", "k1"))
            .await
            .expect(200);
        jump_under_way(&outside, &watch, &key).await;
        jump_while_held(&outside, &watch, ledger, &key).await;
        if ledger == LedgerKind::Sqlite {
            // The vault key expires after forty days; PostgreSQL asks its own clock.
            watch.shows("+60d");
            let refused = outside
                .charge(&key, charge("cus_4", "k4"))
                .await
                .expect(401);
            assert_eq!(refused.code(), "vault_key_expired");
        }
        for (time, customer) in [("-2d", "cus_early"), ("+0", "cus_right")] {
            watch.shows(time);
            let again = format!("{customer}-again");
            for idempotency_key in [customer, &again] {
                let answer = outside.charge(&key, charge(customer, idempotency_key));
                answer.await.expect(200);
            }
            assert_eq!(outside.sandbox.charges_of(customer).len(), 1);
        }
        outside.assert_balanced(&key).await;
    }
}

/// While Stripe works, two days pass: the row is held where the ledger's clock jumps, and the answer
/// settles it.
async fn jump_under_way(outside: &Outside, watch: &Watch, key: &VaultKey) {
    let at = Moment::BeforeCommit;
    let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
    outside.sandbox.add_fault(gate);
    let jump = async {
        within("requests at Stripe", outside.sandbox.wait_until_held(1)).await;
        watch.shows("+2d");
        if outside.ledger_url.starts_with("sqlite") {
            outside.until_state("held", 1).await;
        }
        outside.sandbox.release_gate();
    };
    let (answer, ()) = tokio::join!(outside.charge(key, charge("cus_2", "k2")), jump);
    answer.expect(200);
    watch.shows("+0");
    outside.until_state("held", 0).await;
    outside.charge(key, charge("cus_2", "k2")).await.expect(200);
    outside.assert_balanced(key).await;
}

/// A held row is sent again only while it is certain that Stripe still knows its key. A ledger whose clock
/// is a day ahead, or behind the row, is not certain.
async fn jump_while_held(outside: &Outside, watch: &Watch, ledger: LedgerKind, key: &VaultKey) {
    let lost = Fault::new(FaultKind::CommitThen503).method("POST");
    outside.sandbox.add_fault(lost.once());
    outside.charge(key, charge("cus_3", "k3")).await.expect(503);
    outside.until_state("held", 1).await;
    for time in ["+25h", "-25h"] {
        watch.shows(time);
        if ledger == LedgerKind::Sqlite {
            let posts = posts(outside);
            let refused = outside.charge(key, charge("cus_3", "again")).await;
            assert_eq!(refused.expect(409).code(), "outcome_unknown", "{time}");
            assert_eq!(self::posts(outside), posts);
        }
    }
    watch.shows("+0");
    let answer = outside
        .charge(key, charge("cus_3", "again"))
        .await
        .expect(200);
    let made = outside.sandbox.charges_of("cus_3");
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(answer.json()["id"], made[0].id.as_str());
    outside.assert_balanced(key).await;
}

/// Frozen between the reserve and the send, and the clock set back meanwhile: by the time of day its half
/// minute never ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_does_not_make_a_late_send_timely() {
    let watch = Watch::new();
    let (sandbox, certificate) = tls::sandbox();
    let relay = Relay::to(sandbox.addr());
    let url = format!("https://{}", relay.addr());
    let mut settings = watch.settings();
    settings.push(("SPENDCAP_UPSTREAM_BASE_URL", &url));
    let certificate_file = certificate.path().to_str().unwrap();
    settings.push(("SPENDCAP_UPSTREAM_CA_FILE", certificate_file));
    let outside = Outside::with(sandbox, LedgerKind::Sqlite, &settings).await;
    let key = outside.issue(9_000).await;
    relay.hold();
    let (client, proxy) = (outside.client.clone(), outside.proxy_url());
    let secret = key.secret.clone();
    let first =
        tokio::spawn(
            async move { try_charge(&client, &proxy, &secret, charge("cus_1", "k1")).await },
        );
    outside.until_state("in_flight", 1).await;
    outside.daemon.freeze();
    relay.let_go();
    watch.shows("-2d");
    tokio::time::sleep(Duration::from_millis(FORWARD_WINDOW_MS.unsigned_abs())).await;
    outside.daemon.thaw();
    let answer = within("an answer", first).await.unwrap().unwrap();
    assert_eq!(answer.expect(502).code(), "upstream_unreachable");
    assert_eq!(posts(&outside), 0);
    until("nothing is reserved", async || {
        let cap = outside.operator().cap(&key, "usd").await;
        (cap["reserved"] == 0).then_some(())
    })
    .await;
    watch.shows("+0");
    outside
        .charge(&key, charge("cus_1", "k2"))
        .await
        .expect(200);
    outside.assert_balanced(&key).await;
}

/// What a process takes for the time of day: the machine's, moved by what stands in a file.
struct Watch {
    file: NamedTempFile,
    library: String,
}

impl Watch {
    fn new() -> Self {
        let watch = Self {
            file: NamedTempFile::new().unwrap(),
            library: library().to_str().unwrap().to_owned(),
        };
        watch.shows("+0");
        watch
    }

    fn shows(&self, moved_by: &str) {
        std::fs::write(self.file.path(), moved_by).unwrap();
    }

    fn settings(&self) -> Vec<(&str, &str)> {
        vec![
            ("LD_PRELOAD", &self.library),
            (
                "FAKETIME_TIMESTAMP_FILE",
                self.file.path().to_str().unwrap(),
            ),
            ("FAKETIME_NO_CACHE", "1"),
            // Only the time of day jumps on a real machine.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
    }
}

/// What Debian's faketime brings.
fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap();
    let libraries = folders.map(|entry| {
        let folder = entry.unwrap().path();
        folder.join("faketime/libfaketimeMT.so.1")
    });
    let found = libraries.into_iter().find(|library| library.exists());
    found.unwrap_or_else(|| panic!("faketime is not installed: run ./test once"))
}

fn posts(outside: &Outside) -> usize {
    let requests = outside.sandbox.requests();
    requests.iter().filter(|seen| seen.method == "POST").count()
}

fn charge<'a>(customer: &'a str, idempotency_key: &'a str) -> Charge<'a> {
    Charge {
        customer,
        idempotency_key: Some(idempotency_key),
        ..Charge::default()
    }
}
