//! The ledger's file: created for its owner's eyes only, and locked for the life of the process.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The file cannot be the ledger's.
#[derive(Debug, Error)]
pub enum FileError {
    /// Another process has it.
    #[error(
        "another process writes this ledger (it holds the lock {}): stop it first, or use \
         PostgreSQL for more than one process",
        .lock.display()
    )]
    Locked {
        /// The lock file.
        lock: PathBuf,
    },
    /// A ledger in memory forgets at the end of the process what it reserved.
    #[error("the ledger must be a file, not {0:?}")]
    NotAFile(PathBuf),
    /// It cannot be opened or created.
    #[error("cannot open {}: {source}", .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The lock on a ledger's file; given back when it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct LedgerFile {
    _lock: File,
    path: PathBuf,
    identity: Identity,
}

/// Device and inode: which file a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Identity(u64, u64);

impl LedgerFile {
    /// Creates what is missing and takes the lock, or tells who is in the way.
    pub(crate) fn take(path: &Path) -> Result<Self, FileError> {
        let text = path.as_os_str().as_encoded_bytes();
        if text.is_empty() || text.starts_with(b":") || text.starts_with(b"file:") {
            return Err(FileError::NotAFile(path.to_owned()));
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| FileError::Io { path, source }
        };
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            let mut builder = DirBuilder::new();
            let created = builder.recursive(true).mode(0o700).create(folder);
            created.map_err(failed(folder))?;
        }
        // Only where it is missing: closing a file that SQLite has open drops SQLite's locks on it.
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
        {
            Ok(_created) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(path)(error)),
        }
        // Every name of the file leads to one lock.
        let mut lock_name = path.canonicalize().map_err(failed(path))?.into_os_string();
        lock_name.push(".lock");
        let lock_path = PathBuf::from(lock_name);
        let lock = open_lock(&lock_path).map_err(failed(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FileError::Locked { lock: lock_path }),
            Err(TryLockError::Error(source)) => return Err(failed(&lock_path)(source)),
        }
        let identity = identity(path).map_err(failed(path))?;
        Ok(Self {
            _lock: lock,
            path: path.to_owned(),
            identity,
        })
    }

    /// Fails where the name no longer stands for the file that was opened: what is written to a file that
    /// was moved, deleted or replaced is not there at the next start, and would be charged again.
    pub(crate) fn check_in_place(&self) -> io::Result<()> {
        if identity(&self.path)? == self.identity {
            Ok(())
        } else {
            let path = self.path.display();
            Err(io::Error::other(format!(
                "{path} is another file than the one that was opened"
            )))
        }
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    let metadata = path.metadata()?;
    Ok(Identity(metadata.dev(), metadata.ino()))
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}
