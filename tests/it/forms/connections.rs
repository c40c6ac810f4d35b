//! How a body arrives: in chunks, too large, cut off, announced with `Expect`, over HTTP/2.

use super::{FORM, Scene};
use crate::support::http::Client;
use crate::support::raw::{self, RawClient};

const BODY: &str = "amount=100&currency=usd&customer=cus_1";

fn head(scene: &Scene, more: &str) -> String {
    let bearer = scene.bearer();
    format!(
        "POST /v1/charges HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n{more}\
         Connection: close\r\n\r\n"
    )
}

/// As stripe-go sends every body (contract §4.3).
#[tokio::test(flavor = "multi_thread")]
async fn a_chunked_body_reaches_stripe_in_one_piece() {
    let scene = Scene::new().await;
    let (one, two) = BODY.split_at(9);
    let request = format!(
        "{}{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        head(&scene, "Transfer-Encoding: chunked\r\n"),
        one.len(),
        two.len()
    );
    let address = scene.world.apps[0].proxy_addr();
    let (status, answer) = raw::exchange(address, &request).await;
    assert_eq!(status, 200, "{answer}");
    let seen = scene.world.sandbox.requests();
    let seen = seen.iter().find(|one| one.method == "POST").unwrap();
    assert_eq!(seen.body, BODY);
    assert_eq!(seen.header("transfer-encoding"), None);
    assert_eq!(
        seen.header("content-length"),
        Some(BODY.len().to_string().as_str())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_413_however_it_is_sent() {
    let scene = Scene::with(&[("SPENDCAP_PROXY_BODY_BYTES_MAX", "1024")]).await;
    let address = scene.world.apps[0].proxy_addr();
    let body = |bytes: usize| format!("{BODY}&description={}", "x".repeat(bytes - BODY.len() - 13));
    let refused = scene.post(&body(1025)).await.expect(413);
    assert_eq!(refused.code(), "request_too_large");
    assert_eq!(refused.header("stripe-should-retry"), "false");
    let chunked = format!(
        "{}401\r\n{}\r\n0\r\n\r\n",
        head(&scene, "Transfer-Encoding: chunked\r\n"),
        body(1025)
    );
    let (status, answer) = raw::exchange(address, &chunked).await;
    assert_eq!(status, 413, "{answer}");
    // Hardly waited for: the length says it all.
    let announced = head(&scene, "Content-Length: 999999999999\r\n");
    let (status, answer) = raw::exchange(address, &announced).await;
    assert_eq!(status, 413, "{answer}");
    scene.assert_untouched("too large").await;
    scene.post(&body(1024)).await.expect(200);
}

/// A connection that closes on what is still on its way is reset, and the answer lost with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_all_of_a_large_body_first_sees_the_413() {
    const BYTES: usize = 4_000_000;
    let scene = Scene::new().await;
    let address = scene.world.apps[0].proxy_addr();
    let body = "x".repeat(BYTES);
    let plain = format!("Content-Length: {BYTES}\r\n");
    let chunked = format!("{BYTES:x}\r\n{body}\r\n0\r\n\r\n");
    for (framing, body) in [
        (plain.as_str(), &body),
        ("Transfer-Encoding: chunked\r\n", &chunked),
    ] {
        let request = format!("{}{body}", head(&scene, framing));
        // Reads only once everything is written.
        let (status, answer) = raw::exchange(address, &request).await;
        assert_eq!(status, 413, "{framing}: {answer}");
        assert!(answer.contains("request_too_large"), "{answer}");
    }
    scene.assert_untouched("too large").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_cut_off_is_refused_and_never_sent() {
    let scene = Scene::new().await;
    let address = scene.world.apps[0].proxy_addr();
    let length = format!("Content-Length: {}\r\n", BODY.len() + 1);
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (framing, sent) in [(length.as_str(), BODY), (chunked, "5\r\namoun\r\n")] {
        let mut raw = RawClient::connect(address).await;
        raw.write(&head(&scene, framing)).await;
        raw.write(sent).await;
        raw.finish().await;
        let answer = raw.read_all().await;
        assert!([0, 400].contains(&raw::status(&answer)), "{answer}");
    }
    scene.assert_untouched("cut off").await;
}

/// Two lengths are two requests to somebody: never forwarded as both.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_two_lengths_is_at_most_one_request() {
    let scene = Scene::new().await;
    let address = scene.world.apps[0].proxy_addr();
    let length = BODY.len();
    let smuggled = format!("{BODY}POST /v1/charges HTTP/1.1\r\n\r\n");
    let doubled = format!(
        "Content-Length: {length}\r\nContent-Length: {}\r\n",
        length + 1
    );
    let request = format!("{}{smuggled}", head(&scene, &doubled));
    let (status, answer) = raw::exchange(address, &request).await;
    assert_eq!(status, 400, "{answer}");
    scene.assert_untouched("two lengths").await;
    let both = format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n");
    let request = format!("{}0\r\n\r\n{smuggled}", head(&scene, &both));
    let (status, answer) = raw::exchange(address, &request).await;
    assert_eq!(status, 400, "{answer}");
    scene.assert_untouched("a length and chunks").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expect_100_continue_is_answered_before_the_body() {
    let scene = Scene::new().await;
    let expecting = format!("Content-Length: {}\r\nExpect: 100-continue\r\n", BODY.len());
    let mut raw = RawClient::connect(scene.world.apps[0].proxy_addr()).await;
    raw.write(&head(&scene, &expecting)).await;
    let asked = raw.read_until("\r\n\r\n").await;
    assert_eq!(asked, "HTTP/1.1 100 Continue\r\n\r\n");
    raw.write(BODY).await;
    let answer = raw.read_all().await;
    assert_eq!(raw::status(&answer), 200, "{answer}");
    let seen = scene.world.sandbox.requests();
    assert_eq!(seen.last().unwrap().header("expect"), None);
}

/// A refused one is not asked for its body.
#[tokio::test(flavor = "multi_thread")]
async fn expect_100_continue_is_not_answered_where_the_request_is_refused() {
    let scene = Scene::new().await;
    let expecting = format!(
        "Content-Length: {}\r\nExpect: 100-continue\r\nIdempotency_Key: x\r\n",
        BODY.len()
    );
    let mut raw = RawClient::connect(scene.world.apps[0].proxy_addr()).await;
    raw.write(&head(&scene, &expecting)).await;
    let answer = raw.read_until("}").await;
    assert_eq!(raw::status(&answer), 400, "{answer}");
    scene.assert_untouched("refused").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expect_100_continue_is_not_answered_where_the_body_is_too_large() {
    let scene = Scene::new().await;
    let expecting = "Content-Length: 4000000\r\nExpect: 100-continue\r\n";
    let mut raw = RawClient::connect(scene.world.apps[0].proxy_addr()).await;
    raw.write(&head(&scene, expecting)).await;
    let answer = raw.read_until("}").await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    scene.assert_untouched("too large").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_spoken_by_prior_knowledge() {
    let scene = Scene::new().await;
    let client = Client::http2();
    let (url, bearer) = (
        format!("{}/v1/charges", scene.world.proxy_url(0)),
        scene.bearer(),
    );
    let headers = [FORM, ("authorization", bearer.as_str())];
    let made = client
        .send(http::Method::POST, &url, &headers, BODY)
        .await
        .expect(200);
    assert_eq!(made.json()["amount"], 100);
    let refused = client
        .send(http::Method::POST, &url, &headers, "amount=1")
        .await;
    assert_eq!(refused.expect(400).code(), "parameter_missing");
    let seen = scene.world.sandbox.requests();
    assert_eq!(seen.last().unwrap().version, "HTTP/1.1");
}
