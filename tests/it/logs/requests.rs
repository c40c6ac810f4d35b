//! Each way a money request may end, and its line.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::lines::LINES;
use super::{EVERYWHERE, Line, money_lines, told, until_logged};
use crate::support::http::{Client, Reply};
use crate::support::patience::within;
use crate::support::raw::RawClient;
use crate::support::repository::read;
use crate::support::{LedgerKind, Outside, VaultKey};

const FORM: &str = "application/x-www-form-urlencoded";
const DESCRIPTION: &str = "a-description-that-nobody-may-see";

#[tokio::test(flavor = "multi_thread")]
async fn every_money_request_has_one_line() {
    let settings = [
        ("SPENDCAP_PROXY_IN_FLIGHT_MAX", "2"),
        ("SPENDCAP_PROXY_BODY_BYTES_MAX", "4096"),
    ];
    let outside = Outside::start(LedgerKind::Sqlite, &settings).await;
    let wish = json!({ "permissions": ["charges:write", "charges:read"] });
    let key = outside.operator().issue(100_000, wish).await;
    let mut scene = Scene { outside, key };
    scene.sent_and_repeated().await;
    scene.refused().await;
    scene.not_let_in().await;
    scene.left_and_full().await;
    scene.ended().await;
    let (status, log) = scene.outside.daemon.ended().await;
    assert!(status.success(), "{log}");
    assert!(!log.contains(DESCRIPTION) && !log.contains(&scene.key.secret));

    let mut lines = by_attempt(&log);
    the_readme_knows_the_fields(&lines);
    for (attempt, values, names) in LINES {
        let line = lines.remove(*attempt);
        let line = line.unwrap_or_else(|| panic!("{attempt} has no line in {log}"));
        let (told_values, mut told_names) = told(&line);
        assert_eq!(told_values, *values, "{attempt}");
        let mut names: Vec<&str> = names.split(' ').collect();
        names.sort_unstable();
        told_names.sort_unstable();
        assert_eq!(told_names, names, "{attempt}");
    }
    assert!(lines.is_empty(), "{lines:?}");
}

/// The one line of each attempt.
fn by_attempt(log: &str) -> BTreeMap<String, Line> {
    let mut lines = BTreeMap::new();
    for line in money_lines(log) {
        let attempt = line["attempt_id"].as_str().unwrap().to_owned();
        let before = lines.insert(attempt, line);
        assert!(before.is_none(), "two lines for {before:?}");
    }
    lines
}

/// Its table names each field that was seen, and its example is a line like these.
fn the_readme_knows_the_fields(lines: &BTreeMap<String, Line>) {
    let readme = read("README.md");
    let (_, told) = readme.split_once("| field | what it is |").unwrap();
    let rows = told.lines().skip(2).take_while(|row| row.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let names: BTreeSet<&str> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let seen = lines.values().flat_map(Line::keys).map(String::as_str);
    let seen: BTreeSet<&str> = seen.filter(|name| !EVERYWHERE.contains(name)).collect();
    assert_eq!(names, seen);

    let is_example = |line: &&str| line.contains("\"message\":\"Money request\"");
    let example = readme.lines().find(is_example).unwrap();
    let example: Line = serde_json::from_str(example).unwrap();
    assert!(example.keys().eq(lines["sent"].keys()), "{example:?}");
}

struct Scene {
    outside: Outside,
    key: VaultKey,
}

impl Scene {
    async fn sent_and_repeated(&self) {
        let fresh = "amount=9900&customer=cus_1";
        let sent = self.charge("sent", fresh).await.expect(200);
        let repeated = self.charge("repeated", fresh).await.expect(200);
        assert_eq!(sent.json()["id"], repeated.json()["id"]);

        let decline = Fault::new(FaultKind::Decline).customer("cus_2").once();
        self.outside.sandbox.add_fault(decline);
        let declined = self.charge("declined", "amount=100&customer=cus_2").await;
        declined.expect(402);
        let lost = Fault::new(FaultKind::CommitThenRst).customer("cus_3");
        self.outside.sandbox.add_fault(lost);
        let lost = self.charge("unanswered", "amount=100&customer=cus_3").await;
        lost.expect(504);
        let lost = Fault::new(FaultKind::CommitThenRst).customer("cus_11");
        self.outside.sandbox.add_fault(lost.once());
        let late = self.charge("answered_late", "amount=100&customer=cus_11");
        late.await.expect(200);
        let nobody = self.charge("nobody", "amount=200&source=tok_visa").await;
        nobody.expect(200);

        let authorise = "amount=300&customer=cus_4&capture=false";
        let authorised = self.charge("authorised", authorise).await.expect(200);
        let charge = format!("/v1/charges/{}", authorised.json()["id"].as_str().unwrap());
        let secret = &self.key.secret;
        let capture = format!("{charge}/capture");
        let captured = self.post(secret, "captured", &capture, "").await;
        captured.expect(200);
        // What reads has no line.
        let got = self.send(Method::GET, secret, "read", &charge, "").await;
        got.unwrap().expect(200);
    }

    async fn refused(&self) {
        let over = self.charge("over", "amount=105000&customer=cus_5").await;
        over.expect(402);
        let malformed = self.charge("malformed", "amount=1e3&customer=cus_5").await;
        malformed.expect(400);
        let secret = &self.key.secret;
        let refund = self.post(secret, "refund", "/v1/refunds", "charge=ch_1");
        refund.await.expect(403);
        let large = "x".repeat(5_000);
        // The answer may be cut off, since the body is not read.
        let path = "/v1/charges";
        let _cut_off = self.send(Method::POST, secret, "large", path, &large).await;
        until_logged(self.outside.daemon.output(), "large").await;
    }

    async fn not_let_in(&self) {
        let body = "amount=100&currency=usd&customer=cus_6";
        let unknown = self.post("sk_vault_unknown", "unknown", "/v1/charges", body);
        unknown.await.expect(401);
        let operator = self.outside.operator();
        let revoked = operator.issue(1_000, json!({})).await;
        let revoke = format!("/v1/vault_keys/{}/revoke", revoked.id);
        let reason = json!({ "reason": "a test" });
        let done = operator.admin(Method::POST, &revoke, Some(reason)).await;
        done.expect(200);
        let refused = self.post(&revoked.secret, "revoked", "/v1/charges", body);
        refused.await.expect(401);
    }

    /// Two requests wait at Stripe, which is as many as may; the client of one leaves.
    async fn left_and_full(&self) {
        let mut cut = RawClient::connect(self.outside.daemon.proxy).await;
        // It is told to go on once the body is asked for.
        let head = self.head("cut_off", 100, "expect: 100-continue\r\n");
        cut.write(&head).await;
        cut.read_until("\r\n\r\n").await;
        cut.finish().await;
        until_logged(self.outside.daemon.output(), "cut_off").await;

        let left = self.at_stripe("left", "cus_7", 1).await;
        let mut stays = self.at_stripe("stays", "cus_8", 2).await;
        let full = self.charge("full", "amount=100&customer=cus_9").await;
        full.expect(503);
        left.reset();
        self.outside.sandbox.release_gate();
        let answer = stays.read_until("\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        for attempt in ["left", "stays"] {
            until_logged(self.outside.daemon.output(), attempt).await;
        }
    }

    /// One is at Stripe while the server is told to end.
    async fn ended(&self) {
        let mut last = self.at_stripe("last", "cus_10", 1).await;
        self.outside.daemon.terminate();
        let output = self.outside.daemon.output();
        output.until_said("Draining", 1).await;
        self.outside.sandbox.release_gate();
        let answer = last.read_until("\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// A charge that Stripe holds, as the `number`th.
    async fn at_stripe(&self, attempt: &str, customer: &str, number: usize) -> RawClient {
        let at = Moment::BeforeCommit;
        let gate = Fault::new(FaultKind::Gate { at }).customer(customer);
        self.outside.sandbox.add_fault(gate.once());
        let body = format!("amount=100&currency=usd&customer={customer}");
        let mut client = RawClient::connect(self.outside.daemon.proxy).await;
        let head = self.head(attempt, body.len(), "");
        client.write(&format!("{head}{body}")).await;
        let arrived = self.outside.sandbox.wait_until_held(number);
        within("a request at Stripe", arrived).await;
        client
    }

    /// The text of a charge up to its body.
    fn head(&self, attempt: &str, length: usize, more: &str) -> String {
        format!(
            "POST /v1/charges HTTP/1.1\r\nhost: spendcap\r\nauthorization: Bearer {}\r\n\
             content-type: {FORM}\r\nx-attempt-id: {attempt}\r\ncontent-length: {length}\r\n\
             {more}\r\n",
            self.key.secret
        )
    }

    async fn charge(&self, attempt: &str, more: &str) -> Reply {
        let body = format!("currency=usd&description={DESCRIPTION}&{more}");
        let secret = &self.key.secret;
        self.post(secret, attempt, "/v1/charges", &body).await
    }

    async fn post(&self, secret: &str, attempt: &str, path: &str, body: &str) -> Reply {
        let sent = self.send(Method::POST, secret, attempt, path, body).await;
        sent.unwrap()
    }

    /// Over a connection of its own.
    async fn send(
        &self,
        method: Method,
        secret: &str,
        attempt: &str,
        path: &str,
        body: &str,
    ) -> Result<Reply, String> {
        let bearer = format!("Bearer {secret}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", FORM),
            ("x-attempt-id", attempt),
        ];
        let url = format!("{}{path}", self.outside.proxy_url());
        let body = body.to_owned();
        Client::new().try_send(method, &url, &headers, body).await
    }
}
