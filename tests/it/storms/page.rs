//! docs/RELIABILITY.md names the test of each promise: every one exists.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/RELIABILITY.md")).unwrap();
    let prose: String = page.split("```").step_by(2).collect();
    let spans = prose.split('`').skip(1).step_by(2);
    let mut found = 0;
    for name in spans.filter(|span| span.contains("::") && !span.contains('…')) {
        let (module, function) = name.rsplit_once("::").unwrap();
        let module = module.replace("::", "/");
        let places = ["tests/it", "tests", "src"].map(|folder| root.join(folder));
        let texts = places.map(|place| fs::read_to_string(place.join(format!("{module}.rs"))));
        let declared = format!("fn {function}(");
        let exists = texts
            .into_iter()
            .flatten()
            .any(|text| text.contains(&declared));
        assert!(exists, "{name}");
        found += 1;
    }
    assert!(found >= 25, "{found}");
}

#[test]
fn every_promise_names_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/RELIABILITY.md")).unwrap();
    let promises: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| **"))
        .collect();
    assert!(promises.len() >= 15, "{promises:?}");
    for promise in promises {
        assert!(promise.contains("::"), "{promise}");
    }
}
