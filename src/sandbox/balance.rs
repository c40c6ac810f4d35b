//! The account, its balance and the transactions that make it up.

use std::sync::Arc;

use serde_json::{Value, json};

use super::api::Scene;
use super::books::Books;
use super::charges::Charge;
use super::errors::ApiError;
use super::params::Params;
use super::reply::Reply;
use super::shelf::{PageQuery, Shelved, list_object};

/// Fees are 2.9 % and 30 minor units, in every currency: enough to tell net from gross.
const FEE_PER_MILLE: i64 = 29;
const FEE_FIXED: i64 = 30;

/// One movement of money: a collected charge or a refund.
#[derive(Debug)]
pub(crate) struct Transaction {
    id: String,
    kind: &'static str,
    amount: i64,
    fee: i64,
    currency: String,
    source: String,
    created: i64,
}

impl Shelved for Arc<Transaction> {
    fn id(&self) -> &str {
        &self.id
    }

    fn created(&self) -> i64 {
        self.created
    }
}

impl Transaction {
    /// The balance transaction object.
    pub(crate) fn render(&self) -> Value {
        json!({
            "id": self.id,
            "object": "balance_transaction",
            "amount": self.amount,
            "available_on": self.created,
            "created": self.created,
            "currency": self.currency,
            "description": null,
            "exchange_rate": null,
            "fee": self.fee,
            "fee_details": [],
            "net": self.amount - self.fee,
            "reporting_category": self.kind,
            "source": self.source,
            "status": "available",
            "type": self.kind,
        })
    }
}

/// Books what a charge collected, and links the two.
pub(crate) fn collect(scene: &Scene<'_>, books: &mut Books, charge: &mut Charge) {
    let amount = charge.amount_captured;
    let fee = amount.saturating_mul(FEE_PER_MILLE) / 1000 + FEE_FIXED;
    let id = add(
        scene,
        books,
        &charge.currency,
        ("charge", amount, fee, &charge.id),
    );
    charge.balance_transaction = Some(id);
}

/// Books money that went back. Returns the transaction's id.
pub(crate) fn give_back(
    scene: &Scene<'_>,
    books: &mut Books,
    currency: &str,
    amount: i64,
    refund_id: &str,
) -> String {
    add(scene, books, currency, ("refund", -amount, 0, refund_id))
}

fn add(
    scene: &Scene<'_>,
    books: &mut Books,
    currency: &str,
    (kind, amount, fee, source): (&'static str, i64, i64, &str),
) -> String {
    let id = scene.world.ids.next("txn_");
    let net = books.balance.entry(currency.to_owned()).or_default();
    *net = net.saturating_add(amount.saturating_sub(fee));
    books.transactions.push(Arc::new(Transaction {
        id: id.clone(),
        kind,
        amount,
        fee,
        currency: currency.to_owned(),
        source: source.to_owned(),
        created: scene.now,
    }));
    id
}

/// `GET /v1/account`.
pub(crate) fn account(scene: &Scene<'_>) -> Reply {
    Reply::ok(&json!({
        "id": scene.account.id,
        "object": "account",
        "charges_enabled": true,
        "country": "US",
        "default_currency": "usd",
        "details_submitted": true,
        "email": null,
        "payouts_enabled": true,
        "settings": { "dashboard": { "display_name": "Spendcap sandbox", "timezone": "Etc/UTC" } },
        "type": "standard",
    }))
}

/// `GET /v1/balance`.
pub(crate) fn balance(scene: &Scene<'_>) -> Reply {
    let mut available: Vec<Value> = Vec::new();
    for (currency, amount) in &scene.account.books().balance {
        available.push(json!({ "amount": amount, "currency": currency,
            "source_types": { "card": amount } }));
    }
    if available.is_empty() {
        available.push(json!({ "amount": 0, "currency": "usd", "source_types": { "card": 0 } }));
    }
    Reply::ok(&json!({
        "object": "balance",
        "available": available,
        "livemode": scene.world.livemode(),
        "pending": [{ "amount": 0, "currency": "usd", "source_types": { "card": 0 } }],
    }))
}

/// `GET /v1/balance_transactions`.
pub(crate) fn transactions(scene: &Scene<'_>, params: &Params) -> Result<Reply, ApiError> {
    let mut known = PageQuery::PARAMS.to_vec();
    known.extend(["currency", "source", "type"]);
    params.only(&known)?;
    let query = PageQuery::read(params)?;
    let currency = params.text("currency")?;
    let source = params.text("source")?;
    let kind = params.text("type")?;
    let books = scene.account.books();
    let (page, has_more) = books.transactions.page(&query, |transaction| {
        currency.is_none_or(|wanted| wanted == transaction.currency)
            && source.is_none_or(|wanted| wanted == transaction.source)
            && kind.is_none_or(|wanted| wanted == transaction.kind)
    })?;
    let data = page
        .iter()
        .map(|transaction| transaction.render())
        .collect();
    Ok(Reply::ok(&list_object(
        "/v1/balance_transactions",
        data,
        has_more,
    )))
}

/// `GET /v1/balance_transactions/{id}`.
pub(crate) fn transaction(scene: &Scene<'_>, id: &str) -> Result<Reply, ApiError> {
    let transaction = scene.account.books().transactions.get(id).cloned();
    let transaction =
        transaction.ok_or_else(|| ApiError::missing("balance transaction", id, "id"))?;
    Ok(Reply::ok(&transaction.render()))
}
