//! `spendcap healthcheck`: `/readyz` as an exit code.

use super::{spendcap, stderr, stdout};
use crate::support::{LedgerKind, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_ready_until_it_is_gone() {
    let mut world = World::on(LedgerKind::Sqlite).await;
    let listen = world.apps[0].admin_addr().to_string();
    let folder = tempfile::tempdir().unwrap();
    let ask = || {
        let variables = [("SPENDCAP_ADMIN_LISTEN", listen.as_str())];
        spendcap(folder.path(), &["healthcheck"], &variables)
    };
    let output = ask();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "ready\n");

    world.apps.remove(0).stop().await.unwrap();
    let output = ask();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let told = stderr(&output);
    assert!(told.starts_with("spendcap: not ready: "), "{told}");
}
