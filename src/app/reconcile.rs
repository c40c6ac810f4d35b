//! Runs the reconciler beside the listeners.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::Config;
use crate::ledger::Ledger;
use crate::proxy::Proxy;
use crate::reconcile::{ReconcileParts, ReconcileSettings, Reconciler};

/// Starts it; it ends with `stop`, at whatever point: what it has read is read again by the next.
pub(super) fn start(
    config: &Config,
    ledger: &Ledger,
    proxy: &Arc<Proxy>,
    clock: &Clock,
    stop: &CancellationToken,
) -> JoinHandle<()> {
    let config = &config.reconcile;
    if !config.enabled {
        return tokio::spawn(async {});
    }
    let reconciler = Reconciler::new(ReconcileParts {
        ledger: ledger.clone(),
        stripe: Arc::clone(proxy) as _,
        clock: clock.clone(),
        metrics: proxy.metrics(),
        settings: ReconcileSettings {
            interval: config.interval,
            reads_per_second: config.reads_per_second,
            feed_interval: config.feed_interval,
            write_off: config.write_off,
        },
    });
    let stop = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = reconciler.run() => {}
            () = stop.cancelled() => {}
        }
    })
}
