//! A send whose answer was lost is sent again, and that one is refused: what Stripe has stored speaks of both,
//! anything else of the second alone, and then nothing is given back.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{LEDGERS, ask, row_of};
use crate::support::World;

/// Status, more headers and body of the second send's answer; what the client gets; where the row stands.
const CASES: [(&str, &str, (u16, &str), &str); 11] = [
    ("401 Unauthorized", REQUEST, UNKNOWN, "held"),
    ("403 Forbidden", REQUEST, UNKNOWN, "held"),
    ("404 Not Found", MISSING, UNKNOWN, "held"),
    ("429 Too Many Requests", LIMIT, UNKNOWN, "held"),
    ("400 Bad Request", REQUEST, UNKNOWN, "held"),
    ("400 Bad Request", REUSED, UNKNOWN, "held"),
    ("409 Conflict", IN_USE, UNKNOWN, "held"),
    ("400 Bad Request", "<html>", UNKNOWN, "held"),
    ("500 Internal Server Error", API, (500, ""), "held"),
    (
        "402 Payment Required",
        DECLINE,
        (402, "card_declined"),
        "released",
    ),
    (
        "400 Bad Request\r\nIdempotent-Replayed: true",
        REQUEST,
        (400, ""),
        "released",
    ),
];

const UNKNOWN: (u16, &str) = (504, "outcome_unknown");
const REQUEST: &str = r#"{"error":{"type":"invalid_request_error","message":"m"}}"#;
const MISSING: &str = r#"{"error":{"type":"invalid_request_error","code":"resource_missing"}}"#;
const LIMIT: &str = r#"{"error":{"type":"invalid_request_error","code":"rate_limit"}}"#;
const IN_USE: &str =
    r#"{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use"}}"#;
const REUSED: &str = r#"{"error":{"type":"idempotency_error","message":"m"}}"#;
const DECLINE: &str = r#"{"error":{"type":"card_error","code":"card_declined"}}"#;
const API: &str = r#"{"error":{"type":"api_error","message":"m"}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_second_send_gives_nothing_back() {
    for ledger in LEDGERS {
        for (status, body, told, state) in CASES {
            let stripe = Scripted::start(status, body).await;
            let url = format!("http://{}", stripe.address);
            // A second refusal in a row would be the same answer later.
            let settings = [
                ("SPENDCAP_UPSTREAM_BASE_URL", url.as_str()),
                ("SPENDCAP_UPSTREAM_RESENDS_MAX", "1"),
            ];
            let world = World::start(ledger, 1, &settings).await;
            let key = world.issue(9_000, json!({})).await;
            let answer = ask(&world, &key, "cus_1", true).await;
            let said = (answer.status.as_u16(), answer.code());
            assert_eq!(said, (told.0, told.1.to_owned()), "{status} {body}");
            let row = row_of(&world, "cus_1").await;
            assert_eq!(row["state"], state, "{status} {body}");
            assert_eq!(row["sends"], 2, "{status} {body}");
            let reserved = if state == "held" { 9_900 } else { 0 };
            let cap = world.cap(&key, "usd").await;
            assert_eq!(
                (&cap["reserved"], &cap["settled"]),
                (&reserved.into(), &0.into())
            );
        }
    }
}

/// A Stripe that knows its account, closes the connection of the first POST and answers the second.
struct Scripted {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Scripted {
    async fn start(status: &str, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut script = VecDeque::from([None, Some(answer(status, body))]);
        let serving = tokio::spawn(async move {
            // Each connection carries one request, so they come one after the other.
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, &mut script).await;
            }
        });
        Self { address, serving }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut stream: TcpStream, script: &mut VecDeque<Option<String>>) {
    let mut request = String::new();
    let mut chunk = [0; 4096];
    while !is_whole(&request) {
        let length = stream.read(&mut chunk).await.unwrap();
        assert!(length > 0, "half a request: {request}");
        request.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
    }
    let answer = if request.starts_with("GET /v1/account ") {
        Some(answer("200 OK", r#"{"id":"acct_1","object":"account"}"#))
    } else {
        script.pop_front().unwrap()
    };
    if let Some(answer) = answer {
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let length = name.eq_ignore_ascii_case("content-length");
        length.then(|| value.trim().parse::<usize>().unwrap())
    });
    body.len() >= length.unwrap_or(0)
}

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
