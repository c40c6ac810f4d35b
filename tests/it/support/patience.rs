//! Waiting for a condition, and not for ever.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Longer than anything here takes, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until there is an answer.
#[track_caller]
pub(crate) fn until<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let asker = std::panic::Location::caller();
    async move {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(Instant::now() < end, "{asker}: waited in vain until {what}");
            sleep(PAUSE).await;
        }
    }
}

/// Waits for what comes by itself.
pub(crate) async fn within<T>(what: &str, wait: impl Future<Output = T>) -> T {
    let Ok(come) = timeout(PATIENCE, wait).await else {
        panic!("waited in vain for {what}");
    };
    come
}
