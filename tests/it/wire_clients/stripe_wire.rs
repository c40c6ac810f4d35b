//! What is on the wire, and what comes back in the good case and at the cap.

use serde_json::json;
use spendcap::sandbox::SeenRequest;

use super::sender::{SENDERS, Seen, Sender};
use crate::support::{LedgerKind, VaultKey, World};

/// The charges that the sandbox was asked for.
fn creates(world: &World) -> Vec<SeenRequest> {
    let mut seen = world.sandbox.requests();
    seen.retain(|request| request.method == "POST" && request.path == "/v1/charges");
    seen
}

async fn world_with_room_for(charges: i64) -> (World, VaultKey) {
    let world = World::on(LedgerKind::Sqlite).await;
    let exactly = json!({ "headroom": "1.00" });
    let key = world.issue(9900 * charges, exactly).await;
    (world, key)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunked_body_is_judged_and_sent_with_its_length() {
    let (world, key) = world_with_room_for(1).await;
    // Straight to the sandbox, which records what Go really sends.
    let secret = spendcap::sandbox::cli::SECRET_KEY_DEFAULT;
    let fields = [
        "POST",
        "/v1/charges",
        "amount=9900",
        "currency=usd",
        "customer=cus_0",
    ];
    let straight = Sender::Go
        .send(&world.sandbox.base_url(), secret, &fields)
        .await;
    assert_eq!(straight.status, 200, "{straight:?}");
    let direct = creates(&world).pop().unwrap();
    assert_eq!(direct.header("transfer-encoding"), Some("chunked"));
    assert_eq!(direct.header("content-length"), None);

    let through = Sender::Go.charge(&world, &key, "cus_1", &[]).await;
    assert_eq!(through.status, 200, "{through:?}");
    let forwarded = creates(&world).pop().unwrap();
    assert_eq!(forwarded.header("transfer-encoding"), None);
    let length = forwarded.body.len().to_string();
    assert_eq!(forwarded.header("content-length"), Some(length.as_str()));
    assert_eq!(world.sandbox.charges_of("cus_1")[0].id, through.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_charges_until_the_cap_and_sees_its_code() {
    let (world, key) = world_with_room_for(3).await;
    for (sender, customer) in SENDERS.into_iter().zip(["cus_go", "cus_php", "cus_ruby"]) {
        let made = sender.charge(&world, &key, customer, &[]).await;
        assert_eq!(
            (made.attempts, made.status),
            (1, 200),
            "{sender:?} {made:?}"
        );
        assert_eq!(world.sandbox.charges_of(customer)[0].id, made.id);
    }
    for sender in SENDERS {
        let refused = sender
            .charge(&world, &key, "cus_late", &["--retries=2"])
            .await;
        let expected = Seen {
            attempts: 1,
            status: 402,
            id: String::new(),
            error_type: "invalid_request_error".to_owned(),
            code: "spend_cap_reached".to_owned(),
            failure: String::new(),
        };
        assert_eq!(refused, expected, "{sender:?}");
    }
    assert_eq!(world.taken(), 3 * 9900);
    world.assert_balanced(&key).await;
}
