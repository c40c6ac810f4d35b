//! The dashboard's JSON, and its queries with the variables filled in as Grafana does it.

use serde_json::Value;

use crate::support::repository::read;

/// The dashboard as Grafana imports it.
pub(super) struct Dashboard(pub(super) Value);

/// One query of a panel, of a variable or of the annotations.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// The panel's title, or what else asks.
    pub(super) asker: String,
    pub(super) expression: String,
}

/// What a reader of the dashboard has chosen.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Empty is "All".
    pub(super) billing_periods: Vec<String>,
    /// Empty is "All".
    pub(super) vault_keys: Vec<String>,
    pub(super) currency: String,
    /// What `$__rate_interval` becomes, such as `4s`.
    pub(super) rate_interval: String,
}

impl Dashboard {
    pub(super) fn load() -> Self {
        let dashboard = read("grafana/dashboards/spendcap.json");
        Self(serde_json::from_str(&dashboard).unwrap())
    }

    /// Every panel, rows as well.
    pub(super) fn panels(&self) -> &[Value] {
        self.0["panels"].as_array().unwrap()
    }

    /// What the panels and the annotations ask.
    pub(super) fn queries(&self) -> Vec<Query> {
        let mut queries = Vec::new();
        for panel in self.panels() {
            for target in panel["targets"].as_array().into_iter().flatten() {
                queries.push(Query {
                    asker: text(panel, "title"),
                    expression: text(target, "expr"),
                });
            }
        }
        for annotation in self.0["annotations"]["list"].as_array().unwrap() {
            queries.push(Query {
                asker: text(annotation, "name"),
                expression: text(&annotation["target"], "expr"),
            });
        }
        queries
    }

    /// The queries of one panel.
    pub(super) fn queries_of(&self, title: &str) -> Vec<Query> {
        let mut queries = self.queries();
        queries.retain(|query| query.asker.starts_with(title));
        assert!(!queries.is_empty(), "no panel {title}");
        queries
    }

    /// Name, series and label of each `label_values(series, label)`.
    pub(super) fn label_values(&self) -> Vec<(String, String, String)> {
        let variables = self.0["templating"]["list"].as_array().unwrap();
        let asking = variables.iter().filter(|one| one["type"] == "query");
        asking
            .map(|variable| {
                let query = text(&variable["query"], "query");
                let inner = query.strip_prefix("label_values(").unwrap();
                let inner = inner.strip_suffix(')').unwrap();
                let (series, label) = inner.rsplit_once(", ").unwrap();
                let name = text(variable, "name");
                (name, series.to_owned(), label.to_owned())
            })
            .collect()
    }
}

impl Choice {
    /// Everything there is.
    pub(super) fn all(currency: &str, rate_interval: &str) -> Self {
        Self {
            billing_periods: Vec::new(),
            vault_keys: Vec::new(),
            currency: currency.to_owned(),
            rate_interval: rate_interval.to_owned(),
        }
    }

    /// Fills the variables in.
    ///
    /// # Panics
    /// Where one is left: Grafana would send it as it stands.
    pub(super) fn fill(&self, expression: &str) -> String {
        let filled = expression
            .replace("$__rate_interval", &self.rate_interval)
            .replace("$billing_period", &any_of(&self.billing_periods))
            .replace("$vault_key", &any_of(&self.vault_keys))
            .replace("$currency", &self.currency);
        assert!(!filled.contains('$'), "an unknown variable: {filled}");
        filled
    }
}

/// A multi-value variable inside of `=~"…"`: what Grafana's Prometheus data source makes of it. "All" is the
/// variable's own `allValue`.
fn any_of(values: &[String]) -> String {
    match values {
        [] => ".+".to_owned(),
        [one] => escaped(one),
        many => {
            let many: Vec<String> = many.iter().map(|value| escaped(value)).collect();
            format!("({})", many.join("|"))
        }
    }
}

/// Escaped for the expression, and once more for the string it stands in.
fn escaped(value: &str) -> String {
    let mut escaped = String::new();
    for letter in value.chars() {
        if r"\^$*+?.()|[]{}".contains(letter) {
            escaped.push_str(r"\\");
        }
        escaped.push(letter);
    }
    escaped
}

/// A field that has to be a text.
pub(super) fn text(value: &Value, field: &str) -> String {
    let Some(text) = value[field].as_str() else {
        panic!("no text {field} in {value}");
    };
    text.to_owned()
}
