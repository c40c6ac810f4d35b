//! Plain `curl -u`.

use std::process::Command;

use serde_json::json;

use crate::support::program::{RUN_MAX, Ran, run};
use crate::support::{LedgerKind, World};

async fn curl(arguments: &[&str]) -> Ran {
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--noproxy", "*"])
        .args(arguments);
    run(command, RUN_MAX).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vault_key_is_the_user_of_curl() {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(9000, json!({})).await;
    let url = format!("{}/v1/charges", world.proxy_url(0));
    let user = format!("{}:", key.secret);
    let ask = async |amount: &str| {
        let status = ",%{http_code}]";
        let fields = ["-d", amount, "-d", "currency=usd", "-d", "customer=cus_1"];
        let arguments = [&[&url, "-u", &user, "--write-out", status][..], &fields].concat();
        let mut ran = curl(&arguments).await;
        ran.stdout.insert(0, '[');
        ran.json()
    };
    let made = ask("amount=9900").await;
    assert_eq!(made[1], 200, "{made}");
    assert_eq!(world.made().len(), 1);
    assert_eq!(made[0]["id"], world.made()[0].id.as_str());
    // The same intent again, and one that the cap does not hold.
    assert_eq!(ask("amount=9900").await[0]["id"], made[0]["id"]);
    let refused = ask("amount=9901").await;
    assert_eq!(refused[1], 402, "{refused}");
    assert_eq!(refused[0]["error"]["code"], "spend_cap_reached");
    assert_eq!(refused[0]["error"]["type"], "invalid_request_error");
    assert_eq!(world.taken(), 9900);
    world.assert_balanced(&key).await;
}
