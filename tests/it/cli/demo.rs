//! `spendcap demo`: what the README promises, counted.

use super::{spendcap, stderr, stdout};
use crate::support::repository::read;

#[test]
fn the_demo_counts_what_the_readme_says() {
    let folder = tempfile::tempdir().unwrap();
    let output = spendcap(folder.path(), &["demo", "--once"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = stdout(&output);
    let rows = printed
        .lines()
        .filter(|line| line.contains('$') && line.starts_with('│'));
    let rows: Vec<Vec<&str>> = rows
        .map(|row| row.trim_matches('│').split("   ").map(str::trim))
        .map(|cells| cells.filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(
        rows,
        [
            [
                "straight to Stripe",
                "1,500",
                "$148,500",
                "1,500 × a new charge"
            ],
            ["through spendcap", "500", "$49,500", "500 × a new charge"],
            [
                "with on_duplicate = flag",
                "550",
                "$54,450",
                "550 × a new charge"
            ],
        ],
        "{printed}"
    );
    for told in ["1,000 × the existing charge", "950 × 402, cap reached"] {
        assert!(printed.contains(told), "{printed}");
    }
    let readme = read("README.md");
    assert!(
        readme.contains(printed.trim()),
        "the README shows another demo than\n{printed}"
    );
}
