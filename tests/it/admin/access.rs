//! Who may ask, what cannot be asked, and what needs no token.

use http::Method;
use serde_json::json;
use spendcap::admin::openapi_json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::server::{ADMIN, Server, VIEWER, bearer, json_body};

const KEYS: &str = "/v1/vault_keys";

#[tokio::test]
async fn every_path_of_the_api_takes_a_known_token() {
    let server = Server::start().await;
    let wrong = "wrong-token-of-nobody";
    let unknown: [&[(&str, String)]; 5] = [
        &[],
        &[bearer(wrong)],
        &[bearer("")],
        &[bearer(ADMIN), bearer(ADMIN)],
        &[("authorization", format!("Basic {ADMIN}"))],
    ];
    for headers in unknown {
        for path in [
            KEYS,
            "/v1/reservations/rsv_x",
            "/v1/flags",
            "/v1/periods/p",
            "/v1/audit_log",
        ] {
            let answer = server.send(Method::GET, path, headers, "").await;
            assert_eq!(answer.verdict(), "401 admin_token_invalid -", "{path}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert!(!String::from_utf8_lossy(&answer.body).contains(wrong));
        }
    }
    let lower_case = [("authorization", format!("bearer {ADMIN}"))];
    server.send(Method::GET, KEYS, &lower_case, "").await.ok();
    server.stop().await;
}

#[tokio::test]
async fn a_viewer_reads_and_changes_nothing() {
    let server = Server::start().await;
    let body = server.least().to_string();
    let headers = [bearer(VIEWER), json_body()];
    server.send(Method::GET, KEYS, &headers, "").await.ok();
    for path in [
        KEYS,
        "/v1/vault_keys/vk_1/revoke",
        "/v1/flags/flag_1/acknowledge",
    ] {
        let answer = server
            .send(Method::POST, path, &headers, body.clone())
            .await;
        assert_eq!(answer.verdict(), "403 role_insufficient -", "{path}");
    }
    assert_eq!(server.get(KEYS).await.ok()["data"], json!([]));
    server.stop().await;
}

/// Method and path of requests without a body, and how each is refused.
const UNASKABLE: &[(&str, &str)] = &[
    ("GET /", "404 url_unknown -"),
    ("GET /v1/charges", "404 url_unknown -"),
    ("GET /v1/vault_keys/", "404 url_unknown -"),
    ("DELETE /v1/vault_keys", "405 method_not_allowed -"),
    ("PUT /v1/vault_keys/vk_1", "405 method_not_allowed -"),
    ("GET /v1/vault_keys/vk_1/revoke", "405 method_not_allowed -"),
    ("POST /healthz", "405 method_not_allowed -"),
    ("GET /v1/vault_keys/vk_1", "404 resource_missing id"),
    ("GET /v1/vault_keys/%ff", "404 resource_missing id"),
    ("POST /v1/vault_keys/vk_1/rotate", "404 resource_missing id"),
    ("GET /v1/reservations/rsv_1", "404 resource_missing id"),
    (
        "GET /v1/reservations/rsv_0000000000001",
        "404 resource_missing id",
    ),
    (
        "POST /v1/flags/flag_0000000000001/acknowledge",
        "404 resource_missing id",
    ),
    ("GET /v1/periods/2026-08", "404 resource_missing id"),
    ("GET /v1/periods/a:b", "404 resource_missing id"),
    ("GET /v1/vault_keys?limt=1", "400 parameter_unknown limt"),
    (
        "GET /v1/vault_keys?limit=0",
        "400 parameter_invalid_integer limit",
    ),
    (
        "GET /v1/vault_keys/vk_1?expand=caps",
        "400 parameter_unknown expand",
    ),
    (
        "GET /v1/reservations?state=gone",
        "400 parameter_invalid state",
    ),
    (
        "GET /v1/flags?acknowledged=maybe",
        "400 parameter_invalid acknowledged",
    ),
    (
        "POST /v1/vault_keys?dry_run=1",
        "400 parameter_unknown dry_run",
    ),
];

#[tokio::test]
async fn what_cannot_be_asked_is_answered_in_the_envelope() {
    let server = Server::start().await;
    for (line, verdict) in UNASKABLE {
        let (method, path) = line.split_once(' ').unwrap();
        let answer = server
            .send(method.parse().unwrap(), path, &[bearer(ADMIN)], "")
            .await;
        assert_eq!(answer.verdict(), *verdict, "{line}");
        let id = answer.header("request-id").unwrap_or_default();
        assert!(id.starts_with("req_"), "{line}");
        assert_ne!(answer.json()["error"]["message"], json!(""), "{line}");
        assert_eq!(
            answer.header("allow").is_some(),
            answer.status == 405,
            "{line}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_cannot_be_read_stores_nothing() {
    let server = Server::start().await;
    let least = server.least().to_string();
    let unknown = least.replace("billing_period", "billing_perod");
    let twice = least.replace('{', r#"{"currency":"eur","#);
    let big = format!(r#"{{"a":"{}"}}"#, "x".repeat(64 * 1024));
    let json = "application/json";
    for (content_type, body, verdict) in [
        (
            json,
            unknown.as_str(),
            "400 parameter_unknown billing_perod",
        ),
        (json, &twice, "400 body_invalid -"),
        (json, "[]", "400 body_invalid -"),
        (json, &least[1..], "400 body_invalid -"),
        ("text/plain", &least, "415 content_type_unsupported -"),
        (
            "application/x-www-form-urlencoded",
            "a=b",
            "415 content_type_unsupported -",
        ),
        (json, &big, "413 request_too_large -"),
    ] {
        let headers = [bearer(ADMIN), ("content-type", content_type.to_owned())];
        let answer = server
            .send(Method::POST, KEYS, &headers, body.to_owned())
            .await;
        assert_eq!(answer.verdict(), verdict, "{content_type} {body:.40}");
    }
    assert_eq!(server.get(KEYS).await.ok()["data"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn health_needs_no_token_and_readiness_ends_with_draining() {
    let server = Server::start().await;
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        server.send(Method::GET, path, &[], "").await.ok();
    }
    server.draining.cancel();
    let answer = server.send(Method::GET, "/readyz", &[], "").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["status"], "unavailable");
    assert_eq!(
        answer.json()["reasons"],
        json!(["draining: the process is about to end"])
    );
    server.send(Method::GET, "/healthz", &[], "").await.ok();
    server.stop().await;
}

#[tokio::test]
async fn the_document_is_served_as_it_is_known() {
    let server = Server::start().await;
    let document = server
        .send(Method::GET, "/openapi.json", &[], "")
        .await
        .ok();
    assert_eq!(document, serde_json::to_value(openapi_json()).unwrap());
    insta::assert_json_snapshot!("openapi", document);
    server.stop().await;
}

#[tokio::test]
async fn an_open_connection_does_not_keep_the_server_alive() {
    let server = Server::start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    // Its answer proves that the server has taken the connection before it.
    server.get(KEYS).await.ok();
    server.stop().await;
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
}
