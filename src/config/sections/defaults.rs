//! `[defaults]`: what a vault key gets when its creation does not say.

use crate::config::reader::Reader;
use crate::domain::cap::Headroom;
use crate::domain::operation::Permission;
use crate::domain::vault_key::OnDuplicate;

/// What a vault key gets when its creation does not say.
#[derive(Clone, Debug)]
pub struct DefaultsConfig {
    /// The factor between an expected total and its cap.
    pub headroom: Headroom,
    /// The duplicate policy.
    pub on_duplicate: OnDuplicate,
    /// What the key may do.
    pub permissions: Vec<Permission>,
}

impl DefaultsConfig {
    pub(in crate::config) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "defaults";
        let headroom = reader.text(
            SECTION,
            "headroom",
            "a decimal from 1 to 10 in quotes, such as \"1.10\"",
            |text| Headroom::parse(text).ok(),
        );
        let policies = OnDuplicate::ALL.map(OnDuplicate::as_str).join(", ");
        let policies = format!("one of {policies}");
        let on_duplicate = reader.text(SECTION, "on_duplicate", &policies, OnDuplicate::parse);
        let permissions = Permission::ALL.map(Permission::as_str).join(", ");
        let permissions = format!("a list of {permissions}");
        let permissions = reader.list(SECTION, "permissions", &permissions, Permission::parse);
        Self {
            headroom: headroom.unwrap_or(Headroom::DEFAULT),
            on_duplicate: on_duplicate.unwrap_or(OnDuplicate::Replay),
            permissions: permissions.unwrap_or_else(|| vec![Permission::ChargesWrite]),
        }
    }
}
