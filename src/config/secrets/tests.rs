use std::fs;
use std::path::Path;

use super::*;

fn start(folder: &Path, tokens_file: Option<&str>) -> (SecretWatch, Result<Secrets, Mistakes>) {
    let path = |name: &str| folder.join(name).display().to_string();
    let environment: Environment = [
        ("STRIPE_SECRET_KEY_FILE", path("key")),
        ("SPENDCAP_ADMIN_TOKEN_FILE", path("token")),
    ]
    .into_iter()
    .collect();
    SecretWatch::start(tokens_file.map(|name| folder.join(name)), &environment)
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn files_are_read_again_when_they_change() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "key", "sk_test_1\n");
    write(folder, "token", "a-token-of-an-operator\n");
    let (mut watch, secrets) = start(folder, None);
    assert_eq!(secrets.unwrap().stripe_key.expose(), "sk_test_1");
    assert!(watch.poll().unwrap().is_none());

    write(folder, "key", "sk_test_2\n");
    assert_eq!(
        watch.poll().unwrap().unwrap().stripe_key.expose(),
        "sk_test_2"
    );
    assert!(watch.poll().unwrap().is_none());

    // A mistake is told once, and the next good content counts as a change.
    write(folder, "key", "pk_test_3\n");
    assert_eq!(watch.poll().unwrap_err().iter().count(), 1);
    assert!(watch.poll().unwrap().is_none());
    write(folder, "key", "sk_test_2\n");
    assert_eq!(
        watch.poll().unwrap().unwrap().stripe_key.expose(),
        "sk_test_2"
    );

    fs::remove_file(folder.join("token")).unwrap();
    assert_eq!(watch.poll().unwrap_err().iter().count(), 1);
    assert_eq!(watch.poll().unwrap_err().iter().count(), 1);
}

#[test]
fn files_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "key", &"k".repeat(300_000));
    fs::write(folder.join("token"), [0xff, 0xfe]).unwrap();
    let (_, secrets) = start(folder, None);
    let mistakes = secrets.unwrap_err().to_string();
    assert!(
        mistakes.contains("key: longer than 262144 bytes"),
        "{mistakes}"
    );
    assert!(mistakes.contains("token: not a text"), "{mistakes}");
}

#[test]
fn tokens_have_a_name_a_role_and_a_digest() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let digest = sha256_hex("a-token-of-an-operator");
    write(folder, "key", "sk_test_1");
    write(folder, "token", "a-token-of-an-operator");
    let lines = format!(
        "# people\n\nada:admin:{digest}\nbob:viewer:{}\n",
        digest.to_uppercase()
    );
    write(folder, "tokens", &lines);
    let (_, secrets) = start(folder, Some("tokens"));
    let tokens = secrets.unwrap().admin_tokens;
    let shown: Vec<_> = tokens.iter().map(|token| format!("{token:?}")).collect();
    assert_eq!(shown, ["env:admin:…", "ada:admin:…", "bob:viewer:…"]);
    let first = tokens.iter().next().unwrap();
    assert!(tokens.iter().all(|token| token.sha256 == first.sha256));
}

#[test]
fn wrong_token_lines_are_reported_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let digest = sha256_hex("hunter2");
    write(folder, "key", "sk_test_1");
    write(folder, "token", "short");
    let wrong = [
        format!("ada:owner:{digest}"),
        format!("ada:admin:{}", &digest[1..]),
        format!("ada:admin:{digest}:x"),
        format!(":admin:{digest}"),
        format!("ada admin {digest}"),
        format!("bob:admin:{digest}"),
        format!("bob:viewer:{digest}"),
    ];
    write(folder, "tokens", &wrong.join("\n"));
    let (_, secrets) = start(folder, Some("tokens"));
    let mistakes = secrets.unwrap_err();
    let places: Vec<_> = mistakes
        .iter()
        .map(|mistake| mistake.place.clone())
        .collect();
    let file = folder.join("tokens");
    let lines = [1, 2, 3, 4, 5, 7].map(|line| Place::Line(file.clone(), line));
    assert_eq!(
        places,
        [&[Place::File(folder.join("token"))][..], &lines].concat()
    );
    assert!(!mistakes.to_string().contains(&digest), "{mistakes}");
}
