//! A program that runs beside a test, with a folder of its own; killed when it is dropped.
#![expect(
    clippy::print_stdout,
    reason = "a test that fails shows what the program said"
)]

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::patience::until;

pub(super) struct Process {
    name: String,
    child: Child,
    folder: TempDir,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            println!("{} said:\n{}", self.name, self.said());
        }
    }
}

impl Process {
    /// Starts it in `folder`; what it says goes to a file there.
    pub(super) fn start(mut command: Command, folder: TempDir) -> Self {
        let file = File::create(folder.path().join("said")).unwrap();
        let child = command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn();
        let name = command.get_program().to_string_lossy().into_owned();
        let child = child.unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self {
            name,
            child,
            folder,
        }
    }

    /// Waits until it says `what`; returns what follows in that line.
    pub(super) async fn until_said(&mut self, what: &str) -> String {
        until(&format!("{} says {what}", self.name), async || {
            let said = self.said();
            let (whole_lines, _) = said.rsplit_once('\n')?;
            if let Some((_, rest)) = whole_lines.split_once(what) {
                return Some(rest.lines().next().unwrap_or_default().to_owned());
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{} has ended: {ended:?}", self.name);
            None
        })
        .await
    }

    /// All that it has said so far.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }
}
