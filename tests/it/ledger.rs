//! The ledger: what holds in SQLite and in PostgreSQL alike.

mod caps;
mod charges;
mod control;
mod durability;
mod faults;
mod feed;
mod history;
mod opening;
pub(crate) mod place;
mod reads;
mod repeats;
mod replicas;
pub(crate) mod scene;
mod wire;

/// Runs each of these tests on both databases.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name($crate::ledger::place::Place::sqlite()).await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name($crate::ledger::place::Place::postgres().await).await;
                }
            )+
        }
    };
}

use on_both;
