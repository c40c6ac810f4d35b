//! Secrets in files are read again when they change; a key of another account or mode is not taken.

use std::path::PathBuf;

use http::Method;
use spendcap::sandbox::{Sandbox, SandboxSettings};
use tempfile::TempDir;

use super::charge;
use crate::support::operator::ADMIN_TOKEN;
use crate::support::patience::until;
use crate::support::relay::Relay;
use crate::support::{LedgerKind, Outside};

const FIRST_KEY: &str = "sk_test_first";
const SECOND_KEY: &str = "sk_test_second";
const OTHER_ACCOUNTS_KEY: &str = "sk_test_of_another_account";

const TAKEN: &str = "The real key is in use";
const REFUSED: &str = "The real key is refused";

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_real_key_is_taken_and_a_foreign_one_is_not() {
    let sandbox = sandbox(FIRST_KEY, "acct_own");
    let other = self::sandbox(OTHER_ACCOUNTS_KEY, "acct_other");
    let relay = Relay::to(sandbox.addr());
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, FIRST_KEY).unwrap();
    let url = format!("http://{}", relay.addr());
    let settings = [
        ("SPENDCAP_UPSTREAM_BASE_URL", url.as_str()),
        ("STRIPE_SECRET_KEY", ""),
        ("STRIPE_SECRET_KEY_FILE", file.to_str().unwrap()),
    ];
    let outside = Outside::with(sandbox, LedgerKind::Sqlite, &settings).await;
    let key = outside.issue(1_000_000).await;
    outside.charge(&key, charge("cus_1")).await.expect(200);

    let said = outside.daemon.output();
    outside.sandbox.set_secret_key(SECOND_KEY);
    std::fs::write(&file, SECOND_KEY).unwrap();
    said.until_said(TAKEN, 1).await;
    outside.charge(&key, charge("cus_2")).await.expect(200);
    assert!(outside.sandbox.wrong_keys().is_empty());

    // Live mode; then a key that Stripe does not know; then one that it knows as another's.
    std::fs::write(&file, "sk_live_of_the_same_account").unwrap();
    said.until_said(REFUSED, 1).await;
    outside.charge(&key, charge("cus_3")).await.expect(200);
    std::fs::write(&file, "sk_test_nobodys").unwrap();
    said.until_said(REFUSED, 2).await;
    outside.charge(&key, charge("cus_4")).await.expect(200);
    relay.retarget(other.addr());
    std::fs::write(&file, OTHER_ACCOUNTS_KEY).unwrap();
    said.until_said(REFUSED, 3).await;
    relay.retarget(outside.sandbox.addr());
    let asked_before = outside.sandbox.wrong_keys().len();
    outside.charge(&key, charge("cus_5")).await.expect(200);
    assert_eq!(outside.sandbox.wrong_keys().len(), asked_before);
    assert!(other.charges().is_empty());
    assert_eq!(said.text().matches(TAKEN).count(), 1);
    outside.assert_balanced(&key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_admin_token_replaces_the_old_one() {
    let folder = TempDir::new().unwrap();
    let file: PathBuf = folder.path().join("token");
    std::fs::write(&file, ADMIN_TOKEN).unwrap();
    let settings = [
        ("SPENDCAP_ADMIN_TOKEN", ""),
        ("SPENDCAP_ADMIN_TOKEN_FILE", file.to_str().unwrap()),
    ];
    let outside = Outside::start(LedgerKind::Sqlite, &settings).await;
    outside.issue(1_000).await;
    let new = "another-token-of-the-tests";
    assert_eq!(status(&outside, new).await, 401);
    std::fs::write(&file, new).unwrap();
    until("the new token is taken", async || {
        (status(&outside, new).await == 200).then_some(())
    })
    .await;
    assert_eq!(status(&outside, ADMIN_TOKEN).await, 401);
}

async fn status(outside: &Outside, token: &str) -> u16 {
    let url = format!("http://{}/v1/vault_keys", outside.daemon.admin);
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let answer = outside.client.send(Method::GET, &url, &headers, "").await;
    answer.status.as_u16()
}

fn sandbox(key: &str, account: &str) -> Sandbox {
    let settings = SandboxSettings {
        secret_key: key.to_owned(),
        account_id: account.to_owned(),
        ..SandboxSettings::default()
    };
    Sandbox::start(settings).unwrap()
}
