//! `[admin]`: the admin API's listener and its tokens.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::listen;
use crate::config::reader::Reader;

/// The admin API's listener and its tokens.
#[derive(Clone, Debug)]
pub struct AdminConfig {
    /// Where operators and probes connect; loopback by default.
    pub listen: SocketAddr,
    /// A file of `name:role:sha256`, one token a line.
    pub tokens_file: Option<PathBuf>,
}

impl AdminConfig {
    pub(in crate::config) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            listen: listen(reader, "admin", 12_112),
            tokens_file: reader.path("admin", "tokens_file"),
        }
    }
}
