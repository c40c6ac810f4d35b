//! Vault keys as tables.

use serde_json::Value;

use crate::cli::table::{amount, of_list, of_object, plain, text, time};

/// One line for each cap of each key.
pub(super) fn list(keys: &Value) -> String {
    let header = [
        "ID",
        "PERIOD",
        "NAMESPACE",
        "STATUS",
        "CAP",
        "USED",
        "REMAINING",
        "EXPIRES",
    ];
    of_list(keys, &header, |key| {
        let each = |value: fn(&Value) -> String| {
            let caps = key["caps"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            caps.iter().map(value).collect::<Vec<_>>().join("\n")
        };
        vec![
            text(&key["id"]),
            text(&key["billing_period"]),
            text(&key["namespace"]),
            text(&key["status"]),
            each(|cap| amount(&cap["max_amount"], &cap["currency"])),
            each(|cap| amount(&used(cap), &cap["currency"])),
            each(|cap| amount(&cap["remaining"], &cap["currency"])),
            time(&key["expires_at"]),
        ]
    })
}

/// A key and its caps.
pub(super) fn key(key: &Value) -> String {
    let max_charge = key["max_charge"].as_object().into_iter().flatten();
    let max_charge = max_charge.map(|(currency, most)| amount(most, &currency.as_str().into()));
    let metadata = key["metadata"].as_object().into_iter().flatten();
    let metadata =
        metadata.map(|(name, value)| format!("{}={}", text(&name.as_str().into()), text(value)));
    let about = of_object(vec![
        ("id", text(&key["id"])),
        ("status", text(&key["status"])),
        ("billing period", text(&key["billing_period"])),
        ("namespace", text(&key["namespace"])),
        ("secret", text(&key["secret_hint"])),
        ("created", time(&key["created"])),
        ("starts", time(&key["starts_at"])),
        ("expires", time(&key["expires_at"])),
        ("headroom", text(&key["headroom"])),
        ("on duplicate", text(&key["on_duplicate"])),
        ("enforcement", text(&key["enforcement"])),
        ("permissions", text(&key["permissions"])),
        (
            "largest charge",
            or_dash(max_charge.collect::<Vec<_>>().join(", ")),
        ),
        ("refusal status", text(&key["refusal_status"])),
        ("accounts", text(&key["accounts"])),
        ("customer required", text(&key["require_customer"])),
        ("metadata", or_dash(metadata.collect::<Vec<_>>().join(", "))),
    ]);
    format!("{about}\n\n{}", caps(key))
}

/// A key that was just issued or rotated.
pub(super) fn key_with_secret(object: &Value) -> String {
    let secret = object["secret"].as_str();
    let secret = secret.map_or_else(
        || "No secret: this request was carried out before, and a secret is shown once.".to_owned(),
        |secret| format!("Secret, shown only now; keep it where the billing service reads it:\n\n    {secret}"),
    );
    format!("{}\n\n{secret}", key(object))
}

fn caps(key: &Value) -> String {
    let mut table = plain();
    table.set_header([
        "CURRENCY",
        "EXPECTED",
        "CAP",
        "RESERVED",
        "SETTLED",
        "REMAINING",
    ]);
    for cap in key["caps"].as_array().into_iter().flatten() {
        let currency = &cap["currency"];
        let columns = [
            "expected_total",
            "max_amount",
            "reserved",
            "settled",
            "remaining",
        ];
        let amounts = columns.map(|column| amount(&cap[column], currency));
        table.add_row(std::iter::once(text(currency)).chain(amounts));
    }
    table.trim_fmt()
}

fn used(cap: &Value) -> Value {
    let part = |name: &str| cap[name].as_i64().unwrap_or(0);
    part("reserved").saturating_add(part("settled")).into()
}

fn or_dash(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}
