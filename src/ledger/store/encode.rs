//! The parts of a vault key that are stored as JSON, so that an operator can read them.

use std::collections::BTreeMap;

use crate::domain::vault_key::VaultKey;

/// The JSON columns of one vault key.
pub(crate) struct KeyTexts {
    pub(crate) permissions: String,
    pub(crate) max_charge: String,
    pub(crate) accounts: String,
    pub(crate) metadata: String,
}

impl KeyTexts {
    pub(crate) fn of(key: &VaultKey) -> Self {
        let permissions: Vec<&str> = key.permissions.iter().map(|it| it.as_str()).collect();
        let max_charge: BTreeMap<&str, i64> = key
            .max_charge
            .iter()
            .map(|(currency, amount)| (currency.as_str(), amount.get()))
            .collect();
        Self {
            permissions: serde_json::json!(permissions).to_string(),
            max_charge: serde_json::json!(max_charge).to_string(),
            accounts: serde_json::json!(key.accounts).to_string(),
            metadata: serde_json::json!(key.metadata).to_string(),
        }
    }
}
