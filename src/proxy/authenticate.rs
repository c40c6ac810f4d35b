//! Who asks: the vault key behind the credential.

use std::sync::Arc;

use http::HeaderMap;

use super::Proxy;
use super::money_log::Unjudged;
use crate::domain::refusal::Refusal;
use crate::domain::vault_key::VaultKey;
use crate::stripe::credential;

/// **Proof** that the request presented a vault key that is in use.
#[derive(Clone, Debug)]
pub(super) struct Authenticated {
    key: Arc<VaultKey>,
    secret_hash: [u8; 32],
}

impl Authenticated {
    pub(super) fn key(&self) -> &VaultKey {
        &self.key
    }

    pub(super) fn secret_hash(&self) -> &[u8; 32] {
        &self.secret_hash
    }
}

/// Finds the vault key. For money the reserve reads its status again, under its lock.
pub(super) async fn authenticate(
    proxy: &Proxy,
    headers: &HeaderMap,
    line: &mut Unjudged,
) -> Result<Authenticated, Refusal> {
    let secret_hash = credential::presented(headers)?.hash();
    let found = proxy
        .keys
        .find(secret_hash)
        .await
        .map_err(|_| Refusal::LedgerUnavailable)?;
    let key = found.ok_or(Refusal::VaultKeyInvalid)?;
    line.asked_by(&key);
    key.check_usable(proxy.clock.now())?;
    Ok(Authenticated { key, secret_hash })
}
