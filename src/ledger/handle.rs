//! The handle every other part holds: commands through the writer, reads beside it.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::book::SendTimes;
use super::command::{Answer, ControlDone, ControlError, ControlRequest, Settled, Verdict, Work};
use super::feed::FeedReport;
use super::reads::Reads;
use super::store::Store;
use super::writer::{Command, Writable, Writer, WriterObserver};
use crate::domain::decision::Ask;
use crate::domain::reservation::Reservation;
use crate::domain::settlement::Report;

/// Commands that may wait for the writer. At some thousands of charges a second this is under a second
/// of work; beyond it a caller is better told to come back.
const QUEUE_MAX: usize = 8192;

/// How often rows past their deadline are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The ledger did not take a command. Nothing of it is stored.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LedgerError {
    /// The database cannot be read or written.
    #[error("the ledger is not available")]
    Unavailable,
    /// Too many commands wait.
    #[error("the ledger's queue is full")]
    Overloaded,
    /// The stored books contradict the command.
    #[error("the ledger does not agree with itself")]
    Inconsistent,
}

/// A cheap clone; the writer ends when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Ledger {
    commands: mpsc::Sender<Command>,
    reads: Reads,
    writable: Writable,
}

/// The ledger can take money: what `/readyz` reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The version of the schema that was found.
    pub schema_version: i64,
    /// Commits may be lost: no money is taken.
    pub lost: bool,
}

/// A settle that is on its way: the writer keeps it until it is stored.
#[derive(Debug)]
pub struct PendingSettle(oneshot::Receiver<Result<Answer, LedgerError>>);

impl PendingSettle {
    /// Waits until the outcome is stored. Dropping this does not stop the settle.
    pub async fn stored(self) -> Result<Settled, LedgerError> {
        match self.0.await {
            Ok(Ok(Answer::Settled(settled))) => Ok(settled),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(LedgerError::Unavailable),
        }
    }
}

impl Ledger {
    /// Starts a writer over `store`. The handle of the task ends once every clone is dropped.
    pub(super) fn start(
        store: impl Store,
        reads: Reads,
        times: SendTimes,
        observer: Arc<dyn WriterObserver>,
    ) -> (Self, JoinHandle<()>) {
        let (ledger, writer, sweep) = Self::over(store, reads, times, observer);
        tokio::spawn(sweep);
        (ledger, tokio::spawn(writer))
    }

    /// The handle, the writer and the sweep: whoever has those two runs them, or stops running them.
    pub(crate) fn over(
        store: impl Store,
        reads: Reads,
        times: SendTimes,
        observer: Arc<dyn WriterObserver>,
    ) -> (
        Self,
        impl Future<Output = ()> + Send,
        impl Future<Output = ()> + Send,
    ) {
        let (commands, queue) = mpsc::channel(QUEUE_MAX);
        let writable = Writable::yes();
        let writer = Writer::new(store, times, queue, writable.clone(), observer).run();
        let sweep = sweep(commands.downgrade());
        let ledger = Self {
            commands,
            reads,
            writable,
        };
        (ledger, writer, sweep)
    }

    /// Decides a request that can move money; the answer comes after its commit.
    pub async fn reserve(&self, ask: Ask) -> Result<Verdict, LedgerError> {
        match self.try_command(Work::Reserve(Box::new(ask)))?.await {
            Ok(Ok(Answer::Verdict(verdict))) => Ok(verdict),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(LedgerError::Unavailable),
        }
    }

    /// Queues what an answer proved. It is retried until it is stored, so only the queue can be waited for.
    pub async fn settle(&self, report: Report) -> PendingSettle {
        let (answer, stored) = oneshot::channel();
        let command = Command {
            work: Work::Settle(Box::new(report)),
            answer,
        };
        // Fails only when the writer is gone, and then the receiver says so.
        let _writer_gone = self.commands.send(command).await;
        PendingSettle(stored)
    }

    /// Carries out an operator's command.
    pub async fn control(
        &self,
        request: ControlRequest,
    ) -> Result<Result<ControlDone, ControlError>, LedgerError> {
        match self.try_command(Work::Control(Box::new(request)))?.await {
            Ok(Ok(Answer::Control(done))) => Ok(done),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(LedgerError::Unavailable),
        }
    }

    /// Records a stretch of the event feed; false where another process has read on from its beginning,
    /// and nothing is recorded.
    pub async fn observe(&self, report: FeedReport) -> Result<bool, LedgerError> {
        match self.try_command(Work::Observe(Box::new(report)))?.await {
            Ok(Ok(Answer::Observed(recorded))) => Ok(recorded),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(LedgerError::Unavailable),
        }
    }

    /// Gives a reservation up; false where it is not as it was read, or where something may still be
    /// found out about it.
    pub async fn write_off(&self, row: Reservation) -> Result<bool, LedgerError> {
        match self.try_command(Work::WriteOff(Box::new(row)))?.await {
            Ok(Ok(Answer::WrittenOff(given_up))) => Ok(given_up),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(LedgerError::Unavailable),
        }
    }

    /// Holds what is past its deadline now; returns how many rows that were.
    pub async fn sweep(&self) -> Result<usize, LedgerError> {
        match self.try_command(Work::Sweep)?.await {
            Ok(Ok(Answer::Swept(held))) => Ok(held),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(LedgerError::Unavailable),
        }
    }

    /// False from a write that failed until one that did not; tried again every second.
    pub fn is_writable(&self) -> bool {
        self.writable.get()
    }

    /// Commands that wait for the writer.
    pub fn queue_depth(&self) -> usize {
        let room = self.commands.capacity();
        self.commands.max_capacity().saturating_sub(room)
    }

    /// Looks things up without going through the writer.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    fn try_command(
        &self,
        work: Work,
    ) -> Result<oneshot::Receiver<Result<Answer, LedgerError>>, LedgerError> {
        let (answer, receiver) = oneshot::channel();
        match self.commands.try_send(Command { work, answer }) {
            Ok(()) => Ok(receiver),
            Err(mpsc::error::TrySendError::Full(_)) => Err(LedgerError::Overloaded),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(LedgerError::Unavailable),
        }
    }
}

/// Any replica may do it; a weak handle, so that it never keeps the writer alive.
async fn sweep(commands: mpsc::WeakSender<Command>) {
    let mut tick = tokio::time::interval(SWEEP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(commands) = commands.upgrade() else {
            return;
        };
        let (answer, swept) = oneshot::channel();
        if commands
            .try_send(Command {
                work: Work::Sweep,
                answer,
            })
            .is_err()
        {
            continue;
        }
        drop(commands);
        if let Ok(Ok(Answer::Swept(held))) = swept.await
            && held > 0
        {
            tracing::warn!(held, "Reservations passed their deadline and are held");
        }
    }
}
