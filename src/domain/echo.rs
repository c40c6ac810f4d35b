//! What an error or a log line may repeat of what somebody sent.

/// Longest piece that is repeated: enough to find the mistake, too little to fill a log.
const ECHO_CHARS_MAX: usize = 100;

/// How keys begin, ours and Stripe's: secret and restricted ones (contract §4.2).
const KEY_BEGINNINGS: [&str; 2] = ["sk_", "rk_"];

/// `text` as an error may repeat it: short, without control characters and without keys.
pub fn echo(text: &str) -> String {
    let (head, more) = match text.char_indices().nth(ECHO_CHARS_MAX) {
        Some((end, _)) => (text.get(..end).unwrap_or_default(), "…"),
        None => (text, ""),
    };
    let shown = masked(head).replace(char::is_control, "?");
    shown + more
}

/// The text without the words that begin like a key.
pub fn masked(text: &str) -> String {
    let ends_word = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
    let mut masked = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends_word) {
        let word = piece.trim_end_matches(ends_word);
        if KEY_BEGINNINGS.iter().any(|key| word.starts_with(key)) {
            masked.push_str("sk_…");
            masked.push_str(&piece[word.len()..]);
        } else {
            masked.push_str(piece);
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::VaultSecret;

    #[test]
    fn what_is_repeated_is_short_and_plain() {
        let longest = "é".repeat(100);
        for (text, shown) in [
            (String::new(), String::new()),
            ("a\u{1b}[2K\nb".to_owned(), "a?[2K?b".to_owned()),
            (longest.clone(), longest.clone()),
            (format!("{longest}é"), format!("{longest}…")),
            (
                format!("{}sk_live_1", "a ".repeat(45)),
                format!("{}sk_…", "a ".repeat(45)),
            ),
            (
                format!("{}sk_live_1", "a ".repeat(48)),
                format!("{}sk_……", "a ".repeat(48)),
            ),
        ] {
            assert_eq!(echo(&text), shown);
        }
    }

    #[test]
    fn keys_are_masked_wherever_they_stand() {
        let secret = VaultSecret::from_entropy([7; 24]);
        let key = secret.reveal();
        for (text, shown) in [
            (String::new(), ""),
            ("/v1/vault_keys/vk_1".to_owned(), "/v1/vault_keys/vk_1"),
            (key.to_owned(), "sk_…"),
            (
                format!("/v1/vault_keys/{key}/revoke"),
                "/v1/vault_keys/sk_…/revoke",
            ),
            (format!("rk_live_1é, {key}&{key}"), "sk_…é, sk_…&sk_…"),
            ("task_1,desk_2".to_owned(), "task_1,desk_2"),
        ] {
            assert_eq!(masked(&text), shown);
        }
    }
}
