//! The writer: one task that turns queued commands into batches, one commit each.
//!
//! There is no timer: it blocks for the first command, takes what has queued meanwhile, decides,
//! commits once and answers all.

mod batch;
mod health;
mod wake;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::book::SendTimes;
use super::command::{Answer, Work};
use super::handle::LedgerError;
use super::store::{Store, StoreError};
use batch::{Attempt, attempt};
use wake::Wakers;

pub(super) use health::Writable;

/// Largest batch: beyond some hundreds a larger one gains little and makes the first caller wait.
const BATCH_MAX: usize = 512;

/// How often one command is decided again after losing a race to another process.
const CONFLICT_TRIES_MAX: u32 = 8;

/// How long settles that could not be stored wait before the next try.
const BACKLOG_PAUSE: Duration = Duration::from_millis(200);

/// How often the read-back of an ambiguous commit is tried before its requests are refused.
const READ_BACK_TRIES_MAX: u32 = 3;

/// A unit of work and who waits for it.
pub(super) struct Command {
    pub(super) work: Work,
    pub(super) answer: oneshot::Sender<Result<Answer, LedgerError>>,
}

/// Owns the store until every handle is gone.
pub(super) struct Writer<S> {
    store: S,
    times: SendTimes,
    commands: mpsc::Receiver<Command>,
    /// Settles that must be stored and could not be yet. Bounded by what is in flight.
    backlog: Vec<Command>,
    wakers: Wakers,
    writable: Writable,
    observer: Arc<dyn WriterObserver>,
}

/// Told about the writer's work. It is called in the writer, so it must not wait.
pub trait WriterObserver: Debug + Send + Sync {
    /// A batch of so many commands was committed, in this time from its load on. The sweep that comes by
    /// itself every second is no batch.
    fn committed(&self, commands: usize, took: Duration);
}

impl WriterObserver for () {
    fn committed(&self, _commands: usize, _took: Duration) {}
}

impl<S: Store> Writer<S> {
    pub(super) fn new(
        store: S,
        times: SendTimes,
        commands: mpsc::Receiver<Command>,
        writable: Writable,
        observer: Arc<dyn WriterObserver>,
    ) -> Self {
        Self {
            store,
            times,
            commands,
            backlog: Vec::new(),
            wakers: Wakers::default(),
            writable,
            observer,
        }
    }

    /// Runs until the last handle is dropped and everything queued is done.
    pub(super) async fn run(mut self) {
        while let Some(batch) = self.next_batch().await {
            self.execute(batch).await;
        }
        // The last handle is gone: what is still unsettled stays in flight and is held at its deadline.
        if !self.backlog.is_empty() {
            let batch = std::mem::take(&mut self.backlog);
            self.execute(batch).await;
        }
        self.store.close().await;
    }

    async fn next_batch(&mut self) -> Option<Vec<Command>> {
        let first = if self.backlog.is_empty() {
            Some(self.commands.recv().await?)
        } else {
            let next_try = Instant::now() + BACKLOG_PAUSE;
            match timeout_at(next_try, self.commands.recv()).await {
                Ok(Some(command)) => Some(command),
                Ok(None) => return None,
                Err(_elapsed) => None,
            }
        };
        let mut batch = std::mem::take(&mut self.backlog);
        batch.extend(first);
        while batch.len() < BATCH_MAX {
            match self.commands.try_recv() {
                Ok(command) => batch.push(command),
                Err(_) => break,
            }
        }
        Some(batch)
    }

    async fn execute(&mut self, batch: Vec<Command>) {
        let swept = batch
            .iter()
            .any(|command| matches!(command.work, Work::Sweep));
        if swept && !self.writable.get() && self.store.probe_write().await.is_ok() {
            // Nobody may be asking: a load balancer sends nothing to a replica that is not ready.
            self.writable.works();
        }
        match self.attempt(&batch).await {
            Attempt::Stored(answers) => self.deliver(batch, answers),
            // One command's race or mistake must not fail the others.
            Attempt::Failed(
                StoreError::Conflict | StoreError::Unreadable(_) | StoreError::Rejected(_),
            )
            | Attempt::Refused(_) => {
                for command in batch {
                    self.execute_singly(command).await;
                }
            }
            Attempt::Failed(error) => self.fail(batch, &error),
            Attempt::Ambiguous {
                error,
                answers,
                new_rows,
            } => {
                tracing::warn!(error = %error, "The database did not confirm a commit");
                if self.read_back(&new_rows).await {
                    self.deliver(batch, answers);
                } else {
                    self.fail_unsent(batch, answers, &error);
                }
            }
        }
    }

    async fn execute_singly(&mut self, command: Command) {
        let batch = vec![command];
        for _ in 0..CONFLICT_TRIES_MAX {
            match self.attempt(&batch).await {
                Attempt::Stored(answers) => return self.deliver(batch, answers),
                Attempt::Failed(StoreError::Conflict) => {}
                Attempt::Refused(error) => return refuse(batch, &error),
                Attempt::Failed(error @ (StoreError::Unreadable(_) | StoreError::Rejected(_))) => {
                    return refuse(batch, &error);
                }
                Attempt::Failed(error) => return self.fail(batch, &error),
                Attempt::Ambiguous {
                    error,
                    answers,
                    new_rows,
                } => {
                    return if self.read_back(&new_rows).await {
                        self.deliver(batch, answers);
                    } else {
                        self.fail_unsent(batch, answers, &error);
                    };
                }
            }
        }
        self.fail(batch, &StoreError::Conflict);
    }

    async fn attempt(&mut self, batch: &[Command]) -> Attempt {
        let works = batch.iter().map(|command| &command.work);
        let began = Instant::now();
        let attempted = attempt(&mut self.store, self.times, works.clone()).await;
        let asked = works.into_iter().any(|work| !matches!(work, Work::Sweep));
        if asked && matches!(attempted, Attempt::Stored(_)) {
            self.observer.committed(batch.len(), began.elapsed());
        }
        attempted
    }

    /// Whether an ambiguous commit is stored. New rows tell, since their ids are this process's own; a
    /// batch without one is taken as not stored: its settles are run again, its sends are not made.
    async fn read_back(&mut self, new_rows: &batch::NewRows) -> bool {
        if new_rows.is_empty() {
            return false;
        }
        for _ in 0..READ_BACK_TRIES_MAX {
            if let Ok(stored) = self.store.all_stored(new_rows).await {
                return stored;
            }
            tokio::time::sleep(BACKLOG_PAUSE).await;
        }
        false
    }

    fn deliver(&mut self, batch: Vec<Command>, answers: Vec<Answer>) {
        for (command, mut answer) in batch.into_iter().zip(answers) {
            self.wakers.after(&command.work, &mut answer);
            // A caller that is gone does not need its answer; what was decided is stored.
            let _gone = command.answer.send(Ok(answer));
        }
        self.wakers.prune();
    }

    /// Nothing of the batch is stored. Settles stay until they are; everything else is refused.
    fn fail(&mut self, batch: Vec<Command>, error: &StoreError) {
        let source = std::error::Error::source(error).map(ToString::to_string);
        tracing::error!(error = %error, source, commands = batch.len(), "The ledger was not written");
        // A race that was lost too often is no fault of the database.
        if !matches!(error, StoreError::Conflict) {
            self.writable.failed();
        }
        for command in batch {
            if matches!(command.work, Work::Settle(_)) {
                self.backlog.push(command);
            } else {
                let _gone = command.answer.send(Err(LedgerError::Unavailable));
            }
        }
    }

    /// The batch may or may not be stored and none of it will be sent: what it reserved is given back
    /// as soon as the store answers again.
    fn fail_unsent(&mut self, batch: Vec<Command>, answers: Vec<Answer>, error: &StoreError) {
        for answer in answers {
            if let Some(report) = batch::not_sent(answer) {
                let (answer, _) = oneshot::channel();
                self.backlog.push(Command {
                    work: Work::Settle(Box::new(report)),
                    answer,
                });
            }
        }
        self.fail(batch, error);
    }
}

/// The books cannot take this command as it is; trying again would not help. A settle's row stays in
/// flight and is held at its deadline.
fn refuse(batch: Vec<Command>, error: &dyn std::error::Error) {
    let source = error.source().map(ToString::to_string);
    tracing::error!(error = %error, source, "The ledger refused a command");
    for command in batch {
        let _gone = command.answer.send(Err(LedgerError::Inconsistent));
    }
}
