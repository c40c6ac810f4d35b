//! The charge a capture works on: known to the ledger, else read from Stripe.

use http::header::HeaderMap;

use crate::domain::decision::Target;
use crate::domain::money::Money;
use crate::domain::refusal::Refusal;
use crate::ledger::command::Refused;
use crate::proxy::Proxy;
use crate::proxy::pipeline::refuse;
use crate::stripe::answer::{self, ChargeFacts};
use crate::telemetry::metrics::Tally;

/// A charge, and the most that capturing all of it moves.
pub(in crate::proxy) struct Found {
    pub(in crate::proxy) target: Target,
    pub(in crate::proxy) money: Money,
    pub(in crate::proxy) customer: Option<String>,
}

/// Looks the charge up. Currency and customer come from the object, never from the request.
pub(in crate::proxy) async fn find(
    proxy: &Proxy,
    charge: &str,
    account: &str,
    headers: &HeaderMap,
    tally: &mut Tally,
) -> Result<Found, Refused> {
    let owner = proxy.ledger.reads().object_owner(account, charge).await;
    let owner = owner.map_err(|_| refuse(Refusal::LedgerUnavailable))?;
    let target = Target {
        object_id: charge.to_owned(),
        owner: owner
            .as_ref()
            .map(|owner| (owner.id, owner.vault_key.clone())),
    };
    // A row that made the charge knows its amount; one that found it there knows what it asked to
    // capture of it, which may be less than Stripe takes where a capture names no amount.
    if let Some(maker) = owner.as_ref().filter(|owner| owner.operation.creates()) {
        return Ok(Found {
            target,
            money: Money {
                amount: maker.amount,
                currency: maker.currency,
            },
            customer: maker.customer.clone(),
        });
    }
    let facts = tally.away(read(proxy, charge, headers)).await?;
    if facts.captured && owner.is_none() {
        let charge = target.object_id;
        return Err(refuse(Refusal::ChargeAlreadyCaptured { charge }));
    }
    Ok(Found {
        target,
        money: Money {
            amount: facts.amount,
            currency: facts.currency,
        },
        customer: facts.customer,
    })
}

async fn read(proxy: &Proxy, charge: &str, headers: &HeaderMap) -> Result<ChargeFacts, Refused> {
    let path = format!("/v1/charges/{charge}");
    let failed = || refuse(Refusal::UpstreamFailed);
    let answer = proxy
        .upstream
        .read_whole(&path, headers.clone())
        .await
        .map_err(|_| failed())?;
    if answer.status == http::StatusCode::NOT_FOUND {
        return Err(refuse(Refusal::NoSuchCharge {
            charge: charge.to_owned(),
        }));
    }
    if !answer.status.is_success() {
        return Err(failed());
    }
    answer::charge_facts(&answer.body).map_err(|_| failed())
}
