//! `docs/integrations/java.md` shows the code that these tests run.

use std::fs;

use crate::support::clients::sources;
use crate::support::repository::read;

/// The only code on the page that is not run: the SDK cannot be had.
const NOT_RUN: &str = "StripeClient client = StripeClient.builder()";

#[test]
fn the_page_shows_the_code_that_runs() {
    let page = read("docs/integrations/java.md");
    let mut blocks = page.split("```java\n");
    let mut before = blocks.next().unwrap();
    let mut compared = 0;
    for block in blocks {
        let (shown, rest) = block.split_once("```").unwrap();
        if !shown.starts_with(NOT_RUN) {
            let named = before.trim_end().lines().last().unwrap();
            assert_eq!(shown, part(named), "{named}");
            compared += 1;
        }
        before = rest;
    }
    assert_eq!(compared, 6);
}

/// What stands between `// doc: name` and `// doc: end` of the file, for `<!-- file: name -->`; without
/// the indentation of its first line.
fn part(named: &str) -> String {
    let named = named.strip_prefix("<!-- ").unwrap();
    let (file, name) = named
        .strip_suffix(" -->")
        .unwrap()
        .split_once(": ")
        .unwrap();
    let source = fs::read_to_string(sources("java").join("src/billing").join(file)).unwrap();
    let (_, rest) = source.split_once(&format!("// doc: {name}\n")).unwrap();
    let (part, _) = rest.split_once("// doc: end").unwrap();
    let indented = part.len() - part.trim_start_matches(' ').len();
    let lines = part.trim_end().lines();
    let dedented = lines.map(|line| line.get(indented..).unwrap_or_default());
    dedented.flat_map(|line| [line, "\n"]).collect()
}
