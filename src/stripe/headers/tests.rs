use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::*;

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

#[test]
fn headers_are_read() {
    let none = read(&map(&[("accept", "*/*")])).unwrap();
    assert_eq!(none, RequestHeaders::default());
    let all = read(&map(&[
        ("idempotency-key", "a b".replace(' ', "-").as_str()),
        ("stripe-context", "acct_1"),
        ("stripe-account", "acct_1"),
        ("spendcap-reference", "inv/2026-08#7"),
    ]));
    let all = all.unwrap();
    assert_eq!(all.idempotency_key.as_deref(), Some("a-b"));
    assert_eq!(all.account, "acct_1");
    assert_eq!(all.reference, "inv/2026-08#7");
    for name in ["stripe-account", "stripe-context"] {
        let one = read(&map(&[(name, "acct_2")])).unwrap();
        assert_eq!(one.account, "acct_2");
    }
    let longest = "k".repeat(255);
    let key = read(&map(&[("idempotency-key", &longest)])).unwrap();
    assert_eq!(key.idempotency_key, Some(longest));
    let empty = read(&map(&[("spendcap-reference", "")])).unwrap();
    assert_eq!(empty.reference, "");
}

#[test]
fn headers_that_can_be_read_in_two_ways_are_refused() {
    let long_key = "k".repeat(256);
    let long_reference = "r".repeat(101);
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("idempotency-key", "a"), ("idempotency-key", "a")],
            "idempotency-key",
        ),
        (&[("idempotency-key", "")], "idempotency-key"),
        (&[("idempotency-key", "a b")], "idempotency-key"),
        (&[("idempotency-key", "a\tb")], "idempotency-key"),
        (&[("idempotency-key", "ü")], "idempotency-key"),
        (&[("idempotency-key", &long_key)], "idempotency-key"),
        (&[("idempotency_key", "a")], "idempotency_key"),
        (&[("stripe-account", "")], "stripe-account"),
        (&[("stripe-account", "acct 1")], "stripe-account"),
        (&[("stripe-account", "acct_1,acct_2")], "stripe-account"),
        (
            &[("stripe-account", "acct_1"), ("stripe-account", "acct_1")],
            "stripe-account",
        ),
        (&[("stripe_account", "acct_1")], "stripe_account"),
        (&[("stripe-context", "acct_1/acct_2")], "stripe-context"),
        (
            &[("stripe-account", "acct_1"), ("stripe-context", "acct_2")],
            "stripe-context",
        ),
        (
            &[("stripe-version", "a"), ("stripe-version", "b")],
            "stripe-version",
        ),
        (
            &[("content-type", "a"), ("content-type", "b")],
            "content-type",
        ),
        (&[("spendcap-reference", "a:b")], "spendcap-reference"),
        (&[("spendcap-reference", "a b")], "spendcap-reference"),
        (
            &[("spendcap-reference", &long_reference)],
            "spendcap-reference",
        ),
        (
            &[("spendcap-reference", "a"), ("spendcap-reference", "b")],
            "spendcap-reference",
        ),
        (
            &[("x-http-method-override", "GET")],
            "x-http-method-override",
        ),
        (
            &[("x_http_method_override", "GET")],
            "x_http_method_override",
        ),
        (&[("x-http-method", "GET")], "x-http-method"),
        (&[("connection", "close, Stripe-Account")], "connection"),
        (
            &[("connection", "close"), ("connection", "idempotency-key")],
            "connection",
        ),
    ];
    for (pairs, param) in cases {
        let error = read(&map(pairs)).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(*param), "{pairs:?}");
    }
}

#[test]
fn a_body_is_a_form() {
    let form = "application/x-www-form-urlencoded";
    assert!(require_form(&map(&[])).is_ok());
    for text in [
        form,
        "Application/X-WWW-Form-URLEncoded",
        "application/x-www-form-urlencoded;charset=UTF-8",
        "application/x-www-form-urlencoded; charset=\"utf-8\"",
        "application/x-www-form-urlencoded;",
    ] {
        assert!(
            require_form(&map(&[("content-type", text)])).is_ok(),
            "{text}"
        );
    }
    for text in [
        "",
        "application/json",
        "multipart/form-data; boundary=x",
        "text/plain",
        "application/x-www-form-urlencoded; charset=utf-16",
        "application/x-www-form-urlencoded; boundary=x",
        "application/x-www-form-urlencoded, application/json",
    ] {
        assert!(
            require_form(&map(&[("content-type", text)])).is_err(),
            "{text}"
        );
    }
    assert!(
        require_form(&map(&[
            ("content-type", form),
            ("content-encoding", "gzip")
        ]))
        .is_err()
    );
    assert!(require_form(&map(&[("content-type", form), ("content-type", form)])).is_err());
}

fn names(headers: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_goes_to_stripe() {
    let crossed = to_upstream(&map(&[
        ("accept", "*/*"),
        ("accept-encoding", "gzip"),
        ("authorization", "Bearer sk_vault_x"),
        ("client-id", "c"),
        ("connection", "keep-alive, X-Secret"),
        ("content-length", "3"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("cookie", "a=b"),
        ("expect", "100-continue"),
        ("forwarded", "for=1.2.3.4"),
        ("host", "proxy.internal"),
        ("idempotency-key", "k"),
        ("if-none-match", "x"),
        ("keep-alive", "5"),
        ("proxy-authorization", "Basic x"),
        ("proxy-anything", "x"),
        ("range", "bytes=0-1"),
        ("spendcap-reference", "r"),
        ("spendcap-future", "r"),
        ("stripe-account", "acct_1"),
        ("stripe-version", "2026-10-28.endive"),
        ("stripe_beta", "x"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("user-agent", "Stripe/v1 GoBindings"),
        ("x-forwarded-for", "1.2.3.4"),
        ("x-forwarded-host", "h"),
        ("x-secret", "hop"),
        ("x-stripe-client-telemetry", "{}"),
        ("x-stripe-client-user-agent", "{}"),
    ]));
    assert_eq!(
        names(&crossed),
        [
            "accept",
            "client-id",
            "stripe-account",
            "stripe-version",
            "user-agent",
            "x-stripe-client-telemetry",
            "x-stripe-client-user-agent",
        ]
    );
}

#[test]
fn what_goes_back() {
    let crossed = to_client(&map(&[
        ("alt-svc", "h3"),
        ("connection", "close, x-hop"),
        ("content-length", "2"),
        ("content-type", "application/json"),
        ("idempotent-replayed", "true"),
        ("keep-alive", "5"),
        ("request-id", "req_1"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("spendcap-remaining", "1"),
        ("stripe-should-retry", "false"),
        ("transfer-encoding", "chunked"),
        ("x-hop", "x"),
    ]));
    assert_eq!(
        names(&crossed),
        [
            "content-type",
            "idempotent-replayed",
            "request-id",
            "set-cookie",
            "stripe-should-retry",
        ]
    );
    assert_eq!(crossed.get_all("set-cookie").iter().count(), 2);
}
