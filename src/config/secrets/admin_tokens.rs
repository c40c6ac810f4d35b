//! Who may use the admin API.

use std::fmt;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::config::mistake::{Mistakes, Place};

/// A shorter token can be guessed.
const TOKEN_LEN_MIN: usize = 16;

/// A request compares against each of them.
const TOKENS_MAX: usize = 1000;

/// What the holder of a token may do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AdminRole {
    /// Read and change.
    Admin,
    /// Read.
    Viewer,
}

impl AdminRole {
    /// The name in the tokens file and the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Viewer => "viewer",
        }
    }

    /// The role of that name.
    pub fn parse(name: &str) -> Option<Self> {
        let roles = [Self::Admin, Self::Viewer];
        roles.into_iter().find(|role| role.as_str() == name)
    }
}

/// A token, of which only the digest is known.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken {
    /// Who holds it, for the audit log.
    pub name: String,
    /// What they may do.
    pub role: AdminRole,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
}

/// Every token; no two of one name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminTokens(Vec<AdminToken>);

impl AdminTokens {
    /// Every token, in the order of its source.
    pub fn iter(&self) -> impl Iterator<Item = &AdminToken> {
        self.0.iter()
    }

    /// Adds the token of `SPENDCAP_ADMIN_TOKEN` as the admin `env`.
    pub(super) fn add_plain(&mut self, place: &Place, token: &str, mistakes: &mut Mistakes) {
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.len() < TOKEN_LEN_MIN || !is_plain {
            let message = format!("a token is at least {TOKEN_LEN_MIN} visible ASCII characters");
            mistakes.push(place.clone(), message);
            return;
        }
        self.0.push(AdminToken {
            name: "env".to_owned(),
            role: AdminRole::Admin,
            sha256: Sha256::digest(token.as_bytes()).into(),
        });
    }

    /// Adds the lines of a tokens file; empty ones and those that begin with `#` are skipped.
    pub(super) fn add_lines(&mut self, file: &Path, text: &str, mistakes: &mut Mistakes) {
        let lines = text.lines().enumerate();
        let lines = lines.map(|(index, line)| (Place::Line(file.to_owned(), index + 1), line));
        let mut added = 0;
        for (place, line) in lines.filter(|(_, line)| !is_comment(line)) {
            added += 1;
            if added > TOKENS_MAX {
                mistakes.push(place, format!("more than {TOKENS_MAX} tokens"));
                return;
            }
            match parse_line(line) {
                Some(token) if self.iter().any(|held| held.name == token.name) => {
                    mistakes.push(place, "another token has this name");
                }
                Some(token) => self.0.push(token),
                None => mistakes.push(
                    place,
                    "write name:role:sha256, the role admin or viewer, the token's SHA-256 in hex",
                ),
            }
        }
        if added == 0 && self.0.is_empty() {
            mistakes.push(Place::File(file.to_owned()), "no token in this file");
        }
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:…", self.name, self.role.as_str())
    }
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

fn parse_line(line: &str) -> Option<AdminToken> {
    let mut parts = line.trim().split(':');
    let (name, role, hex) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._@-".contains(&byte);
    if parts.next().is_some() || name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
        return None;
    }
    Some(AdminToken {
        name: name.to_owned(),
        role: AdminRole::parse(role)?,
        sha256: parse_hex(hex)?,
    })
}

fn parse_hex(hex: &str) -> Option<[u8; 32]> {
    let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hex.len() != 64 || !is_hex {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
