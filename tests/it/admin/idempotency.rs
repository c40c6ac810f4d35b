//! The same command under the same key is carried out once.

use http::Method;
use serde_json::{Value, json};

use super::server::{ADMIN, Answer, Server, bearer, json_body};

async fn post_under(server: &Server, key: &str, path: &str, body: &str) -> Answer {
    let headers = [
        bearer(ADMIN),
        json_body(),
        ("idempotency-key", key.to_owned()),
    ];
    server
        .send(Method::POST, path, &headers, body.to_owned())
        .await
}

async fn count(server: &Server) -> usize {
    let list = server.get("/v1/vault_keys").await.ok();
    list["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_repeat_shows_the_object_as_it_stands_without_its_secret() {
    let server = Server::start().await;
    let expires_at = server.in_an_hour();
    let body = format!(
        r#"{{"billing_period":"p","expected_total":10,"currency":"usd","expires_at":{expires_at}}}"#
    );
    let first = post_under(&server, "key-1", "/v1/vault_keys", &body).await;
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(first.header("cache-control"), Some("no-store"));
    let key = first.ok();
    let id = key["id"].as_str().unwrap();
    let raise = json!({"expected_total": 20, "currency": "usd", "reason": "more"});
    server
        .post(&format!("/v1/vault_keys/{id}"), &raise)
        .await
        .ok();

    // The same fields in another order and spacing.
    let again = format!(
        r#"{{ "expires_at":{expires_at}, "currency":"usd","expected_total":10,"billing_period":"p" }}"#
    );
    let repeat = post_under(&server, "key-1", "/v1/vault_keys", &again).await;
    assert_eq!(repeat.header("idempotent-replayed"), Some("true"));
    let shown = repeat.ok();
    assert_eq!((&shown["id"], &shown["secret"]), (&key["id"], &Value::Null));
    assert_eq!(shown["caps"][0]["expected_total"], json!(20));
    assert_eq!(count(&server).await, 1);
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_rotation_keeps_the_first_secret() {
    let server = Server::start().await;
    let key = server.post("/v1/vault_keys", &server.least()).await.ok();
    let path = format!("/v1/vault_keys/{}/rotate", key["id"].as_str().unwrap());
    let first = post_under(&server, "key-1", &path, "{}").await.ok();
    let repeat = post_under(&server, "key-1", &path, "").await;
    assert_eq!(repeat.header("idempotent-replayed"), Some("true"));
    assert_eq!(repeat.ok()["secret_hint"], first["secret_hint"]);
    server.stop().await;
}

#[tokio::test]
async fn a_key_belongs_to_one_command() {
    let server = Server::start().await;
    let body = server.least().to_string();
    let first = post_under(&server, "key-1", "/v1/vault_keys", &body)
        .await
        .ok();
    let mut other = server.least();
    other["expected_total"] = json!(1);
    let reused = post_under(&server, "key-1", "/v1/vault_keys", &other.to_string()).await;
    assert_eq!(reused.verdict(), "400 - -");
    assert_eq!(reused.json()["error"]["type"], "idempotency_error");
    assert_eq!(count(&server).await, 1);
    // Another path is another command.
    let revoke = format!("/v1/vault_keys/{}/revoke", first["id"].as_str().unwrap());
    let revoked = post_under(&server, "key-1", &revoke, r#"{"reason":"x"}"#)
        .await
        .ok();
    assert_eq!(revoked["status"], "revoked");
    server.stop().await;
}

#[tokio::test]
async fn a_refused_command_does_not_bind_its_key() {
    let server = Server::start().await;
    let bad = post_under(&server, "key-1", "/v1/vault_keys", "{}").await;
    assert_eq!(bad.verdict(), "400 parameter_missing billing_period");
    let body = server.least().to_string();
    post_under(&server, "key-1", "/v1/vault_keys", &body)
        .await
        .ok();
    let long = "k".repeat(256);
    for key in ["", "two words", &long] {
        let answer = post_under(&server, key, "/v1/vault_keys", &body).await;
        assert_eq!(
            answer.verdict(),
            "400 parameter_invalid Idempotency-Key",
            "{key:?}"
        );
    }
    assert_eq!(count(&server).await, 1);
    server.stop().await;
}
