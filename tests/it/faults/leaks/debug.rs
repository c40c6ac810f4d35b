//! `Debug` of what holds a secret does not show it.

use std::path::Path;

use secrecy::SecretString;
use spendcap::app::App;
use spendcap::clock::Clock;
use spendcap::config::{Environment, Settings};
use spendcap::domain::secret::VaultSecret;
use spendcap::proxy::RealKey;
use spendcap::sandbox::{Sandbox, SandboxSettings};

use super::database_with_a_password;
use super::{ADMIN_TOKEN, DATABASE_PASSWORD, REAL_KEY, assert_free_of, disguises};
use crate::support::world::environment;

#[tokio::test(flavor = "multi_thread")]
async fn shows_no_secret() {
    let settings = SandboxSettings {
        secret_key: REAL_KEY.to_owned(),
        ..SandboxSettings::default()
    };
    let mut shown = vec![format!("{settings:?}")];
    let sandbox = Sandbox::start(settings).unwrap();
    let (url, _relay) = database_with_a_password().await;
    let more = [
        ("SPENDCAP_ADMIN_TOKEN", ADMIN_TOKEN),
        ("STRIPE_SECRET_KEY", REAL_KEY),
    ];
    let environment: Environment = environment(&url, &sandbox.base_url(), &more)
        .into_iter()
        .collect();
    shown.push(format!("{environment:?}"));
    let settings = Settings::load(None, &environment).unwrap();
    shown.push(format!("{settings:#?}"));
    shown.push(format!(
        "{:#?} {}",
        settings.config.ledger, settings.config.ledger.url
    ));
    let app = App::start(settings, Clock::system()).await.unwrap();
    shown.push(format!("{app:?} {:?}", app.ledger()));
    app.stop().await.unwrap();
    let real_key = RealKey::new(SecretString::from(REAL_KEY));
    let vault_key = VaultSecret::from_entropy([7; 24]);
    shown.push(format!("{real_key:?} {vault_key:?}"));

    let unreadable = [
        (
            "SPENDCAP_LEDGER_URL",
            &*format!("postgres://u:{DATABASE_PASSWORD}@:x/"),
        ),
        more[0],
        more[1],
    ];
    let unreadable: Environment = unreadable.into_iter().collect();
    shown.push(format!(
        "{:?}",
        Settings::load(Some(Path::new("none")), &unreadable).err()
    ));

    let secrets = [REAL_KEY, ADMIN_TOKEN, DATABASE_PASSWORD, vault_key.reveal()];
    let secrets: Vec<String> = secrets
        .iter()
        .flat_map(|secret| disguises(secret))
        .collect();
    for text in shown {
        assert!(!text.is_empty());
        assert_free_of(&secrets, "a Debug", &text);
    }
}
