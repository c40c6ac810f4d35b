//! Writes what the event feed showed, to either database. Rare, so a statement per row will do.

use super::StoreError;
use super::statement::Execute;
use crate::domain::flag::FlagKind;
use crate::ledger::book::Book;
use crate::ledger::feed::FeedReport;

const BEGIN_CURSOR: &str = "/* feed::cursor */
    INSERT INTO feed_cursors (account, read_until_ms, read_at_ms) VALUES ($1, $2, $3)";

const MOVE_CURSOR: &str = "/* feed::cursor */
    UPDATE feed_cursors SET read_until_ms = $2, read_at_ms = $3
    WHERE account = $1 AND read_until_ms = $4";

const REFUND: &str = "/* feed::refund */
    UPDATE reservations SET amount_refunded = $2 WHERE id = $1";

/// Looked at once more in the transaction: the charge's reservation may have learnt of it meanwhile.
const BYPASS: &str = "/* feed::bypass */
    INSERT INTO flags (kind, count, customer, first_seen_at_ms, last_seen_at_ms, account, object_id)
    SELECT $1, 1, $2, $3, $3, $4, $5
    WHERE NOT EXISTS (SELECT 1 FROM reservations WHERE object_id = $5 AND account = $4)
    ON CONFLICT (object_id, account, kind) WHERE object_id IS NOT NULL DO NOTHING";

/// Writes every stretch of the feed that the book took.
pub(super) async fn observed(connection: &mut impl Execute, book: &Book) -> Result<(), StoreError> {
    for report in &book.changes().feed {
        cursor(connection, book, report).await?;
        for refund in &report.refunds {
            let params = [
                refund.reservation.0.into(),
                refund.amount_refunded.get().into(),
            ];
            connection.execute(REFUND, params).await?;
        }
        for bypass in &report.bypasses {
            let params = [
                FlagKind::Bypass.as_str().into(),
                bypass.customer.clone().into(),
                book.now().0.into(),
                report.account.as_str().into(),
                bypass.object_id.as_str().into(),
            ];
            connection.execute(BYPASS, params).await?;
        }
    }
    Ok(())
}

async fn cursor(
    connection: &mut impl Execute,
    book: &Book,
    report: &FeedReport,
) -> Result<(), StoreError> {
    let (account, to, now) = (report.account.as_str(), report.to.0, book.now().0);
    let moved = match report.from {
        None => {
            let params = [account.into(), to.into(), now.into()];
            connection.execute(BEGIN_CURSOR, params).await?
        }
        Some(from) => {
            let params = [account.into(), to.into(), now.into(), from.0.into()];
            connection.execute(MOVE_CURSOR, params).await?
        }
    };
    if moved == 1 {
        Ok(())
    } else {
        Err(StoreError::Conflict)
    }
}
