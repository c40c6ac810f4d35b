//! The account: whose key it is, and whether the ledger belongs to the same.

use super::ledger::Pinned;
use super::{Finding, Verdict, mode};
use crate::app;
use crate::clock::Clock;
use crate::config::Settings;
use crate::ledger::PinError;
use crate::proxy::KeyOwner;

pub(super) async fn check(settings: &Settings, pinned: Option<&Pinned>) -> Finding {
    Finding {
        part: "account",
        verdict: verdict(settings, pinned).await,
    }
}

async fn verdict(settings: &Settings, pinned: Option<&Pinned>) -> Verdict {
    let key = &settings.secrets.stripe_key;
    let given = mode(key.livemode());
    let pinned_mode = pinned.and_then(|pinned| pinned.mode.as_deref());
    if pinned_mode.is_some_and(|pinned| pinned != given) {
        let pinned = mode(!key.livemode());
        return Verdict::Wrong(PinError::OtherMode { pinned, given }.to_string());
    }
    match app::key_owner(&settings.config, key, Clock::system()).await {
        Ok(KeyOwner::Account(given)) => same_account(given, pinned),
        Ok(KeyOwner::Nobody) => Verdict::Wrong("Stripe does not accept the key (401)".to_owned()),
        Ok(KeyOwner::Hidden) => Verdict::Warn(
            "the key may not read its account: only live or test mode is checked".to_owned(),
        ),
        Err(error) => Verdict::Warn(format!(
            "whose key it is was not checked, Stripe did not tell: {error:#}"
        )),
    }
}

fn same_account(given: String, pinned: Option<&Pinned>) -> Verdict {
    let Some(pinned) = pinned else {
        return Verdict::Ok(format!("{given}; what the ledger belongs to was not read"));
    };
    match &pinned.account {
        None => Verdict::Ok(format!("{given}: `serve` pins the ledger to it")),
        Some(pinned) if *pinned == given => {
            Verdict::Ok(format!("{given}, as pinned in the ledger"))
        }
        Some(pinned) => {
            let pinned = pinned.clone();
            Verdict::Wrong(PinError::OtherAccount { pinned, given }.to_string())
        }
    }
}
