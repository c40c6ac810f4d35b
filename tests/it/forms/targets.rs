//! Paths, methods and query strings: what is not on the allow-list is 403 and never leaves.

use super::{FORM, Scene};
use crate::support::raw;

#[tokio::test(flavor = "multi_thread")]
async fn a_post_takes_no_query_string() {
    let scene = Scene::new().await;
    for query in ["?amount=999", "?", "?expand[]=customer", "?_method=get"] {
        let target = format!("/v1/charges{query}");
        let body = "amount=100&currency=usd";
        let refused = scene.send("POST", &target, &[FORM], body).await.expect(400);
        assert_eq!(refused.code(), "parameters_exclusive", "{query}");
    }
    let capture = "/v1/charges/ch_1/capture?amount=999";
    scene
        .send("POST", capture, &[FORM], "amount=1")
        .await
        .expect(400);
    scene.assert_untouched("query").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_passes_its_query_unless_it_can_be_read_in_two_ways() {
    let scene = Scene::new().await;
    for query in [
        "?limit=1&limit=2",
        "?limit[]=1&limit=2",
        "?_method=post",
        "?limit=1;x=2",
    ] {
        let target = format!("/v1/charges{query}");
        scene.send("GET", &target, &[], "").await.expect(400);
    }
    scene.assert_untouched("query").await;
    let list = scene.send("GET", "/v1/charges?limit=3", &[], "").await;
    assert_eq!(list.expect(200).json()["object"], "list");
    let seen = scene.world.sandbox.requests();
    let seen = seen.last().unwrap();
    assert_eq!(
        (seen.path.as_str(), seen.query.as_deref()),
        ("/v1/charges", Some("limit=3"))
    );
}

const ELSEWHERE: &[(&str, &str)] = &[
    ("POST", "/v1/payment_intents"),
    ("POST", "/v1/refunds"),
    ("POST", "/v1/payouts"),
    ("POST", "/v1/invoices/in_1/pay"),
    ("POST", "/v1/charges/ch_1"),
    ("POST", "/v1/charges/ch_1/refund"),
    ("POST", "/v1/charges/ch_1/capture/x"),
    ("POST", "/v1/charges/ch_1/capture/"),
    ("POST", "/v1/charges/"),
    ("POST", "/v1//charges"),
    ("POST", "//v1/charges"),
    ("POST", "/V1/charges"),
    ("POST", "/v1/Charges"),
    ("POST", "/v1/charges."),
    ("POST", "/v1/charges%2fch_1%2fcapture"),
    ("POST", "/v1/%63harges"),
    ("POST", "/v1/customers/../charges"),
    ("POST", "/v1/customers/%2e%2e/charges"),
    ("POST", "/v1/charges;a=b"),
    ("POST", "/v1/customers/cus_1"),
    ("POST", "/v2/core/events"),
    ("POST", "/charges"),
    ("POST", "/"),
    ("POST", "/_sandbox/reset"),
    ("GET", "/_sandbox/charges"),
    ("GET", "/v1/account"),
    ("GET", "/v1/charges/ch_1/capture"),
    ("GET", "/v1/charges/ch_1/../../account"),
    ("GET", "/v1/events"),
    ("GET", "/v1/customers/cus_1"),
    ("PUT", "/v1/charges"),
    ("PATCH", "/v1/charges/ch_1"),
    ("DELETE", "/v1/charges/ch_1"),
    ("HEAD", "/v1/charges"),
    ("OPTIONS", "/v1/charges"),
    ("TRACE", "/v1/charges"),
    ("post", "/v1/charges"),
    ("PURGE", "/v1/charges"),
];

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_and_methods_are_403_and_never_reach_stripe() {
    let scene = Scene::new().await;
    for (method, path) in ELSEWHERE {
        let body = "amount=100&currency=usd";
        let refused = scene.send(method, path, &[FORM], body).await.expect(403);
        // An answer to HEAD has no body.
        if *method != "HEAD" {
            assert_eq!(refused.code(), "operation_not_permitted", "{method} {path}");
        }
        assert!(refused.header("request-id").starts_with("req_"));
    }
    scene.assert_untouched("elsewhere").await;
}

/// What no HTTP library would send: a backslash, a whole URL of another host.
#[tokio::test(flavor = "multi_thread")]
async fn targets_that_no_library_sends_do_not_mislead() {
    let scene = Scene::new().await;
    let address = scene.world.apps[0].proxy_addr();
    let bearer = scene.bearer();
    let request = |target: &str| {
        let body = "amount=100&currency=usd&customer=cus_1";
        format!(
            "POST {target} HTTP/1.1\r\nHost: evil.example\r\nAuthorization: {bearer}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    for target in [
        "/v1\\charges",
        "/v1/customers\\..\\charges",
        "*",
        "evil.example:443",
    ] {
        let (status, answer) = raw::exchange(address, &request(target)).await;
        assert!([400, 403].contains(&status), "{target}: {answer}");
    }
    scene.assert_untouched("raw").await;
    let whole = request("http://evil.example/v1/charges");
    let (status, answer) = raw::exchange(address, &whole).await;
    assert_eq!(status, 200, "{answer}");
    let seen = scene.world.sandbox.requests();
    let host = scene.world.sandbox.addr().to_string();
    assert_eq!(seen.last().unwrap().header("host"), Some(host.as_str()));
    assert_eq!(scene.world.made().len(), 1);
}
