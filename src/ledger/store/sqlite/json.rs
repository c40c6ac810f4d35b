//! A set of rows as one JSON parameter: `json_each` reads it, so that a statement takes any number of
//! rows (a statement per row is ten times slower).

use std::fmt::Write as _;

use crate::domain::digest::Digest16;

/// `[[cell, …], …]`. Bytes are hex and read with `unhex`.
pub(super) struct JsonRows {
    text: String,
    rows: u64,
}

impl JsonRows {
    pub(super) fn new() -> Self {
        Self {
            text: "[".to_owned(),
            rows: 0,
        }
    }

    /// Starts the next row.
    pub(super) fn row(&mut self) -> &mut Self {
        self.text.push_str(if self.rows == 0 { "[" } else { "],[" });
        self.rows += 1;
        self
    }

    pub(super) fn int(&mut self, number: i64) -> &mut Self {
        self.cell();
        // Writing to a String cannot fail.
        let _infallible = write!(self.text, "{number}");
        self
    }

    pub(super) fn int_or_null(&mut self, number: Option<i64>) -> &mut Self {
        match number {
            Some(number) => self.int(number),
            None => self.null(),
        }
    }

    pub(super) fn truth(&mut self, truth: bool) -> &mut Self {
        self.int(i64::from(truth))
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.cell();
        write_text(&mut self.text, text);
        self
    }

    pub(super) fn text_or_null(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.cell();
        write_hex(&mut self.text, bytes);
        self
    }

    pub(super) fn digest_or_null(&mut self, digest: Option<Digest16>) -> &mut Self {
        match digest {
            Some(digest) => self.bytes(&digest.0),
            None => self.null(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.rows
    }

    pub(super) fn into_text(mut self) -> String {
        self.text.push_str(if self.rows == 0 { "]" } else { "]]" });
        self.text
    }

    fn null(&mut self) -> &mut Self {
        self.cell();
        self.text.push_str("null");
        self
    }

    fn cell(&mut self) {
        if !self.text.ends_with('[') {
            self.text.push(',');
        }
    }
}

/// `[number, …]`.
pub(super) fn numbers(numbers: impl IntoIterator<Item = i64>) -> String {
    list(numbers, |text, number| {
        let _infallible = write!(text, "{number}");
    })
}

/// `["text", …]`.
pub(super) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    list(texts, write_text)
}

/// `["hex", …]`.
pub(super) fn digests<'a>(digests: impl IntoIterator<Item = &'a Digest16>) -> String {
    list(digests, |text, digest| write_hex(text, &digest.0))
}

fn list<T>(items: impl IntoIterator<Item = T>, write: impl Fn(&mut String, T)) -> String {
    let mut text = "[".to_owned();
    for item in items {
        if text.len() > 1 {
            text.push(',');
        }
        write(&mut text, item);
    }
    text.push(']');
    text
}

/// A JSON string. Control characters and quotes cannot come in ids, so the common case is a copy.
fn write_text(to: &mut String, text: &str) {
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        to.push('"');
        to.push_str(text);
        to.push('"');
    } else {
        to.push_str(&serde_json::Value::from(text).to_string());
    }
}

fn write_hex(to: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    to.push('"');
    for byte in bytes {
        to.push(DIGITS[usize::from(byte >> 4)]);
        to.push(DIGITS[usize::from(byte & 15)]);
    }
    to.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_json_whatever_the_text() {
        let mut rows = JsonRows::new();
        rows.row().int(-1).text("a\"\\\n\u{1}ü").text_or_null(None);
        rows.row()
            .truth(true)
            .digest_or_null(Some(Digest16([0xab; 16])));
        assert_eq!(rows.len(), 2);
        let read: serde_json::Value = serde_json::from_str(&rows.into_text()).unwrap();
        assert_eq!(
            read,
            serde_json::json!([[-1, "a\"\\\n\u{1}ü", null], [1, "ab".repeat(16)]])
        );
        assert_eq!(JsonRows::new().into_text(), "[]");
        assert_eq!(texts(["x", "y"]), r#"["x","y"]"#);
        assert_eq!(numbers([1, 2]), "[1,2]");
        assert_eq!(digests([]), "[]");
    }
}
