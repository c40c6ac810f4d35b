use super::*;

const HOUR_MS: i64 = 3_600_000;

fn fingerprint(path: &str, params: &str) -> Fingerprint {
    Fingerprint::of(&http::Method::POST, path, &form::parse(params).unwrap())
}

fn answer() -> Reply {
    Reply::ok(&serde_json::json!({ "id": "ch_1" }))
}

/// Uses the key once, to the end.
fn used(account: &Arc<Account>) {
    let first = KeyStore::admit(account, "k", fingerprint("/v1/charges", "a=1"), 0);
    let Admission::Run(key) = first else {
        panic!("{first:?}")
    };
    key.store(&answer(), "req_1");
}

fn said(admission: &Admission) -> String {
    match admission {
        Admission::Run(_) => "run".to_owned(),
        Admission::Replay(stored) => format!("replay {}", stored.original_request),
        Admission::Refuse(error) => Reply::from(error.clone()).status.as_str().to_owned(),
    }
}

#[test]
fn a_used_key_replays_refuses_or_expires() {
    let rows = [
        ("/v1/charges", "a=1", 1, "replay req_1"),
        ("/v1/charges", "a=2", 1, "400"),
        ("/v1/refunds", "a=1", 1, "400"),
        ("/v1/charges", "a=1", 24 * HOUR_MS - 1, "replay req_1"),
        ("/v1/charges", "a=1", 24 * HOUR_MS, "run"),
        ("/v1/charges", "a=2", 24 * HOUR_MS, "run"),
    ];
    for (path, params, at_ms, expected) in rows {
        let account = Arc::new(Account::new("acct_1"));
        used(&account);
        let again = KeyStore::admit(&account, "k", fingerprint(path, params), at_ms);
        assert_eq!(said(&again), expected, "{path} {params} at {at_ms}");
    }
}

#[test]
fn a_key_is_in_use_until_its_request_ends_and_free_if_nothing_was_stored() {
    let account = Arc::new(Account::new("acct_1"));
    let print = fingerprint("/v1/charges", "a=1");
    let first = KeyStore::admit(&account, "k", print, 0);
    assert_eq!(said(&first), "run");
    assert_eq!(
        said(&KeyStore::admit(&account, "k", print, 25 * HOUR_MS)),
        "409"
    );
    drop(first);
    assert_eq!(said(&KeyStore::admit(&account, "k", print, 0)), "run");
}

#[test]
fn accounts_do_not_share_keys() {
    used(&Arc::new(Account::new("acct_1")));
    let other = Arc::new(Account::new("acct_2"));
    assert_eq!(
        said(&KeyStore::admit(
            &other,
            "k",
            fingerprint("/v1/charges", "a=1"),
            1
        )),
        "run"
    );
}

#[test]
fn the_length_of_a_key_is_bounded() {
    let account = Arc::new(Account::new("acct_1"));
    let print = fingerprint("/v1/charges", "");
    for (key, expected) in [
        ("k".repeat(255), "run"),
        ("k".repeat(256), "400"),
        (String::new(), "400"),
    ] {
        assert_eq!(said(&KeyStore::admit(&account, &key, print, 0)), expected);
    }
}
