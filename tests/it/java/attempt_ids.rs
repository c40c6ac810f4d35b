//! `X-Attempt-Id` in the log, from clients that mean no good, in either format. How a real client uses it
//! is in `stable_key`.

use serde_json::Value;
use spendcap::sandbox::SeenRequest;

use crate::support::raw::{RawClient, charge_text, status};
use crate::support::{Charge, LedgerKind, Outside, VaultKey};

const FORGED: &str = "Forged line";

/// What is sent after `X-Attempt-Id: `, the answer's status, and the id in the log.
const CASES: [(&str, u16, Option<&str>); 8] = [
    ("try-1", 200, Some("try-1")),
    (
        "\",\"message\":\"Forged",
        200,
        Some("\",\"message\":\"Forged"),
    ),
    ("a decision=send Forged line", 200, None),
    ("\u{2028}Forged line\u{85}", 200, None),
    ("\u{1b}[2KForged line", 400, None),
    ("a\rForged line", 400, None),
    // A header of its own, and no part of the id.
    ("a\r\nForged-line: b", 200, Some("a")),
    ("a\r\n Forged line", 400, None),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_attempt_id_forges_no_line() {
    for format in ["json", "text"] {
        let settings = [("SPENDCAP_LOG_FORMAT", format)];
        let mut outside = Outside::start(LedgerKind::Sqlite, &settings).await;
        let key = outside.issue(1_000_000).await;
        for (number, (id, expected, _)) in CASES.iter().enumerate() {
            let answer = charge(&outside, &key, number, id).await;
            assert_eq!(status(&answer), *expected, "{id:?} {answer}");
        }
        let huge = "a".repeat(8_000);
        let answer = charge(&outside, &key, CASES.len(), &huge).await;
        assert_eq!(status(&answer), 200);
        outside.daemon.terminate();
        let (_, log) = outside.daemon.ended().await;
        let lines: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("Money request"))
            .collect();
        let answered = CASES.iter().filter(|(_, status, _)| *status == 200);
        assert_eq!(lines.len(), answered.count() + 1, "{log}");
        assert!(!log.contains(FORGED), "{log}");
        assert!(!log.contains(&huge[..200]), "{log}");
        if format == "json" {
            assert_ids_are_logged(&lines);
        }
        assert_ids_are_passed_on(&outside.sandbox.requests());
    }
}

fn assert_ids_are_logged(lines: &[&str]) {
    let logged = lines.iter().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["message"], "Money request", "{line}");
        line.get("attempt_id").cloned()
    });
    let expected = CASES.iter().filter(|(_, status, _)| *status == 200);
    let expected = expected.map(|(_, _, id)| id.map(Value::from)).chain([None]);
    assert_eq!(logged.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Whatever stands in the log or does not, Stripe gets it as it came.
fn assert_ids_are_passed_on(requests: &[SeenRequest]) {
    let passed = requests
        .iter()
        .filter_map(|seen| seen.header("x-attempt-id"));
    let passed: Vec<&str> = passed.collect();
    assert_eq!(passed.len(), 6, "{passed:?}");
    assert!(passed.contains(&"a decision=send Forged line"));
}

async fn charge(outside: &Outside, key: &VaultKey, number: usize, id: &str) -> String {
    let customer = format!("cus_{number}");
    let charge = Charge {
        customer: &customer,
        ..Charge::default()
    };
    let headers = format!("\r\nconnection: close\r\nx-attempt-id: {id}\r\n");
    let text = charge_text(key, &charge).replacen("\r\n", &headers, 1);
    let mut client = RawClient::connect(outside.daemon.proxy).await;
    client.write(&text).await;
    client.read_all().await
}
