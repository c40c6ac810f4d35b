//! Reads: a client's own, streamed through, and the object that answers a repeat.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use super::Proxy;
use super::body;
use super::classify::{Judged, ReadCall};
use super::respond::{self, Answered};
use crate::domain::refusal::Refusal;
use crate::ledger::command::{Existing, Refused};
use crate::stripe::headers::{self, IDEMPOTENCY_KEY, STRIPE_ACCOUNT};
use crate::stripe::read::{NoReadAnswer, ReadAnswer, Reading, StripeRead};

/// Passes a permitted read through without keeping its body.
pub(super) async fn pass_through(proxy: &Arc<Proxy>, call: ReadCall) -> Result<Answered, Refusal> {
    let response = proxy
        .upstream
        .read(&call.path_and_query, call.headers)
        .await;
    let response = response.map_err(|error| {
        tracing::warn!(error = %error, "A read did not reach Stripe");
        Refusal::UpstreamFailed
    })?;
    let (parts, incoming) = response.into_parts();
    let headers = headers::to_client(&parts.headers);
    Ok(Answered {
        status: parts.status,
        headers,
        body: body::streamed(incoming),
        code: None,
    })
}

/// Answers with the object that already stands for what was asked. Never a POST: Stripe forgets keys
/// after a day, the ledger does not.
pub(super) async fn existing(
    proxy: &Proxy,
    judged: &Judged,
    existing: Existing,
) -> Result<Answered, Refused> {
    let mut path = format!("/v1/charges/{}", existing.object_id);
    if !judged.expand_query.is_empty() {
        path = format!("{path}?{}", judged.expand_query);
    }
    let failed = || Refused {
        refusal: Refusal::UpstreamFailed,
        flags: existing.flags.clone(),
    };
    let answer = proxy
        .upstream
        .read_whole(&path, judged.upstream_headers.clone())
        .await;
    let answer = answer.map_err(|_| failed())?;
    if !answer.status.is_success() {
        return Err(failed());
    }
    let mut headers = headers::to_client(&answer.headers);
    headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    let key = judged
        .client_key
        .as_deref()
        .unwrap_or(&existing.upstream_key);
    if let Ok(key) = HeaderValue::from_str(key) {
        headers.insert(&IDEMPOTENCY_KEY, key);
    }
    let mut answered = Answered {
        status: answer.status,
        headers,
        body: body::whole(answer.body),
        code: None,
    };
    let (id, remaining) = (existing.reservation, existing.remaining);
    respond::annotate(&mut answered.headers, id, remaining, &existing.flags);
    Ok(answered)
}

/// Reads for the parts beside the data plane, with the same key and connections; not before it is known
/// whose the key is, since another account would tell other truths.
impl StripeRead for Proxy {
    fn read<'a>(&'a self, path_and_query: &'a str, account: &'a str) -> Reading<'a> {
        Box::pin(async move {
            self.platform().map_err(|_| NoReadAnswer)?;
            let mut headers = HeaderMap::new();
            if !account.is_empty() {
                let account = HeaderValue::from_str(account).map_err(|_| NoReadAnswer)?;
                headers.insert(&STRIPE_ACCOUNT, account);
            }
            let answer = self.upstream.read_own(path_and_query, headers).await;
            let answer = answer.map_err(|_| NoReadAnswer)?;
            Ok(ReadAnswer {
                status: answer.status,
                body: answer.body,
            })
        })
    }
}
