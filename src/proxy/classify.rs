//! What is asked: the operation, and for money its judged parameters.

use bytes::Bytes;
use http::header::HeaderMap;
use http::request;

use super::authenticate::Authenticated;
use super::pipeline::refuse;
use super::{Platform, Proxy};
use crate::domain::decision::{Ask, Look, Target};
use crate::domain::digest::sha256_hex;
use crate::domain::idempotency::{ClientKey, DerivedKey, Fingerprint};
use crate::domain::money::Money;
use crate::domain::operation::{MoneyOperation, Permission};
use crate::domain::refusal::Refusal;
use crate::ledger::command::Refused;
use crate::stripe::catalog::{self, Classified, MoneyCall};
use crate::stripe::charge;
use crate::stripe::headers::{self, RequestHeaders};
use crate::telemetry::metrics::Tally;

mod target;

pub(super) use target::find as find_target;

/// A request the vault key may make.
pub(super) enum Work {
    Read(ReadCall),
    Money(MoneyRequest),
}

/// A read, as it goes upstream.
pub(super) struct ReadCall {
    pub(super) path_and_query: String,
    pub(super) headers: HeaderMap,
}

/// A call that can move money, before its body is judged.
pub(super) struct MoneyRequest {
    call: MoneyCall,
    client: RequestHeaders,
    upstream_headers: HeaderMap,
    /// The client's own headers, for the content type.
    headers: HeaderMap,
}

impl MoneyRequest {
    pub(super) fn operation(&self) -> MoneyOperation {
        self.call.operation()
    }
}

/// **Proof** that a request was authenticated, permitted and judged. What goes upstream is made of it
/// alone.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) authenticated: Authenticated,
    pub(super) call: MoneyCall,
    /// What the ledger is asked.
    pub(super) ask: Ask,
    /// Without the idempotency key, which is the reservation's.
    pub(super) upstream_headers: HeaderMap,
    pub(super) body: Bytes,
    /// The client's `expand`, for reading the object instead.
    pub(super) expand_query: String,
    /// The client's own key, to be echoed.
    pub(super) client_key: Option<String>,
}

/// Finds the operation and checks that the key may do it, on that account.
pub(super) fn classify(
    proxy: &Proxy,
    authenticated: &Authenticated,
    parts: &request::Parts,
) -> Result<Work, Refusal> {
    let (path, query) = (parts.uri.path(), parts.uri.query());
    let classified = catalog::classify(&parts.method, path, query)?;
    let mut client = headers::read(&parts.headers)?;
    client.account = proxy.platform()?.canonical_account(client.account);
    let key = authenticated.key();
    if !client.account.is_empty() && !key.accounts.contains(&client.account) {
        return Err(Refusal::AccountNotPermitted);
    }
    let mut upstream_headers = headers::to_upstream(&parts.headers);
    if client.account.is_empty() {
        // Named or not, it is the platform's own: a repeat that names it otherwise than the first send
        // must be the same request to Stripe.
        upstream_headers.remove(&headers::STRIPE_ACCOUNT);
        upstream_headers.remove(&headers::STRIPE_CONTEXT);
    }
    match classified {
        Classified::Read { permission } => {
            permit(authenticated, permission)?;
            let path_and_query = parts
                .uri
                .path_and_query()
                .map_or(path, |whole| whole.as_str());
            let path_and_query = path_and_query.to_owned();
            Ok(Work::Read(ReadCall {
                path_and_query,
                headers: upstream_headers,
            }))
        }
        Classified::Money(call) => {
            permit(authenticated, call.permission())?;
            headers::require_form(&parts.headers)?;
            let headers = parts.headers.clone();
            Ok(Work::Money(MoneyRequest {
                call,
                client,
                upstream_headers,
                headers,
            }))
        }
    }
}

fn permit(authenticated: &Authenticated, wanted: Permission) -> Result<(), Refusal> {
    if authenticated.key().may(wanted) {
        Ok(())
    } else {
        Err(Refusal::OperationNotPermitted {
            missing: Some(wanted),
        })
    }
}

/// Judges the parameters. For an object that exists, its amount comes from the ledger or from Stripe.
pub(super) async fn judge(
    proxy: &Proxy,
    authenticated: Authenticated,
    request: MoneyRequest,
    body: &Bytes,
    tally: &mut Tally,
) -> Result<Judged, Refused> {
    let bad = |error| refuse(Refusal::BadParameter(error));
    let mut upstream_headers = request.upstream_headers;
    upstream_headers.remove(&headers::IDEMPOTENCY_KEY);
    let (parameters, expand_query) = match &request.call {
        MoneyCall::ChargesCreate => {
            let judged = charge::judge_create(body, &request.headers).map_err(bad)?;
            let parameters = Parameters {
                money: judged.money,
                customer: judged.customer,
                target: None,
                canonical_body: judged.canonical_body,
            };
            (parameters, judged.expand_query)
        }
        MoneyCall::ChargesCapture { charge } => {
            let judged = charge::judge_capture(body, &request.headers).map_err(bad)?;
            let account = &request.client.account;
            let found = find_target(proxy, charge, account, &upstream_headers, tally).await?;
            let money = Money {
                amount: judged.amount.unwrap_or(found.money.amount),
                currency: found.money.currency,
            };
            let parameters = Parameters {
                money,
                customer: found.customer,
                target: Some(found.target),
                canonical_body: judged.canonical_body(money.amount),
            };
            (parameters, judged.expand_query)
        }
    };
    let client_key = request.client.idempotency_key.clone();
    let body = Bytes::from(parameters.canonical_body.clone());
    let ask = ask(
        proxy.platform().map_err(refuse)?,
        &authenticated,
        &request.call,
        request.client,
        parameters,
    );
    let call = request.call;
    Ok(Judged {
        authenticated,
        call,
        ask,
        upstream_headers,
        body,
        expand_query,
        client_key,
    })
}

struct Parameters {
    money: Money,
    customer: Option<String>,
    target: Option<Target>,
    canonical_body: String,
}

fn ask(
    platform: &Platform,
    authenticated: &Authenticated,
    call: &MoneyCall,
    client: RequestHeaders,
    parameters: Parameters,
) -> Ask {
    let key = authenticated.key();
    let (path, body) = (call.path(), &parameters.canonical_body);
    let fingerprint = Fingerprint::of("POST", &path, &client.account, &client.reference, body);
    let mut ask = Ask {
        vault_key: key.id.clone(),
        namespace: key.namespace.clone(),
        billing_period: key.billing_period.clone(),
        operation: call.operation(),
        account: client.account,
        customer: parameters.customer,
        reference: client.reference,
        money: parameters.money,
        target: parameters.target,
        // Replaced below, once the rest of the question stands.
        key: ClientKey::Given {
            digest: fingerprint.0,
            text: String::new(),
        },
        fingerprint,
        look: Look::First,
    };
    let scope = platform.key_scope(&ask.account, &ask.billing_period);
    ask.key = match client.idempotency_key {
        Some(text) => ClientKey::Given {
            digest: scope.given(&text),
            text,
        },
        None => derive(platform, &ask, &path, body),
    };
    ask
}

/// The key of a client that sent none (design §3.3). The amount joins it only where the slot is taken
/// by another amount; without a customer the whole content is the intent.
fn derive(platform: &Platform, ask: &Ask, path: &str, body: &str) -> ClientKey {
    let scope = platform.key_scope(&ask.account, &ask.billing_period);
    let mut seed = match (&ask.target, &ask.customer) {
        (None, Some(customer)) => customer.clone(),
        (Some(_), _) | (None, None) => format!("POST {path} {}", sha256_hex(body)),
    };
    for part in [&ask.billing_period, &ask.namespace] {
        seed = format!("{seed}:{part}");
    }
    for (name, part) in [("account", &ask.account), ("reference", &ask.reference)] {
        if !part.is_empty() {
            seed = format!("{seed}:{name}={part}");
        }
    }
    let Money { amount, currency } = ask.money;
    let other_amount = ask
        .slot()
        .map(|_| DerivedKey::new(&scope, format!("{seed}:amount={amount}{currency}")));
    ClientKey::Derived {
        first: DerivedKey::new(&scope, seed),
        other_amount,
    }
}
