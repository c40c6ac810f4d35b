//! What makes the dashboard fit for any Grafana: no data source of its own, no overlap, and a word of advice
//! in every panel.

use std::collections::BTreeSet;

use serde_json::Value;

use super::dashboard::{Choice, Dashboard, text};
use super::rules::ALERTS;

/// How wide Grafana's grid is.
const COLUMNS: u64 = 24;

#[test]
fn panels_have_a_title_advice_a_unit_and_ids_of_their_own() {
    let dashboard = Dashboard::load();
    let mut ids = BTreeSet::new();
    let mut titles = BTreeSet::new();
    for panel in dashboard.panels() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let title = text(panel, "title");
        assert!(titles.insert(title.clone()), "{title}");
        if panel["type"] == "row" {
            continue;
        }
        let advice = text(panel, "description");
        let sentences = advice.matches(". ").count() + advice.matches('.').count();
        assert!(advice.ends_with('.') && sentences == 1, "{title}: {advice}");
        let unit = text(&panel["fieldConfig"]["defaults"], "unit");
        let of_money = title.contains("minor units");
        assert_eq!(unit == "locale", of_money, "{title}: {unit}");
        assert_eq!(title.contains("$currency"), of_money, "{title}");
        let targets = panel["targets"].as_array().unwrap();
        let refs: BTreeSet<String> = targets.iter().map(|one| text(one, "refId")).collect();
        assert_eq!(refs.len(), targets.len(), "{title}");
        for target in targets {
            assert_ne!(target["instant"], target["range"], "{title}");
        }
    }
}

#[test]
fn no_panel_covers_another() {
    let dashboard = Dashboard::load();
    let mut taken = BTreeSet::new();
    for panel in dashboard.panels() {
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        let (x, y, w, h) = (side("x"), side("y"), side("w"), side("h"));
        assert!(w > 0 && h > 0 && x + w <= COLUMNS, "{}", panel["title"]);
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{} covers {cell:?}", panel["title"]);
        }
    }
    // Grafana moves panels up into gaps: then rows would not be where they are here.
    let height = taken.iter().map(|(_, y)| y + 1).max().unwrap();
    assert_eq!(u64::try_from(taken.len()).unwrap(), height * COLUMNS);
}

#[test]
fn the_data_source_is_always_the_readers_choice() {
    let dashboard = Dashboard::load();
    let mut found = 0;
    each_object(&dashboard.0, &mut |object| {
        if let Some(source) = object.get("datasource") {
            assert_eq!(source["type"], "prometheus", "{object:?}");
            assert_eq!(source["uid"], "${datasource}", "{object:?}");
            found += 1;
        }
        // What an export "for sharing" leaves, and provisioning does not fill in.
        assert!(!object.contains_key("__inputs"), "{object:?}");
    });
    let asked = dashboard.queries().len() + dashboard.label_values().len();
    assert!(found > asked, "{found}");
    let variables = dashboard.0["templating"]["list"].as_array().unwrap();
    assert_eq!(variables[0]["name"], "datasource");
    assert_eq!(variables[0]["type"], "datasource");
    assert!(dashboard.0["id"].is_null());
}

/// Every replica exports the ledger's gauges: a plain sum would count money once for each.
#[test]
fn ledger_gauges_are_never_added_up_over_replicas() {
    for query in Dashboard::load().queries() {
        for gauge in ["_minor{", "spendcap_flags_open", "_held_"] {
            let mut rest = query.expression.as_str();
            while let Some(place) = rest.find(gauge) {
                let before = &query.expression[..query.expression.len() - rest.len() + place];
                let innermost = ["max by (", "min by (", "max("];
                assert!(
                    innermost.iter().any(|max| before.contains(max)),
                    "{}: {}",
                    query.asker,
                    query.expression
                );
                rest = &rest[place + gauge.len()..];
            }
        }
    }
}

#[test]
fn the_annotations_name_every_alert() {
    let dashboard = Dashboard::load();
    let alerts = dashboard.queries_of("Alerts");
    assert!(alerts[0].expression.contains(&ALERTS.join("|")));
}

fn each_object(value: &Value, see: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            see(object);
            object.values().for_each(|inner| each_object(inner, see));
        }
        Value::Array(list) => list.iter().for_each(|inner| each_object(inner, see)),
        _ => {}
    }
}

/// Of a bar or a table one moment is shown: asking for the whole range would cost it for nothing, and list keys
/// that have left the list.
#[test]
fn bars_and_tables_ask_for_one_moment() {
    let dashboard = Dashboard::load();
    for panel in dashboard.panels() {
        let one_moment = ["bargauge", "table"].contains(&text(panel, "type").as_str());
        let Some(targets) = panel["targets"].as_array() else {
            continue;
        };
        for target in targets {
            assert_eq!(target["instant"], one_moment, "{}", panel["title"]);
        }
    }
}

#[test]
fn variables_are_filled_in_as_grafana_does() {
    let mut choice = Choice::all("usd", "1m");
    let expression =
        r#"rate(x{p=~"$billing_period",k=~"$vault_key",c="$currency"}[$__rate_interval])"#;
    let all = r#"rate(x{p=~".+",k=~".+",c="usd"}[1m])"#;
    assert_eq!(choice.fill(expression), all);
    choice.billing_periods = vec!["2026.08".to_owned()];
    choice.vault_keys = vec!["vk_1".to_owned(), "vk_2".to_owned()];
    let some = r#"rate(x{p=~"2026\\.08",k=~"(vk_1|vk_2)",c="usd"}[1m])"#;
    assert_eq!(choice.fill(expression), some);
}
