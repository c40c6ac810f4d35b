//! What the reconciler needs to read: without it, what is held waits for a repeat or an operator.

use super::{Finding, Verdict};
use crate::app;
use crate::clock::Clock;
use crate::config::Settings;

pub(super) async fn check(settings: &Settings) -> Finding {
    Finding {
        part: "reconcile",
        verdict: verdict(settings).await,
    }
}

async fn verdict(settings: &Settings) -> Verdict {
    if !settings.config.reconcile.enabled {
        return Verdict::Warn(
            "switched off: what is held waits for a repeat or an operator".to_owned(),
        );
    }
    let key = &settings.secrets.stripe_key;
    match app::unreadable(&settings.config, key, Clock::system()).await {
        Ok(kinds) if kinds.is_empty() => {
            Verdict::Ok("the key may read charges and events".to_owned())
        }
        Ok(kinds) => Verdict::Warn(format!(
            "the key may not read {}: what is held waits for a repeat or an operator",
            kinds.join(" and ")
        )),
        Err(error) => Verdict::Warn(format!(
            "what the key may read was not checked, Stripe did not tell: {error:#}"
        )),
    }
}
