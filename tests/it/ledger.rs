//! The ledger: what holds whatever the database.

mod charges;
mod place;
mod scene;

/// Runs each of these tests on every database.
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
    };
}

use on_both;
