//! The work that outlives its client: every send runs to its end, and a drain waits for it.

use tokio_util::task::TaskTracker;

/// Starts tasks and waits for them. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    tracker: TaskTracker,
    #[cfg(test)]
    owner: Option<owned::Owner>,
}

impl Tasks {
    /// Starts a task that [`Self::finish`] waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        #[cfg(test)]
        if let Some(owner) = &self.owner {
            self.tracker.spawn(owner.take(Box::pin(task)));
            return;
        }
        self.tracker.spawn(task);
    }

    /// Starts a task that nobody waits for.
    #[cfg_attr(
        not(test),
        expect(clippy::unused_self, reason = "only a test's tasks have an owner")
    )]
    pub(super) fn spawn_aside(&self, task: impl Future<Output = ()> + Send + 'static) {
        #[cfg(test)]
        if let Some(owner) = &self.owner {
            tokio::spawn(owner.take(Box::pin(task)));
            return;
        }
        tokio::spawn(task);
    }

    /// Takes no more tasks and waits until every one has ended.
    pub(super) async fn finish(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// Tasks that belong to somebody who can stop them: a simulated process that is killed.
#[cfg(test)]
pub(crate) mod owned {
    use std::fmt::{self, Debug, Formatter};
    use std::pin::Pin;
    use std::sync::Arc;

    use super::Tasks;

    pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Wraps every task before it starts.
    #[derive(Clone)]
    pub(crate) struct Owner(Arc<dyn Fn(Task) -> Task + Send + Sync>);

    impl Owner {
        pub(crate) fn new(wrap: impl Fn(Task) -> Task + Send + Sync + 'static) -> Self {
            Self(Arc::new(wrap))
        }

        pub(super) fn take(&self, task: Task) -> Task {
            (self.0)(task)
        }
    }

    impl Debug for Owner {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str("Owner(…)")
        }
    }

    impl Tasks {
        pub(in crate::proxy) fn owned_by(owner: Owner) -> Self {
            Self {
                owner: Some(owner),
                ..Self::default()
            }
        }
    }
}
