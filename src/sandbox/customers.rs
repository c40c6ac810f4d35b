//! Customers and their payment methods. A `cus_…` id that a charge names is created on the spot, so
//! that tests need no set-up.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::api::Scene;
use super::errors::ApiError;
use super::params::{self, Params};
use super::reply::Reply;
use super::shelf::{PageQuery, Shelved, list_object};

const CREATE_PARAMS: [&str; 8] = [
    "address",
    "description",
    "email",
    "expand",
    "metadata",
    "name",
    "payment_method",
    "source",
];

/// A customer.
#[derive(Debug)]
pub(crate) struct Customer {
    id: String,
    created: i64,
    livemode: bool,
    name: Option<String>,
    email: Option<String>,
    description: Option<String>,
    metadata: BTreeMap<String, String>,
}

impl Shelved for Arc<Customer> {
    fn id(&self) -> &str {
        &self.id
    }

    fn created(&self) -> i64 {
        self.created
    }
}

impl Customer {
    /// The customer object.
    pub(crate) fn render(&self) -> Value {
        json!({
            "id": self.id,
            "object": "customer",
            "balance": 0,
            "created": self.created,
            "currency": null,
            "default_source": null,
            "delinquent": false,
            "description": self.description,
            "email": self.email,
            "invoice_settings": { "default_payment_method": payment_method_of(&self.id) },
            "livemode": self.livemode,
            "metadata": self.metadata,
            "name": self.name,
            "phone": null,
            "shipping": null,
        })
    }
}

/// A request for a customer whose parameters are well formed.
#[derive(Debug)]
pub(crate) struct NewCustomer {
    name: Option<String>,
    email: Option<String>,
    description: Option<String>,
    metadata: BTreeMap<String, String>,
}

impl NewCustomer {
    pub(crate) fn read(params: &Params) -> Result<Self, ApiError> {
        params.only(&CREATE_PARAMS)?;
        Ok(Self {
            name: params.free_text("name")?,
            email: params.free_text("email")?,
            description: params.free_text("description")?,
            metadata: params.metadata()?,
        })
    }

    pub(crate) fn execute(self, scene: &Scene<'_>) -> Reply {
        let Self {
            name,
            email,
            description,
            metadata,
        } = self;
        let id = scene.world.ids.next("cus_");
        let customer = Customer {
            name,
            email,
            description,
            metadata,
            ..blank(scene, id)
        };
        let reply = Reply::ok(&customer.render());
        scene.account.books().customers.push(Arc::new(customer));
        reply
    }
}

/// Makes sure that a customer whom a charge names exists.
///
/// # Errors
/// 400 where the id cannot be a customer's.
pub(crate) fn ensure(scene: &Scene<'_>, id: &str) -> Result<(), ApiError> {
    if !id.starts_with("cus_") {
        return Err(ApiError::missing_param("customer", id, "customer"));
    }
    let mut books = scene.account.books();
    if books.customers.get(id).is_none() {
        books.customers.push(Arc::new(blank(scene, id.to_owned())));
    }
    Ok(())
}

/// `GET /v1/customers`.
pub(crate) fn list(scene: &Scene<'_>, params: &Params) -> Result<Reply, ApiError> {
    let mut known = PageQuery::PARAMS.to_vec();
    known.push("email");
    params.only(&known)?;
    let query = PageQuery::read(params)?;
    let email = params.text("email")?;
    let books = scene.account.books();
    let wanted = |customer: &Arc<Customer>| email.is_none() || customer.email.as_deref() == email;
    let (page, has_more) = books.customers.page(&query, wanted)?;
    let data = page.iter().map(|customer| customer.render()).collect();
    Ok(Reply::ok(&list_object("/v1/customers", data, has_more)))
}

/// `GET /v1/customers/{id}`.
pub(crate) fn get(scene: &Scene<'_>, id: &str) -> Result<Reply, ApiError> {
    Ok(Reply::ok(&find(scene, id, "id")?.render()))
}

/// The one payment method a customer has.
pub(crate) fn payment_method_of(customer_id: &str) -> String {
    format!(
        "pm_{}",
        customer_id.strip_prefix("cus_").unwrap_or(customer_id)
    )
}

/// `GET /v1/payment_methods/{id}`: a customer's, or one of the shared `pm_card_…`.
pub(crate) fn payment_method(scene: &Scene<'_>, id: &str) -> Result<Reply, ApiError> {
    let owner = id
        .strip_prefix("pm_")
        .map(|rest| format!("cus_{rest}"))
        .unwrap_or_default();
    let owner = scene.account.books().customers.get(&owner).cloned();
    match owner {
        Some(owner) => Ok(Reply::ok(&render_method(id, Some(&owner)))),
        None if id.starts_with("pm_card_") => Ok(Reply::ok(&render_method(id, None))),
        None => Err(ApiError::missing("PaymentMethod", id, "payment_method")),
    }
}

/// `GET /v1/payment_methods?customer=…`.
pub(crate) fn payment_methods(scene: &Scene<'_>, params: &Params) -> Result<Reply, ApiError> {
    let customer = params
        .text("customer")?
        .ok_or_else(|| params::missing("customer"))?;
    methods_of(scene, customer, "/v1/payment_methods", params)
}

/// `GET /v1/customers/{id}/payment_methods`.
pub(crate) fn customer_payment_methods(
    scene: &Scene<'_>,
    customer: &str,
    params: &Params,
) -> Result<Reply, ApiError> {
    let url = format!("/v1/customers/{customer}/payment_methods");
    methods_of(scene, customer, &url, params)
}

fn methods_of(
    scene: &Scene<'_>,
    customer: &str,
    url: &str,
    params: &Params,
) -> Result<Reply, ApiError> {
    let mut known = PageQuery::PARAMS.to_vec();
    known.extend(["allow_redisplay", "customer", "type"]);
    params.only(&known)?;
    let customer = find(scene, customer, "customer")?;
    let wanted = params.text("type")?.is_none_or(|kind| kind == "card");
    let id = payment_method_of(&customer.id);
    let data = if wanted {
        vec![render_method(&id, Some(&customer))]
    } else {
        Vec::new()
    };
    Ok(Reply::ok(&list_object(url, data, false)))
}

fn find(scene: &Scene<'_>, id: &str, param: &str) -> Result<Arc<Customer>, ApiError> {
    let customer = scene.account.books().customers.get(id).cloned();
    customer.ok_or_else(|| ApiError::missing("customer", id, param))
}

fn blank(scene: &Scene<'_>, id: String) -> Customer {
    Customer {
        id,
        created: scene.now,
        livemode: scene.world.livemode(),
        name: None,
        email: None,
        description: None,
        metadata: BTreeMap::new(),
    }
}

fn render_method(id: &str, owner: Option<&Arc<Customer>>) -> Value {
    json!({
        "id": id,
        "object": "payment_method",
        "billing_details": { "address": null, "email": null, "name": null, "phone": null },
        "card": { "brand": "visa", "country": "US", "exp_month": 12, "exp_year": 2034,
            "funding": "credit", "last4": "4242" },
        "created": owner.map(|owner| owner.created),
        "customer": owner.map(|owner| owner.id.as_str()),
        "livemode": owner.is_some_and(|owner| owner.livemode),
        "metadata": {},
        "type": "card",
    })
}
