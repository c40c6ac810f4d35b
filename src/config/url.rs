//! The two URLs: Stripe's, and the ledger's.

use std::fmt;
use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::{Authority, Scheme};
use secrecy::{ExposeSecret as _, SecretString};

/// Where Stripe answers: a scheme and an authority, without a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
}

impl BaseUrl {
    /// Stripe's own.
    pub(super) fn stripe() -> Self {
        Self {
            scheme: Scheme::HTTPS,
            authority: Authority::from_static("api.stripe.com"),
        }
    }

    /// Reads `https://host` or `http://host:port`; no path, query or user.
    pub fn parse(text: &str) -> Option<Self> {
        let parts = text.parse::<Uri>().ok()?.into_parts();
        let (scheme, authority) = (parts.scheme?, parts.authority?);
        let is_http = scheme == Scheme::HTTPS || scheme == Scheme::HTTP;
        let bare = parts.path_and_query.is_none_or(|path| path == "/");
        let plain = !authority.as_str().contains('@') && !authority.host().is_empty();
        (is_http && bare && plain).then_some(Self { scheme, authority })
    }

    /// `http` or `https`.
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Host and port.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// True for TLS.
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// True where nobody on the network reads along: TLS, or this machine.
    pub fn is_confidential(&self) -> bool {
        let host = self.authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = address
            .parse::<std::net::IpAddr>()
            .map_or(host == "localhost", |ip| ip.is_loopback());
        self.is_https() || is_loopback
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

/// Where reservations are kept. `Display` and `Debug` show neither user nor password.
#[derive(Clone, Debug)]
pub enum LedgerUrl {
    /// One process, one file.
    Sqlite(PathBuf),
    /// Many replicas, one database.
    Postgres(PostgresUrl),
}

/// A `postgres://` URL, which may hold a password.
#[derive(Clone)]
pub struct PostgresUrl(SecretString);

impl LedgerUrl {
    /// What to write.
    pub(super) const INSTEAD: &'static str =
        "sqlite://path/to/file.db or postgres://user@host:port/database";

    /// Reads `sqlite://file` (relative to the working directory, or absolute with a third slash) or
    /// `postgres://…`. A SQLite ledger in memory is refused: it forgets what was charged.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(file) = text.strip_prefix("sqlite://") {
            let is_file = !file.is_empty() && !file.contains(['?', ':', '\0']);
            return is_file.then(|| Self::Sqlite(PathBuf::from(file)));
        }
        let rest = ["postgres://", "postgresql://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))?;
        let is_plain = !rest.is_empty() && text.chars().all(|c| !c.is_whitespace());
        is_plain.then(|| Self::Postgres(PostgresUrl(SecretString::from(text))))
    }

    /// The SQLite ledger's file.
    pub fn sqlite_file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(file) => Some(file),
            Self::Postgres(_) => None,
        }
    }
}

impl PostgresUrl {
    /// The URL with its password: only for connecting.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// True where the URL holds a password, before the host or as a parameter.
    pub(super) fn has_password(&self) -> bool {
        let (authority, rest) = self.split();
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        user.contains(':') || rest.contains("password=")
    }

    /// Authority, and what follows it.
    fn split(&self) -> (&str, &str) {
        let rest = self.expose().split_once("://").map_or("", |(_, rest)| rest);
        rest.find(['/', '?'])
            .map_or((rest, ""), |end| rest.split_at(end))
    }
}

impl fmt::Display for LedgerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => write!(f, "sqlite://{}", file.display()),
            Self::Postgres(url) => {
                let (authority, rest) = url.split();
                let host = authority
                    .rsplit_once('@')
                    .map_or(authority, |(_, host)| host);
                let database = rest.split('?').next().unwrap_or_default();
                write!(f, "postgres://{host}{database}")
            }
        }
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&LedgerUrl::Postgres(self.clone()), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_bare() {
        for (text, confidential) in [
            ("https://api.stripe.com", true),
            ("https://api.stripe.com/", true),
            ("http://127.0.0.1:12111", true),
            ("http://[::1]:12111", true),
            ("http://localhost:12111", true),
            ("http://sandbox:12111", false),
            ("http://127.0.0.1.example.com", false),
        ] {
            let url = BaseUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), text.trim_end_matches('/'));
            assert_eq!(url.is_confidential(), confidential, "{text}");
        }
        for text in [
            "",
            "api.stripe.com",
            "/v1",
            "ftp://api.stripe.com",
            "https://api.stripe.com/v1",
            "https://api.stripe.com?a=b",
            "https://sk_test_1@api.stripe.com",
            "https://",
        ] {
            assert_eq!(BaseUrl::parse(text), None, "{text}");
        }
    }

    #[test]
    fn ledger_urls_show_neither_user_nor_password() {
        for (text, shown, has_password) in [
            (
                "postgres://u:p@db:5432/s?sslmode=require",
                "postgres://db:5432/s",
                true,
            ),
            ("postgresql://u:p@w@db/s", "postgres://db/s", true),
            ("postgres://u@db/s", "postgres://db/s", false),
            ("postgres:///s?host=/run&password=p", "postgres:///s", true),
            ("postgres://db?password=p", "postgres://db", true),
        ] {
            let url = LedgerUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("Postgres({shown})"));
            assert!(
                matches!(url, LedgerUrl::Postgres(url) if url.has_password() == has_password),
                "{text}"
            );
        }
    }

    #[test]
    fn a_sqlite_ledger_is_a_file() {
        for (text, file) in [
            ("sqlite://spendcap.db", Some("spendcap.db")),
            (
                "sqlite:///var/lib/spendcap.db",
                Some("/var/lib/spendcap.db"),
            ),
            ("sqlite://", None),
            ("sqlite://:memory:", None),
            ("sqlite::memory:", None),
            ("sqlite://a.db?mode=memory", None),
            ("spendcap.db", None),
            ("mysql://db/s", None),
            ("postgres://", None),
        ] {
            let url = LedgerUrl::parse(text);
            let found = url.as_ref().and_then(LedgerUrl::sqlite_file);
            assert_eq!(found, file.map(Path::new), "{text}");
        }
    }
}
