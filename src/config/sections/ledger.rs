//! `[ledger]`: where reservations are kept.

use std::path::PathBuf;

use secrecy::ExposeSecret as _;

use crate::config::mistake::Place;
use crate::config::reader::Reader;
use crate::config::secret_file::SecretFile;
use crate::config::url::LedgerUrl;

/// Where reservations are kept.
#[derive(Clone, Debug)]
pub struct LedgerConfig {
    /// SQLite for one process, PostgreSQL for many.
    pub url: LedgerUrl,
}

impl LedgerConfig {
    pub(in crate::config) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "ledger";
        let written = reader.text(SECTION, "url", LedgerUrl::INSTEAD, LedgerUrl::parse);
        if let Some(LedgerUrl::Postgres(url)) = &written
            && url.has_password()
            && reader.is_from_file(SECTION, "url")
        {
            let instead = "the URL without its password, or set SPENDCAP_LEDGER_URL or \
                           SPENDCAP_LEDGER_URL_FILE: a secret does not belong in this file";
            reader.refuse(SECTION, "url", instead);
        }
        let from_file = Self::url_from_file(reader);
        let default = || LedgerUrl::Sqlite(PathBuf::from("spendcap.db"));
        Self {
            url: from_file.or(written).unwrap_or_else(default),
        }
    }

    /// The URL out of a file of its own, for a password that is mounted as a secret.
    fn url_from_file(reader: &mut Reader<'_>) -> Option<LedgerUrl> {
        const VARIABLE: &str = "SPENDCAP_LEDGER_URL_FILE";
        let file = SecretFile::new(reader.variable(VARIABLE)?);
        if reader.variable("SPENDCAP_LEDGER_URL").is_some() {
            let message = "set this or SPENDCAP_LEDGER_URL, not both".to_owned();
            reader.report(Place::Variable(VARIABLE.to_owned()), message);
        }
        let place = Place::File(file.path().to_owned());
        match file.read() {
            Ok(text) => {
                let url = LedgerUrl::parse(text.expose_secret());
                if url.is_none() {
                    reader.report(place, format!("write {}", LedgerUrl::INSTEAD));
                }
                url
            }
            Err(error) => {
                reader.report(place, error.to_string());
                None
            }
        }
    }
}
