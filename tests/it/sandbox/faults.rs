//! Faults on demand: what the client sees, what was made, and what a repeat under the same key is
//! told.

use std::io::ErrorKind;

use spendcap::sandbox::{Fault, FaultKind, Moment, Outage, Sandbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{charge, get, post, start};

#[tokio::test]
async fn each_fault_does_what_it_says() {
    use FaultKind as K;
    let at = Moment::BeforeCommit;
    // The fault; what the client sees; charges made by then; what a repeat sees; charges made then.
    let rows = [
        (K::CommitThenFin, "broken", 1, "200 replayed", 1),
        (K::CommitThenRst, "broken", 1, "200 replayed", 1),
        (K::CommitThen503, "503 api_error", 1, "200 replayed", 1),
        (K::Status503, "503 api_error", 0, "200", 1),
        (
            K::CommitThen500,
            "500 api_error",
            1,
            "500 api_error replayed",
            1,
        ),
        (K::Error500, "500 api_error", 0, "500 api_error replayed", 0),
        (K::TruncateBody, "broken", 1, "200 replayed", 1),
        (K::NonJson200, "200", 1, "200 replayed", 1),
        (K::RateLimit429, "429 rate_limit", 0, "200", 1),
        (K::Conflict409, "409 idempotency_key_in_use", 0, "200", 1),
        (K::Forbidden403, "403 invalid_request_error", 0, "200", 1),
        (K::Html502, "502", 0, "200", 1),
        (K::ResetBeforeCommit, "broken", 0, "200", 1),
        (
            K::Decline,
            "402 card_declined",
            0,
            "402 card_declined replayed",
            0,
        ),
        (K::Slow { ms: 1, at }, "200", 1, "200 replayed", 1),
    ];
    for (kind, seen, made, repeat_seen, repeat_made) in rows {
        let sandbox = start();
        sandbox.add_fault(Fault::new(kind).customer("cus_1").once());
        let bystander = charge("cus_other").send(&sandbox).await;
        assert_eq!(bystander.verdict(), "200", "{kind:?}");
        assert_eq!(outcome(&sandbox).await, seen, "{kind:?}");
        assert_eq!(sandbox.charges_of("cus_1").len(), made, "{kind:?}");
        assert_eq!(outcome(&sandbox).await, repeat_seen, "{kind:?}, repeated");
        assert_eq!(
            sandbox.charges_of("cus_1").len(),
            repeat_made,
            "{kind:?}, repeated"
        );
        assert!(sandbox.faults().is_empty(), "{kind:?}");
    }
}

async fn outcome(sandbox: &Sandbox) -> String {
    match charge("cus_1").key("k").try_send(sandbox).await {
        Err(_) => "broken".to_owned(),
        Ok(answer) => match answer.header("idempotent-replayed") {
            Some(_) => format!("{} replayed", answer.verdict()),
            None => answer.verdict(),
        },
    }
}

#[tokio::test]
async fn fin_rst_and_a_cut_body_look_so_on_the_socket() {
    let rows = [
        (FaultKind::CommitThenFin, "end"),
        (FaultKind::CommitThenRst, "reset"),
        (FaultKind::ResetBeforeCommit, "reset"),
        (FaultKind::TruncateBody, "part"),
    ];
    for (kind, expected) in rows {
        let sandbox = start();
        sandbox.add_fault(Fault::new(kind));
        assert_eq!(raw_charge(&sandbox).await, expected, "{kind:?}");
    }
    let sandbox = start();
    sandbox.set_outage(Outage::Close);
    assert_eq!(raw_charge(&sandbox).await, "end");
}

/// How a charge's answer ends: `end` (nothing came), `reset`, `part` or `whole`.
async fn raw_charge(sandbox: &Sandbox) -> &'static str {
    let mut socket = TcpStream::connect(sandbox.addr()).await.unwrap();
    let body = "amount=100&currency=usd&customer=cus_1";
    let head = "POST /v1/charges HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\n\
                Authorization: Bearer sk_test_spendcap_sandbox\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer).await {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => return "reset",
        Err(error) => panic!("{error}"),
        Ok(_) => {}
    }
    let text = String::from_utf8(answer).unwrap();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        assert_eq!(text, "");
        return "end";
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap();
    let length: usize = length.parse().unwrap();
    assert!(!body.is_empty());
    if body.len() < length { "part" } else { "whole" }
}

#[tokio::test]
async fn a_gate_holds_before_or_after_the_commit() {
    for (at, made_while_held) in [(Moment::BeforeCommit, 0), (Moment::AfterCommit, 1)] {
        let sandbox = start();
        sandbox.add_fault(Fault::new(FaultKind::Gate { at }));
        let held = charge("cus_1").key("k").send(&sandbox);
        let opener = async {
            sandbox.wait_until_held(1).await;
            let made = sandbox.charges().len();
            sandbox.release_gate();
            made
        };
        let (answer, made) = tokio::join!(held, opener);
        assert_eq!(made, made_while_held, "{at:?}");
        assert_eq!(answer.verdict(), "200", "{at:?}");
        assert_eq!((sandbox.held(), sandbox.charges().len()), (0, 1), "{at:?}");
    }
}

#[tokio::test]
async fn what_was_begun_goes_on_when_the_client_has_gone() {
    let sandbox = start();
    sandbox.add_fault(
        Fault::new(FaultKind::Gate {
            at: Moment::BeforeCommit,
        })
        .once(),
    );
    tokio::select! {
        _answer = charge("cus_1").key("k").send(&sandbox) => panic!("the gate did not hold"),
        () = sandbox.wait_until_held(1) => {}
    }
    // The first client is gone; a second request sits in the gate behind it, so that both commits
    // are known to be over once it is answered.
    sandbox.add_fault(
        Fault::new(FaultKind::Gate {
            at: Moment::BeforeCommit,
        })
        .once(),
    );
    let (second, ()) = tokio::join!(charge("cus_2").send(&sandbox), async {
        sandbox.wait_until_held(2).await;
        sandbox.release_gate();
    });
    assert_eq!(second.verdict(), "200");
    let repeat = charge("cus_1").key("k").send(&sandbox).await;
    assert_eq!(repeat.header("idempotent-replayed"), Some("true"));
    assert_eq!(sandbox.charges_of("cus_1").len(), 1);
}

#[tokio::test]
async fn a_hang_lasts_until_it_is_cleared() {
    for (at, made) in [(Moment::BeforeCommit, 0), (Moment::AfterCommit, 1)] {
        let sandbox = start();
        sandbox.add_fault(Fault::new(FaultKind::Hang { at }));
        let (hung, ()) = tokio::join!(charge("cus_1").key("k").try_send(&sandbox), async {
            sandbox.wait_until_held(1).await;
            sandbox.clear_faults();
        });
        assert!(hung.is_err(), "{at:?}");
        assert_eq!(sandbox.charges().len(), made, "{at:?}");
        let repeat = charge("cus_1").key("k").send(&sandbox).await;
        assert_eq!(
            repeat.header("idempotent-replayed").is_some(),
            made == 1,
            "{at:?}"
        );
    }
}

#[tokio::test]
async fn a_hang_ends_with_its_connection_and_frees_the_key() {
    let sandbox = start();
    let at = Moment::BeforeCommit;
    sandbox.add_fault(Fault::new(FaultKind::Hang { at }).once());
    tokio::select! {
        _answer = charge("cus_1").key("k").try_send(&sandbox) => panic!("the hang ended"),
        () = sandbox.wait_until_held(1) => {}
    }
    while sandbox.held() > 0 {
        tokio::task::yield_now().await;
    }
    let repeat = charge("cus_1").key("k").send(&sandbox).await;
    assert_eq!(repeat.verdict(), "200");
    assert_eq!(repeat.header("idempotent-replayed"), None);
}

#[tokio::test]
async fn faults_meet_only_what_they_name() {
    let sandbox = start();
    let uncaptured = "amount=100&currency=usd&customer=cus_1&capture=false";
    let id = post("/v1/charges", uncaptured).send(&sandbox).await.id();
    let fault = || Fault::new(FaultKind::Status503);
    let capture = format!("/v1/charges/{id}/capture");
    let rows = [
        (fault().customer("cus_1"), post(&capture, ""), true),
        (fault().customer("cus_2"), post(&capture, ""), false),
        (fault().method("POST"), get("/v1/charges"), false),
        (fault().method("GET"), get("/v1/charges"), true),
        (fault().path_prefix("/v1/events"), get("/v1/charges"), false),
        (fault().path_prefix("/v1/charges"), get("/v1/charges"), true),
        (
            fault().idempotency_key("k1"),
            charge("cus_3").key("k1"),
            true,
        ),
        (
            fault().idempotency_key("k2"),
            charge("cus_3").key("k1"),
            false,
        ),
    ];
    for (fault, call, met) in rows {
        let described = format!("{fault:?}");
        sandbox.clear_faults();
        sandbox.add_fault(fault);
        let answer = call.send(&sandbox).await;
        assert_eq!(answer.status.as_u16() == 503, met, "{described}");
    }
}

#[tokio::test]
async fn faults_are_used_up_in_order() {
    let sandbox = start();
    sandbox.add_fault(Fault::new(FaultKind::RateLimit429).times(2));
    sandbox.add_fault(Fault::new(FaultKind::Html502).once());
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(charge("cus_1").send(&sandbox).await.status.as_u16());
    }
    assert_eq!(seen, [429, 429, 502, 200]);
}

#[tokio::test]
async fn an_outage_spares_the_control_interface() {
    let sandbox = start();
    sandbox.set_outage(Outage::Close);
    assert!(charge("cus_1").try_send(&sandbox).await.is_err());
    assert_eq!(get("/_sandbox/charges").send(&sandbox).await.status, 200);
    sandbox.set_outage(Outage::Status503);
    assert_eq!(
        charge("cus_1").send(&sandbox).await.verdict(),
        "503 api_error"
    );
    sandbox.set_outage(Outage::Off);
    assert_eq!(charge("cus_1").send(&sandbox).await.verdict(), "200");
}
