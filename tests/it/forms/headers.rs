//! Headers that are malformed, doubled or tricky, and what crosses to Stripe.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;

use super::{FORM, Scene};
use crate::support::raw;

const BODY: &str = "amount=100&currency=usd&customer=cus_1";

#[tokio::test(flavor = "multi_thread")]
async fn bad_headers_are_refused_and_never_sent() {
    let scene = Scene::new().await;
    let long = "k".repeat(256);
    let cases: Vec<Vec<(&str, &str)>> = vec![
        vec![FORM, ("idempotency-key", "")],
        vec![FORM, ("idempotency-key", &long)],
        vec![FORM, ("idempotency-key", "a b")],
        vec![FORM, ("idempotency-key", "a"), ("idempotency-key", "b")],
        vec![FORM, ("idempotency-key", "a"), ("idempotency-key", "a")],
        vec![FORM, ("idempotency_key", "a")],
        vec![
            FORM,
            ("connection", "idempotency-key"),
            ("idempotency-key", "a"),
        ],
        vec![
            FORM,
            ("stripe-account", "acct_1"),
            ("stripe-account", "acct_2"),
        ],
        vec![
            FORM,
            ("stripe-account", "acct_1"),
            ("stripe-context", "acct_2"),
        ],
        vec![FORM, ("stripe-context", "acct_1/acct_2")],
        vec![FORM, ("stripe-account", "")],
        vec![FORM, ("stripe_account", "acct_1")],
        vec![FORM, ("spendcap-reference", "a:b")],
        vec![
            FORM,
            ("spendcap-reference", "a"),
            ("spendcap-reference", "b"),
        ],
        vec![FORM, ("x-http-method-override", "DELETE")],
        vec![FORM, ("content-encoding", "gzip")],
        vec![FORM, FORM],
        vec![("content-type", "application/json")],
        vec![("content-type", "multipart/form-data; boundary=x")],
        vec![(
            "content-type",
            "application/x-www-form-urlencoded; charset=utf-16",
        )],
    ];
    for headers in cases {
        let refused = scene
            .send("POST", "/v1/charges", &headers, BODY)
            .await
            .expect(400);
        let error = &refused.json()["error"];
        assert_eq!(error["type"], "invalid_request_error", "{headers:?}");
        assert!(
            error["code"].is_string() && error["param"].is_string(),
            "{error}"
        );
        scene.assert_untouched(&format!("{headers:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_is_not_ascii_is_refused() {
    let scene = Scene::new().await;
    let address = scene.world.apps[0].proxy_addr();
    let bearer = scene.bearer();
    for name in ["Idempotency-Key", "Spendcap-Reference", "Stripe-Account"] {
        let request = format!(
            "POST /v1/charges HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n{name}: caf\u{e9}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{BODY}",
            BODY.len()
        );
        let (status, answer) = raw::exchange(address, &request).await;
        assert_eq!(status, 400, "{answer}");
    }
    scene.assert_untouched("not ASCII").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_key_and_no_content_type_pass() {
    let scene = Scene::new().await;
    let key = "~".repeat(255);
    let headers = [("idempotency-key", key.as_str())];
    let made = scene
        .send("POST", "/v1/charges", &headers, BODY)
        .await
        .expect(200);
    assert_eq!(made.header("idempotency-key"), key);
    let [charge] = scene.world.made().try_into().unwrap();
    assert_eq!(charge.idempotency_key.as_deref(), Some(key.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn stripe_sees_its_own_headers_and_none_of_the_hop() {
    let scene = Scene::new().await;
    let headers = [
        FORM,
        ("stripe-version", "2026-10-28.endive"),
        ("user-agent", "Stripe/v1 PythonBindings/16.1.0"),
        ("x-stripe-client-user-agent", "{}"),
        ("accept-encoding", "gzip, br"),
        ("cookie", "a=b"),
        ("forwarded", "for=1.2.3.4"),
        ("x-forwarded-for", "1.2.3.4"),
        ("proxy-authorization", "Basic eA=="),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
        ("spendcap-reference", "addon"),
    ];
    scene
        .send("POST", "/v1/charges", &headers, BODY)
        .await
        .expect(200);
    let seen = scene.world.sandbox.requests();
    let seen = seen.iter().find(|one| one.method == "POST").unwrap();
    for (name, value) in &headers[..4] {
        assert_eq!(seen.header(name), Some(*value), "{name}");
    }
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    for (name, _) in &headers[5..] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    let length = BODY.len().to_string();
    assert_eq!(seen.header("content-length"), Some(length.as_str()));
    assert!(scene.world.sandbox.wrong_keys().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_auth_carries_the_key_as_curl_sends_it() {
    let scene = Scene::new().await;
    let url = format!("{}/v1/charges", scene.world.proxy_url(0));
    let secret = &scene.key.secret;
    let basic = |text: String| format!("Basic {}", STANDARD.encode(text));
    for wrong in [
        basic(secret.clone()),
        basic(format!("{secret}:password")),
        basic(format!(":{secret}")),
        basic(format!("{REAL_KEY}:")),
        format!("Bearer {REAL_KEY}"),
        format!("Bearer {secret}x"),
        secret.clone(),
    ] {
        let headers = [FORM, ("authorization", wrong.as_str())];
        let client = &scene.world.client;
        let refused = client
            .send(http::Method::POST, &url, &headers, BODY)
            .await
            .expect(401);
        assert_eq!(refused.code(), "vault_key_invalid");
        assert!(!refused.text.contains(secret.as_str()) && !refused.text.contains(REAL_KEY));
    }
    scene.assert_untouched("wrong credentials").await;
    let right = basic(format!("{secret}:"));
    let headers = [FORM, ("authorization", right.as_str())];
    let client = &scene.world.client;
    client
        .send(http::Method::POST, &url, &headers, BODY)
        .await
        .expect(200);
    assert!(scene.world.sandbox.wrong_keys().is_empty());
}
