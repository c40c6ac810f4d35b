//! Makes one call per line of standard input with async-stripe, and prints what its user sees:
//! `tests/clients/README.md` says in which words.
//!
//! The argument is the client's request strategy: `once` (the default), `retry` or `backoff`. Beside the calls
//! named there it knows `bill`, the code of docs/integrations/rust.md.

mod bill;

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, Write};

use bill::Billed;
use futures_util::TryStreamExt;
use serde_json::{Map, Value, json};
use stripe::{
    ApiErrorsType, Client, ClientBuilder, IdempotencyKey, RequestStrategy, StripeError,
    StripeRequest,
};
use stripe_core::charge::{CaptureCharge, CreateCharge, ListCharge, RetrieveCharge};
use stripe_core::refund::CreateRefund;
use stripe_core::{Charge, Refund};
use stripe_types::Currency;

/// As many attempts as the official SDKs make.
const ATTEMPTS_MAX: u32 = 3;

type Wrong = Box<dyn Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Wrong> {
    let strategy = std::env::args().nth(1);
    let version = version().ok_or("async-stripe is not in Cargo.lock")?;
    for line in std::io::stdin().lock().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        let mut record = match make(&call, strategy.as_deref()).await? {
            Ok(made) => made,
            Err(error) => told(&error),
        };
        record["client"] = "async-stripe".into();
        record["version"] = version.into();
        record["case"] = call["case"].clone();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{record}")?;
        out.flush()?;
    }
    Ok(())
}

/// The outer error is a call that a test should not make.
async fn make(call: &Value, strategy: Option<&str>) -> Result<Result<Value, StripeError>, Wrong> {
    let params = Params(call["params"].as_object().cloned().unwrap_or_default());
    let sender = Sender::new(call, strategy)?;
    let id = text(&call["id"]);
    Ok(match text(&call["call"]) {
        "charges.create" => sender.charge(params.create()?).await,
        "charges.capture" => sender.charge(params.capture(id)?).await,
        "charges.retrieve" => sender.charge(RetrieveCharge::new(id)).await,
        "charges.list" => sender.list(params.list()?).await,
        "refunds.create" => sender.refund(params.refund()?).await,
        "bill" => bill(call).await,
        unknown => return Err(format!("unknown call {unknown}").into()),
    })
}

/// A client, and what is said of one request.
struct Sender {
    client: Client,
    key: Option<IdempotencyKey>,
    account: Option<String>,
}

impl Sender {
    fn new(call: &Value, strategy: Option<&str>) -> Result<Self, Wrong> {
        let strategy = match strategy {
            None | Some("once") => RequestStrategy::Once,
            Some("retry") => RequestStrategy::Retry(ATTEMPTS_MAX),
            Some("backoff") => RequestStrategy::ExponentialBackoff(ATTEMPTS_MAX),
            Some(unknown) => return Err(format!("unknown strategy {unknown}").into()),
        };
        let client = ClientBuilder::new(text(&call["api_key"]))
            .url(format!("{}/", text(&call["base_url"])))
            .request_strategy(strategy)
            .build()?;
        let key = call["idempotency_key"].as_str().map(IdempotencyKey::new);
        Ok(Self {
            client,
            key: key.transpose()?,
            account: call["stripe_account"].as_str().map(str::to_owned),
        })
    }

    async fn charge(
        &self,
        request: impl StripeRequest<Output = Charge>,
    ) -> Result<Value, StripeError> {
        let mut request = request.customize();
        if let Some(key) = &self.key {
            request = request.request_strategy(RequestStrategy::Idempotent(key.clone()));
        }
        if let Some(account) = &self.account {
            request = request.account_id(account.as_str().into());
        }
        Ok(shown(&[request.send(&self.client).await?]))
    }

    async fn list(&self, request: ListCharge) -> Result<Value, StripeError> {
        let charges: Vec<Charge> = request
            .paginate()
            .stream(&self.client)
            .try_collect()
            .await?;
        Ok(shown(&charges))
    }

    async fn refund(&self, request: CreateRefund) -> Result<Value, StripeError> {
        let refund: Refund = request.send(&self.client).await?;
        Ok(json!({ "class": null, "ids": [refund.id.as_str()], "amount_captured": 0 }))
    }
}

/// The page's own code, from its first line on.
async fn bill(call: &Value) -> Result<Value, StripeError> {
    let client = bill::client(text(&call["api_key"]), text(&call["base_url"]))?;
    let billed = bill::bill(&client, text(&call["customer"]), text(&call["period"])).await?;
    let (message, ids) = match billed {
        Billed::Charged { charge } => ("charged", vec![charge]),
        Billed::CapReached => ("cap reached", vec![]),
        Billed::CardDeclined => ("card declined", vec![]),
    };
    Ok(json!({ "class": null, "message": message, "ids": ids }))
}

/// The call's parameters. They go through the SDK's own types; a value that these rule out is an error here,
/// as it would be for the compiler.
struct Params(Map<String, Value>);

impl Params {
    fn create(&self) -> Result<CreateCharge, Wrong> {
        let mut request = CreateCharge::new();
        for (name, value) in &self.0 {
            request = match name.as_str() {
                "amount" => request.amount(integer(value)?),
                "capture" => request.capture(value == true),
                "currency" => request.currency(text(value).parse::<Currency>()?),
                "customer" => request.customer(text(value)),
                "description" => request.description(text(value)),
                "metadata" => request.metadata(texts(value)),
                "source" => request.source(text(value)),
                unknown => return Err(format!("unknown parameter {unknown}").into()),
            };
        }
        Ok(request)
    }

    fn capture(&self, id: &str) -> Result<CaptureCharge, Wrong> {
        let request = CaptureCharge::new(id);
        Ok(match self.0.get("amount") {
            Some(amount) => request.amount(integer(amount)?),
            None => request,
        })
    }

    fn list(&self) -> Result<ListCharge, Wrong> {
        let mut request = ListCharge::new();
        if let Some(customer) = self.0.get("customer") {
            request = request.customer(text(customer));
        }
        if let Some(limit) = self.0.get("limit") {
            request = request.limit(integer(limit)?);
        }
        Ok(request)
    }

    fn refund(&self) -> Result<CreateRefund, Wrong> {
        let mut request = CreateRefund::new();
        if let Some(charge) = self.0.get("charge") {
            request = request.charge(text(charge));
        }
        if let Some(amount) = self.0.get("amount") {
            request = request.amount(integer(amount)?);
        }
        Ok(request)
    }
}

fn shown(charges: &[Charge]) -> Value {
    let ids: Vec<&str> = charges.iter().map(|charge| charge.id.as_str()).collect();
    let captured: i64 = charges.iter().map(|charge| charge.amount_captured).sum();
    json!({ "class": null, "ids": ids, "amount_captured": captured })
}

/// What the user of the SDK can match on.
fn told(error: &StripeError) -> Value {
    let variant = match error {
        StripeError::Stripe(..) => "Stripe",
        StripeError::JSONDeserialize(_) => "JSONDeserialize",
        StripeError::ClientError(_) => "ClientError",
        StripeError::ConfigError(_) => "ConfigError",
        StripeError::Timeout => "Timeout",
    };
    let StripeError::Stripe(body, status) = error else {
        return json!({ "class": variant, "message": error.to_string() });
    };
    let kind = match body.type_ {
        ApiErrorsType::ApiError => "ApiError",
        ApiErrorsType::CardError => "CardError",
        ApiErrorsType::IdempotencyError => "IdempotencyError",
        ApiErrorsType::InvalidRequestError => "InvalidRequestError",
        _ => "Unknown",
    };
    json!({
        "class": format!("{variant}, {kind}"),
        "code": body.code.as_ref().map(|code| code.as_str()),
        "type": body.type_.as_str(),
        "status": status,
        "message": body.message,
    })
}

/// The version that was built, as the lock file has it: the SDK does not tell.
fn version() -> Option<&'static str> {
    let lock = include_str!("../Cargo.lock");
    let (_, rest) = lock.split_once("name = \"async-stripe\"\nversion = \"")?;
    rest.split('"').next()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> HashMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .map(|(name, value)| (name.clone(), text(value).to_owned()))
        .collect()
}

fn integer(value: &Value) -> Result<i64, Wrong> {
    value
        .as_i64()
        .ok_or_else(|| format!("{value} is no integer, and the SDK takes no other").into())
}
