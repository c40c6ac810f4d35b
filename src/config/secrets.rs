//! The real key and the admin tokens: where they come from, and when they change.

mod admin_tokens;
mod stripe_key;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};

pub use admin_tokens::{AdminRole, AdminToken, AdminTokens};
pub use stripe_key::StripeKey;

use super::environment::Environment;
use super::mistake::{Mistakes, Place};
use super::secret_file::SecretFile;
use crate::domain::digest::sha256_hex;

/// The secrets of `serve`. `Debug` shows none.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// The real key.
    pub stripe_key: StripeKey,
    /// Who may use the admin API.
    pub admin_tokens: AdminTokens,
}

/// Re-reads the secrets' files, so that a real key is rotated without a restart.
#[derive(Debug)]
pub struct SecretWatch {
    stripe_key: Source,
    admin_token: Source,
    tokens_file: Option<SecretFile>,
    /// A digest of what was read last.
    seen: Option<String>,
}

/// Where one secret comes from.
#[derive(Debug)]
enum Source {
    Variable(&'static str, SecretString),
    File(SecretFile),
    /// Neither variable is set, or both.
    Mistake(&'static str, &'static str),
    Unset,
}

/// What stands in a source, and where.
struct Found {
    place: Place,
    text: SecretString,
}

impl SecretWatch {
    /// Finds the sources and reads the secrets for the first time.
    pub(super) fn start(
        tokens_file: Option<PathBuf>,
        environment: &Environment,
    ) -> (Self, Result<Secrets, Mistakes>) {
        let stripe_key = Source::find(environment, "STRIPE_SECRET_KEY", "STRIPE_SECRET_KEY_FILE");
        let admin_token = Source::find(
            environment,
            "SPENDCAP_ADMIN_TOKEN",
            "SPENDCAP_ADMIN_TOKEN_FILE",
        );
        let mut watch = Self {
            stripe_key: match stripe_key {
                Source::Unset => Source::Mistake(
                    "STRIPE_SECRET_KEY",
                    "set this to the real Stripe key, or STRIPE_SECRET_KEY_FILE to its file",
                ),
                found => found,
            },
            admin_token: match admin_token {
                Source::Unset if tokens_file.is_none() => Source::Mistake(
                    "SPENDCAP_ADMIN_TOKEN",
                    "set this, SPENDCAP_ADMIN_TOKEN_FILE or admin.tokens_file: \
                     without a token nobody can issue a vault key",
                ),
                found => found,
            },
            tokens_file: tokens_file.map(SecretFile::new),
            seen: None,
        };
        let secrets = watch.read().map(|(secrets, _)| secrets);
        (watch, secrets)
    }

    /// The secrets, where a file's content is another than at the last call. What is wrong with a
    /// changed file is told once; a file that cannot be read is told at every call.
    pub fn poll(&mut self) -> Result<Option<Secrets>, Mistakes> {
        let before = self.seen.clone();
        match self.read() {
            Ok((secrets, seen)) => Ok((before.as_ref() != Some(&seen)).then_some(secrets)),
            Err(_) if self.seen.is_some() && self.seen == before => Ok(None),
            Err(mistakes) => Err(mistakes),
        }
    }

    /// The secrets and the digest of their sources.
    fn read(&mut self) -> Result<(Secrets, String), Mistakes> {
        let mut mistakes = Mistakes::default();
        let stripe_key = self.stripe_key.read(&mut mistakes);
        let admin_token = self.admin_token.read(&mut mistakes);
        let tokens = self.tokens_file.as_ref();
        let tokens = tokens.and_then(|file| read_file(file, &mut mistakes));
        let complete = mistakes.iter().next().is_none();
        let parts = [&stripe_key, &admin_token, &tokens];
        let seen = sha256_hex(
            &parts
                .map(|found| sha256_hex(exposed(found.as_ref())))
                .concat(),
        );
        self.seen = complete.then(|| seen.clone());

        let stripe_key = stripe_key.and_then(|found| {
            let key = StripeKey::parse(found.text.expose_secret());
            if key.is_none() {
                mistakes.push(found.place, StripeKey::INSTEAD);
            }
            key
        });
        let mut admin_tokens = AdminTokens::default();
        if let Some(found) = admin_token {
            admin_tokens.add_plain(&found.place, found.text.expose_secret(), &mut mistakes);
        }
        if let (Some(found), Some(file)) = (tokens, &self.tokens_file) {
            admin_tokens.add_lines(file.path(), found.text.expose_secret(), &mut mistakes);
        }
        match stripe_key {
            Some(stripe_key) => {
                let secrets = Secrets {
                    stripe_key,
                    admin_tokens,
                };
                mistakes.or((secrets, seen))
            }
            None => Err(mistakes),
        }
    }
}

impl Source {
    fn find(environment: &Environment, variable: &'static str, file: &'static str) -> Self {
        match (environment.get(variable), environment.get(file)) {
            (Some(text), None) => Self::Variable(variable, SecretString::from(text.trim())),
            (None, Some(path)) => Self::File(SecretFile::new(path)),
            (Some(_), Some(_)) => Self::Mistake(file, "set this or the variable itself, not both"),
            (None, None) => Self::Unset,
        }
    }

    fn read(&self, mistakes: &mut Mistakes) -> Option<Found> {
        match self {
            Self::Variable(name, text) => Some(Found {
                place: Place::Variable((*name).to_owned()),
                text: text.clone(),
            }),
            Self::File(file) => read_file(file, mistakes),
            Self::Mistake(variable, message) => {
                mistakes.push(Place::Variable((*variable).to_owned()), *message);
                None
            }
            Self::Unset => None,
        }
    }
}

fn read_file(file: &SecretFile, mistakes: &mut Mistakes) -> Option<Found> {
    let place = Place::File(file.path().to_owned());
    match file.read() {
        Ok(text) => Some(Found { place, text }),
        Err(error) => {
            mistakes.push(place, error.to_string());
            None
        }
    }
}

fn exposed(found: Option<&Found>) -> &str {
    found.map_or("", |found| found.text.expose_secret())
}
