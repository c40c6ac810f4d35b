//! What the admin API answers, as tables.

use std::io::{self, Write as _};

use comfy_table::{ContentArrangement, Table, TableStyle};
use jiff::Timestamp;
use serde_json::Value;

use super::money::Shown;

/// Prints `answer` as JSON, or what `table` makes of it.
pub(super) fn print(
    answer: &Value,
    json: bool,
    table: impl FnOnce(&Value) -> String,
) -> anyhow::Result<()> {
    let text = if json {
        serde_json::to_string_pretty(answer)?
    } else {
        table(answer)
    };
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}

/// A table with a row for each object of a list, and a line where more follows.
pub(super) fn of_list(
    list: &Value,
    header: &[&str],
    row: impl Fn(&Value) -> Vec<String>,
) -> String {
    let data = list["data"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut table = plain();
    table.set_header(header.iter().copied());
    table.add_rows(data.iter().map(row));
    let mut text = table.trim_fmt();
    if list["has_more"] == true
        && let Some(last) = data.last()
    {
        text.push_str("\nThere are more: --starting-after ");
        text.push_str(&self::text(&last["id"]));
    }
    text
}

/// A table of names and values.
pub(super) fn of_object(rows: Vec<(&str, String)>) -> String {
    let mut table = plain();
    table.add_rows(
        rows.into_iter()
            .map(|(name, value)| [name.to_owned(), value]),
    );
    table.trim_fmt()
}

/// A table without lines: easy to read, and to cut and paste.
pub(super) fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(TableStyle::new())
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Text for people: `-` for what is not there.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        // An answer is not trusted to leave the terminal alone.
        Value::String(text) => text.chars().filter(|letter| !letter.is_control()).collect(),
        Value::Array(list) if list.is_empty() => "-".to_owned(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Unix seconds as a date and time in UTC.
pub(super) fn time(value: &Value) -> String {
    let seconds = value
        .as_i64()
        .and_then(|at| Timestamp::from_second(at).ok());
    seconds.map_or_else(|| text(value), |at| at.to_string())
}

/// An amount of `currency` in both units.
pub(super) fn amount(amount: &Value, currency: &Value) -> String {
    match (amount.as_i64(), currency.as_str()) {
        (Some(amount_minor), Some(currency)) => {
            let shown = Shown {
                amount_minor,
                currency,
            };
            shown.to_string()
        }
        _ => text(amount),
    }
}
