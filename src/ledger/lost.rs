//! The note that commits may be lost. It stands in the ledger, so that every process that uses it refuses
//! money, also after a restart, until what Stripe made since is read and in the ledger.

use super::store::StoreError;
use super::store::statement::Execute;
use crate::domain::time::UnixMs;

pub(super) const NOTE: &str = "/* lost::note */ SELECT value FROM meta WHERE name = 'lost_commits'";

const WRITE: &str = "/* lost::write */
    INSERT INTO meta (name, value) VALUES ('lost_commits', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// Money is taken again.
pub(super) const END: &str = "/* lost::end */ DELETE FROM meta WHERE name = 'lost_commits'";

/// Ids rise with time, so this row is among the last. That it may be a little older only makes the gap
/// longer.
const NEWEST_ROW: &str = "/* lost::newest_row */
    SELECT CAST(created_at_ms AS TEXT) FROM reservations ORDER BY id DESC LIMIT 1";

/// What is known about commits that may be lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostCommits {
    /// When it was noticed, on the store's clock.
    pub found_at: UnixMs,
    /// About when the last reservation that is left was made: what came later may be lost. `None` where
    /// none is left.
    pub newest_row: Option<UnixMs>,
    /// How it was noticed.
    pub why: String,
}

impl LostCommits {
    fn to_text(&self) -> String {
        serde_json::json!({
            "found_at_ms": self.found_at.0,
            "newest_row_ms": self.newest_row.map(|at| at.0),
            "why": self.why,
        })
        .to_string()
    }

    /// Reads the note. One that cannot be read is still one.
    pub(super) fn from_text(text: &str) -> Self {
        let note: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let why = note["why"].as_str().unwrap_or(text).to_owned();
        Self {
            found_at: UnixMs(note["found_at_ms"].as_i64().unwrap_or_default()),
            newest_row: note["newest_row_ms"].as_i64().map(UnixMs),
            why,
        }
    }

    /// Both: the longer gap, and as young as the younger.
    fn and(self, earlier: &Self) -> Self {
        Self {
            found_at: self.found_at.max(earlier.found_at),
            newest_row: match (self.newest_row, earlier.newest_row) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
            why: format!("{}; {}", earlier.why, self.why),
        }
    }
}

/// Writes the note, beside an earlier one that nobody has ended.
pub(super) async fn write(
    connection: &mut impl Execute,
    found_at: UnixMs,
    why: &str,
) -> Result<(), StoreError> {
    let unavailable = StoreError::Unavailable;
    let newest_row = connection.first_text(NEWEST_ROW).await;
    let newest_row = newest_row.map_err(unavailable)?;
    let lost = LostCommits {
        found_at,
        newest_row: newest_row.and_then(|text| text.parse().ok()).map(UnixMs),
        why: why.to_owned(),
    };
    let earlier = connection.first_text(NOTE).await.map_err(unavailable)?;
    let lost = match earlier {
        Some(earlier) => lost.and(&LostCommits::from_text(&earlier)),
        None => lost,
    };
    connection.execute(WRITE, [lost.to_text().into()]).await?;
    tracing::error!(
        why,
        newest_row = lost.newest_row.map(UnixMs::unix_seconds),
        "Commits of the ledger may be lost: no money is taken until `spendcap reconcile` has read what \
         Stripe made since"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_as_it_was_written_and_any_note_counts() {
        let note = LostCommits {
            found_at: UnixMs(7_000),
            newest_row: Some(UnixMs(5_000)),
            why: "a timeline".to_owned(),
        };
        assert_eq!(LostCommits::from_text(&note.to_text()), note);
        assert_eq!(LostCommits::from_text("by hand").why, "by hand");
        let later = LostCommits {
            found_at: UnixMs(9_000),
            newest_row: Some(UnixMs(8_000)),
            why: "another".to_owned(),
        };
        let both = later.and(&note);
        assert_eq!(both.found_at, UnixMs(9_000));
        assert_eq!(both.newest_row, Some(UnixMs(5_000)));
        assert_eq!(both.why, "a timeline; another");
    }
}
