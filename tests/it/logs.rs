//! The log of a running server: JSON alone, and one line for each request that could move money,
//! however it ends.

mod lines;
mod requests;

use serde_json::{Map, Value};

use crate::support::daemon::Output;
use crate::support::patience::within;

/// A money request's line, without what every line has.
type Line = Map<String, Value>;

/// What every line of any kind has.
const EVERYWHERE: [&str; 4] = ["timestamp", "level", "message", "target"];

/// Every line of standard error is one JSON object; the money requests' are returned.
fn money_lines(log: &str) -> Vec<Line> {
    let parse = |line: &str| {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        let Value::Object(fields) = parsed else {
            panic!("not an object: {line}");
        };
        for name in EVERYWHERE {
            assert!(fields.contains_key(name), "{name} is not in {line}");
        }
        fields
    };
    let lines = log.lines().map(parse);
    lines
        .filter(|line| line["message"] == "Money request")
        .collect()
}

/// What is said of the attempt, once it is said.
async fn until_logged(output: &Output, attempt: &str) {
    let field = format!("\"attempt_id\":\"{attempt}\"");
    within(attempt, output.until_said(&field, 1)).await;
}

/// The fields of `line` that tell what happened, as `name=value`, and the names of those whose values no
/// test can foretell.
fn told(line: &Line) -> (String, Vec<&str>) {
    let (mut values, mut names) = (Vec::new(), Vec::new());
    for (name, value) in line {
        let name = name.as_str();
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let varies = name.ends_with("_ms") || name.ends_with("request_id");
        let varies = varies || ["vault_key", "reservation"].contains(&name);
        if varies {
            assert!(value.is_u64() || !text.is_empty(), "{name}");
            names.push(name);
        } else if name != "attempt_id" && !EVERYWHERE.contains(&name) {
            values.push(format!("{name}={text}"));
        }
    }
    values.sort_unstable();
    (values.join(" "), names)
}
