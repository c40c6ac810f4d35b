//! `spendcap keys issue`.

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use super::show;
use crate::cli::admin_client::AdminArgs;
use crate::cli::table;

/// Issue a vault key; its secret is printed once
#[derive(Debug, Args)]
pub(super) struct IssueArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The name of the billing run, such as 2026-08
    #[arg(long, value_name = "NAME")]
    period: String,
    /// Which billing job it is
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    expected: ExpectedArgs,
    /// Until when: unix seconds, or RFC 3339 with an offset
    #[arg(long, value_name = "TIME")]
    expires_at: String,
    /// From when: unix seconds, or RFC 3339 with an offset
    #[arg(long, value_name = "TIME")]
    starts_at: Option<String>,
    /// The factor between expected total and cap, such as 1.10
    #[arg(long, value_name = "DECIMAL")]
    headroom: Option<String>,
    /// What happens to a second charge of one customer: replay, reject or flag
    #[arg(long, value_name = "POLICY")]
    on_duplicate: Option<String>,
    /// enforce, or observe: record what would have been refused
    #[arg(long, value_name = "MODE")]
    enforcement: Option<String>,
    /// What the key may do, such as charges:write; may be repeated
    #[arg(long = "permission", value_name = "NAME")]
    permissions: Vec<String>,
    /// The largest single charge, such as usd=1200000; may be repeated
    #[arg(long, value_name = "CURRENCY=MINOR")]
    max_charge: Vec<String>,
    /// The status of cap refusals: 402 or 403
    #[arg(long, value_name = "STATUS")]
    refusal_status: Option<u16>,
    /// A connected account whose money the key may move; may be repeated
    #[arg(long = "account", value_name = "ACCOUNT")]
    accounts: Vec<String>,
    /// Refuse charges that name no customer
    #[arg(long)]
    require_customer: bool,
    /// Your own notes, such as team=billing; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    metadata: Vec<String>,
}

/// What the run is expected to bill.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExpectedArgs {
    /// What the run is expected to bill, in minor units; with --currency
    #[arg(long, value_name = "MINOR", requires = "currency")]
    expected_total: Option<i64>,
    /// The currency of --expected-total
    #[arg(long, value_name = "CURRENCY", requires = "expected_total")]
    currency: Option<String>,
    /// The same for several currencies, such as usd=4950000; may be repeated
    #[arg(long, value_name = "CURRENCY=MINOR", conflicts_with = "expected_total")]
    expected: Vec<String>,
}

impl ExpectedArgs {
    /// Writes what was given into the body of a request.
    pub(super) fn write(&self, body: &mut Map<String, Value>) -> anyhow::Result<()> {
        if let Some(total) = self.expected_total {
            body.insert("expected_total".to_owned(), json!(total));
            body.insert("currency".to_owned(), json!(self.currency));
        }
        if !self.expected.is_empty() {
            body.insert(
                "expected_totals".to_owned(),
                amounts("--expected", &self.expected)?,
            );
        }
        Ok(())
    }
}

pub(super) async fn run(args: &IssueArgs) -> anyhow::Result<()> {
    let body = args.body()?;
    let key = args.admin.client()?.post("/v1/vault_keys", &body).await?;
    table::print(&key, args.admin.json, show::key_with_secret)
}

impl IssueArgs {
    /// Only what was given: the server knows the defaults, and judges the values.
    fn body(&self) -> anyhow::Result<Value> {
        let mut body = Map::new();
        self.expected.write(&mut body)?;
        let mut put = |name: &str, value: Value| {
            let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            if !empty {
                body.insert(name.to_owned(), value);
            }
        };
        put("billing_period", json!(self.period));
        put("namespace", json!(self.namespace));
        put("expires_at", time(&self.expires_at));
        put(
            "starts_at",
            self.starts_at.as_deref().map_or(Value::Null, time),
        );
        put("headroom", json!(self.headroom));
        put("on_duplicate", json!(self.on_duplicate));
        put("enforcement", json!(self.enforcement));
        put("permissions", json!(self.permissions));
        put("refusal_status", json!(self.refusal_status));
        put("accounts", json!(self.accounts));
        if self.require_customer {
            put("require_customer", json!(true));
        }
        if !self.max_charge.is_empty() {
            put("max_charge", amounts("--max-charge", &self.max_charge)?);
        }
        if !self.metadata.is_empty() {
            put("metadata", notes(&self.metadata)?);
        }
        Ok(Value::Object(body))
    }
}

/// Digits are unix seconds; the server judges everything else.
fn time(text: &str) -> Value {
    text.parse::<i64>()
        .map_or_else(|_| json!(text), |seconds| json!(seconds))
}

fn amounts(option: &str, pairs: &[String]) -> anyhow::Result<Value> {
    pairs_of(option, "usd=4950000", pairs, |minor| {
        let minor: i64 = minor
            .parse()
            .context("the amount is a whole number of minor units")?;
        Ok(json!(minor))
    })
}

fn notes(pairs: &[String]) -> anyhow::Result<Value> {
    pairs_of("--metadata", "team=billing", pairs, |text| Ok(json!(text)))
}

fn pairs_of(
    option: &str,
    example: &str,
    pairs: &[String],
    read: impl Fn(&str) -> anyhow::Result<Value>,
) -> anyhow::Result<Value> {
    let mut object = Map::new();
    for pair in pairs {
        let (name, value) = pair
            .split_once('=')
            .with_context(|| format!("{option} is written as {example}, not {pair}"))?;
        let value = read(value).with_context(|| format!("{option} {pair}"))?;
        if object.insert(name.to_owned(), value).is_some() {
            bail!("{option} gives {name} twice");
        }
    }
    Ok(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        issue: IssueArgs,
    }

    fn body(line: &str) -> anyhow::Result<Value> {
        Line::try_parse_from(format!("issue {line}").split(' '))?
            .issue
            .body()
    }

    #[test]
    fn only_what_was_given_is_sent() {
        let least = "--period 2026-08 --expected-total 99 --currency usd --expires-at 1788307200";
        assert_eq!(
            body(least).unwrap(),
            json!({"billing_period": "2026-08", "expected_total": 99, "currency": "usd",
                "expires_at": 1_788_307_200})
        );
        let several = "--period p --expected usd=1 --expected eur=2 --expires-at 2026-09-01T00:00:00Z \
             --permission charges:write --max-charge usd=5 --metadata a=b=c --require-customer";
        assert_eq!(
            body(several).unwrap(),
            json!({"billing_period": "p", "expected_totals": {"usd": 1, "eur": 2},
                "expires_at": "2026-09-01T00:00:00Z", "permissions": ["charges:write"],
                "max_charge": {"usd": 5}, "metadata": {"a": "b=c"}, "require_customer": true})
        );
    }

    #[test]
    fn wrong_lines_are_refused_before_anything_is_sent() {
        for line in [
            "--period p --expires-at 1 --expected-total 1",
            "--period p --expires-at 1 --currency usd",
            "--period p --expires-at 1 --expected-total 1.5 --currency usd",
            "--period p --expires-at 1 --expected usd",
            "--period p --expires-at 1 --expected usd=1.5",
            "--period p --expires-at 1 --expected usd=1 --expected usd=2",
            "--period p --expires-at 1 --expected usd=1 --expected-total 1 --currency usd",
            "--expires-at 1 --expected usd=1",
            "--period p --expected usd=1",
        ] {
            assert!(body(line).is_err(), "{line}");
        }
    }
}
