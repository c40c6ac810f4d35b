//! The dashboard against Grafana's own schema, of every version that is to import it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::dashboard::Dashboard;
use crate::support::clients::{installed, sources};
use crate::support::program::{RUN_MAX, Ran, run};

/// Grafana's major version, and where its package keeps the types.
const VERSIONS: [(u8, &str); 3] = [(10, "dist/esm"), (11, "dist/esm"), (12, "dist/types")];

#[tokio::test]
async fn the_dashboard_is_what_the_schema_says() {
    for version in VERSIONS {
        check(version, &[&Dashboard::load().0]).await.ok();
    }
}

/// The test above means something: a field that is wrong, unknown or missing is found out.
#[tokio::test]
async fn a_mistake_in_the_dashboard_is_found() {
    let mistakes: [(&str, Option<Value>); 10] = [
        ("/schemaVersion", Some(json!("38"))),
        ("/templating/list/1/refresh", Some(json!(9))),
        ("/annotations/list/0/enable", None),
        ("/panels/1/gridPos/w", Some(json!("8"))),
        ("/panels/1/fieldConfig/defaults/decimals", Some(json!("1"))),
        ("/panels/1/options/displayMode", Some(json!("basik"))),
        ("/panels/1/options/reduceOptions", None),
        ("/panels/2/targets/0/expression", Some(json!("up"))),
        (
            "/panels/5/fieldConfig/defaults/custom/drawStyle",
            Some(json!("lines")),
        ),
        ("/panels/5/datasource/uid", Some(json!("prometheus"))),
    ];
    let wrong: Vec<Value> = mistakes
        .iter()
        .map(|(place, value)| {
            let mut dashboard = Dashboard::load().0;
            let (parent, field) = place.rsplit_once('/').unwrap();
            let parent = dashboard.pointer_mut(parent).unwrap();
            match value {
                Some(value) => parent[field] = value.clone(),
                None => drop(parent.as_object_mut().unwrap().remove(field).unwrap()),
            }
            dashboard
        })
        .collect();
    let found = check(VERSIONS[2], &wrong.iter().collect::<Vec<_>>()).await;
    assert!(!found.status.success(), "{found:?}");
    let errors = found.stdout;
    for (index, mistake) in mistakes.iter().enumerate() {
        let place = format!("dashboard_{index}.ts(");
        assert!(
            errors.contains(&place),
            "{mistake:?} is not found: {errors}"
        );
    }
}

/// Has TypeScript compare dashboards with the types of one version, and say what is wrong with them.
async fn check((version, types): (u8, &str), dashboards: &[&Value]) -> Ran {
    let folder = TempDir::new().unwrap();
    let here = |name: &str| folder.path().join(name);
    let modules = installed("grafana").join("node_modules");
    let types = modules.join(format!("schema-{version}")).join(types);
    fs::copy(sources("grafana").join("shape.ts"), here("shape.ts")).unwrap();
    let mut names = Vec::new();
    for (index, dashboard) in dashboards.iter().enumerate() {
        let name = format!("dashboard_{index}.ts");
        let dashboard = serde_json::to_string_pretty(dashboard).unwrap();
        let program = format!(
            "import type {{ Shape }} from \"./shape\";\nexport default {dashboard} satisfies Shape;\n"
        );
        fs::write(here(&name), program).unwrap();
        names.push(name);
    }
    fs::write(here("tsconfig.json"), settings(&types, &names)).unwrap();
    let mut compiler = Command::new(modules.join(".bin/tsc"));
    compiler.current_dir(folder.path());
    run(compiler, 2 * RUN_MAX).await
}

fn settings(types: &Path, files: &[String]) -> String {
    let settings = json!({
        "compilerOptions": {
            "strict": true,
            "noEmit": true,
            "target": "es2022",
            "module": "esnext",
            "moduleResolution": "bundler",
            "skipLibCheck": true,
            "types": [],
            "paths": {
                "@grafana/schema": [types.join("index.d.ts")],
                "@grafana/schema/dist/esm/*": [types.join("*")],
            },
        },
        "files": files,
    });
    settings.to_string()
}
