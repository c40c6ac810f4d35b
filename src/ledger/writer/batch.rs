//! One attempt at one batch: load, decide, write, commit.

use std::collections::BTreeSet;

use crate::domain::id::ReservationId;
use crate::domain::outcome::Outcome;
use crate::domain::settlement::Report;
use crate::ledger::book::{Book, BookError, SendTimes, Wanted};
use crate::ledger::command::{Answer, Verdict, Work};
use crate::ledger::store::{Store, StoreError};

pub(super) type NewRows = BTreeSet<ReservationId>;

/// What became of an attempt.
pub(super) enum Attempt {
    /// Committed; one answer for each command.
    Stored(Vec<Answer>),
    /// Certainly not stored.
    Failed(StoreError),
    /// The book refused a command; nothing is stored.
    Refused(BookError),
    /// Sent, not confirmed.
    Ambiguous {
        error: StoreError,
        answers: Vec<Answer>,
        new_rows: NewRows,
    },
}

pub(super) async fn attempt<'a>(
    store: &mut impl Store,
    times: SendTimes,
    batch: impl Iterator<Item = &'a Work> + Clone,
) -> Attempt {
    let loaded = match store.begin(&Wanted::by(batch.clone())).await {
        Ok(loaded) => loaded,
        Err(error) => return Attempt::Failed(error),
    };
    let mut book = Book::open(loaded, times);
    let mut answers = Vec::new();
    for work in batch {
        match book.run(work) {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                store.rollback().await;
                return Attempt::Refused(error);
            }
        }
    }
    match store.commit(&book).await {
        Ok(()) => Attempt::Stored(answers),
        Err(error @ StoreError::Ambiguous(_)) => {
            let new_rows = book.changes().new_reservations.clone();
            Attempt::Ambiguous {
                error,
                answers,
                new_rows,
            }
        }
        Err(error) => Attempt::Failed(error),
    }
}

/// The report that gives back a reservation whose send will not be made. Only a new row: a re-sent one
/// may be another process's, and is held at its deadline.
pub(super) fn not_sent(answer: Answer) -> Option<Report> {
    match answer {
        Answer::Verdict(Verdict::Send(ticket)) if ticket.reservation.send.sends == 1 => {
            Some(Report {
                reservation: *ticket.reservation,
                outcome: Outcome::NotSent,
            })
        }
        _ => None,
    }
}
