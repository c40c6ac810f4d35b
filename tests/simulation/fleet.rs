//! Everything of one run: the fleet, its database, Stripe, and who watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::database::{Database, START};
use super::replica::Replica;
use super::scenario::Scenario;
use super::stripe::Stripe;
use super::witness::Witness;
use super::world::World;
use crate::domain::cap::{Cap, Headroom};
use crate::domain::id::VaultKeyId;
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::operation::Permission;
use crate::domain::secret::VaultSecret;
use crate::domain::time::UnixMs;
use crate::domain::vault_key::{Enforcement, KeyStatus, OnDuplicate, RefusalStatus, VaultKey};

pub(super) struct Fleet {
    pub(super) world: Arc<World>,
    pub(super) witness: Arc<Witness>,
    pub(super) database: Arc<Database>,
    pub(super) stripe: Arc<Stripe>,
    pub(super) replicas: Vec<Arc<Replica>>,
    pub(super) scenario: Scenario,
    secrets: Vec<String>,
}

impl Fleet {
    pub(super) fn new(world: &Arc<World>) -> Arc<Self> {
        let scenario = Scenario::draw(world);
        world.say(format_args!("{scenario:?}"));
        let single = scenario.on_duplicate != OnDuplicate::Flag;
        let witness = Witness::new(Arc::clone(world), single);
        let database = Database::new(Arc::clone(world), Arc::clone(&witness), scenario.kind);
        let stripe = Stripe::new(Arc::clone(world), Arc::clone(&witness), scenario);
        let replica = |name| {
            let (database, stripe) = (Arc::clone(&database), Arc::clone(&stripe));
            Replica::new(Arc::clone(world), database, stripe, name, scenario)
        };
        let replicas = (0..scenario.replicas).map(replica).collect();
        let mut secrets = Vec::new();
        for number in 0..scenario.vault_keys {
            let secret = VaultSecret::from_entropy([u8::try_from(number).unwrap(); 24]);
            database.issue(vault_key(number, &scenario), secret.hash());
            secrets.push(secret.reveal().to_owned());
        }
        Arc::new(Self {
            world: Arc::clone(world),
            witness,
            database,
            stripe,
            replicas,
            scenario,
            secrets,
        })
    }

    pub(super) fn secret(&self, vault_key: usize) -> &str {
        &self.secrets[vault_key]
    }
}

/// The id of a run's vault key.
pub(super) fn vault_key_id(number: usize) -> VaultKeyId {
    format!("vk_{number}").parse().unwrap()
}

pub(super) fn usd() -> Currency {
    Currency::parse("usd").unwrap()
}

fn vault_key(number: usize, scenario: &Scenario) -> VaultKey {
    let max_amount = AmountMinor::new(scenario.max_amount).unwrap();
    VaultKey {
        id: vault_key_id(number),
        secret_hint: String::new(),
        billing_period: "2026-08".to_owned(),
        namespace: "default".to_owned(),
        status: KeyStatus::Active,
        starts_at: None,
        expires_at: UnixMs(i64::MAX),
        headroom: Headroom::parse("1").unwrap(),
        on_duplicate: scenario.on_duplicate,
        enforcement: Enforcement::Enforce,
        permissions: vec![Permission::ChargesWrite],
        max_charge: BTreeMap::new(),
        refusal_status: RefusalStatus::PaymentRequired,
        accounts: Vec::new(),
        require_customer: false,
        metadata: BTreeMap::new(),
        caps: vec![Cap::fresh(usd(), max_amount, max_amount)],
        created_at: START,
    }
}
