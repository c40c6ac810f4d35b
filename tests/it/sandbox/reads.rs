//! What can be read back: lists, events, customers, the account and its balance.

use std::time::Duration;

use serde_json::Value;
use spendcap::sandbox::Sandbox;

use super::client::{charge, get, post, start};

async fn ids(sandbox: &Sandbox, path: &str) -> Vec<String> {
    let list = get(path).send(sandbox).await.json();
    assert_eq!(list["object"], "list", "{path}");
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    list["data"].as_array().unwrap().iter().map(id).collect()
}

#[tokio::test]
async fn charges_are_listed_newest_first_in_pages() {
    let sandbox = start();
    let mut made = Vec::new();
    for customer in ["cus_1", "cus_2", "cus_1"] {
        made.push(charge(customer).send(&sandbox).await.id());
        sandbox.advance_clock(Duration::from_hours(1));
    }
    let [first, second, third] = made.try_into().unwrap();
    let created = sandbox.charges()[1].created;
    let rows = [
        ("limit=2".to_owned(), vec![&third, &second]),
        (format!("starting_after={second}"), vec![&first]),
        (format!("ending_before={second}"), vec![&third]),
        ("customer=cus_1".to_owned(), vec![&third, &first]),
        (format!("created[gte]={created}"), vec![&third, &second]),
        (format!("created[gt]={created}"), vec![&third]),
        (format!("created[lte]={created}"), vec![&second, &first]),
        (format!("created[lt]={created}"), vec![&first]),
    ];
    for (query, expected) in rows {
        let found = ids(&sandbox, &format!("/v1/charges?{query}")).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let page = get("/v1/charges?limit=2").send(&sandbox).await.json();
    assert_eq!(page["has_more"], true);
}

#[tokio::test]
async fn events_tell_the_request_and_its_key() {
    let sandbox = start();
    let first = charge("cus_1").key("k1").send(&sandbox).await;
    charge("cus_decline").key("k2").send(&sandbox).await;
    charge("cus_pending").send(&sandbox).await;
    let body = "amount=100&currency=usd&customer=cus_1&capture=false";
    let id = post("/v1/charges", body).send(&sandbox).await.id();
    post(&format!("/v1/charges/{id}/capture"), "")
        .key("k3")
        .send(&sandbox)
        .await;
    post("/v1/refunds", &format!("charge={id}"))
        .send(&sandbox)
        .await;
    // A replay happens to nothing.
    charge("cus_1").key("k1").send(&sandbox).await;

    let all = get("/v1/events").send(&sandbox).await.json();
    let seen = all["data"].as_array().unwrap().iter().map(|event| {
        (
            event["type"].as_str().unwrap(),
            event["request"]["idempotency_key"].as_str(),
        )
    });
    let expected = [
        ("charge.refunded", None),
        ("charge.captured", Some("k3")),
        ("charge.succeeded", None),
        ("charge.pending", None),
        ("charge.failed", Some("k2")),
        ("charge.succeeded", Some("k1")),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);

    let oldest = &all["data"][5];
    assert_eq!(oldest["request"]["id"].as_str(), first.header("request-id"));
    assert_eq!(oldest["data"]["object"], first.json());
    let path = format!("/v1/events/{}", oldest["id"].as_str().unwrap());
    assert_eq!(&get(&path).send(&sandbox).await.json(), oldest);

    let rows = [
        ("type=charge.succeeded", 2),
        ("type=charge.*", 6),
        ("type=customer.*", 0),
        ("types[]=charge.failed&types[]=charge.pending", 2),
        ("types[0]=charge.failed", 1),
        ("limit=4", 4),
        ("created[gt]=99999999999", 0),
    ];
    for (query, count) in rows {
        let found = ids(&sandbox, &format!("/v1/events?{query}")).await;
        assert_eq!(found.len(), count, "{query}");
    }
}

#[tokio::test]
async fn an_event_keeps_the_charge_as_it_was() {
    let sandbox = start();
    let body = "amount=100&currency=usd&customer=cus_1&capture=false";
    let id = post("/v1/charges", body).send(&sandbox).await.id();
    post(&format!("/v1/charges/{id}/capture"), "")
        .send(&sandbox)
        .await;
    let events = get("/v1/events").send(&sandbox).await.json();
    assert_eq!(events["data"][0]["data"]["object"]["captured"], true);
    assert_eq!(events["data"][1]["data"]["object"]["captured"], false);
}

#[tokio::test]
async fn customer_and_balance_transaction_are_expanded() {
    let sandbox = start();
    let body = "amount=9900&currency=usd&customer=cus_1&expand[]=customer&expand[0]=x";
    assert_eq!(post("/v1/charges", body).send(&sandbox).await.status, 400);
    let body = "amount=9900&currency=usd&customer=cus_1&expand[]=customer";
    let charge = post("/v1/charges", body).send(&sandbox).await.json();
    assert_eq!(charge["customer"]["object"], "customer");
    let id = charge["id"].as_str().unwrap();
    let path = format!("/v1/charges/{id}?expand[]=balance_transaction");
    let charge = get(&path).send(&sandbox).await.json();
    assert_eq!(charge["balance_transaction"]["net"], 9900 - 317);
    assert_eq!(charge["balance_transaction"]["source"], id);
    let list = get("/v1/charges?expand[0]=data.customer")
        .send(&sandbox)
        .await
        .json();
    assert_eq!(list["data"][0]["customer"]["id"], "cus_1");
}

#[tokio::test]
async fn customers_and_their_payment_methods() {
    let sandbox = start();
    assert_eq!(
        get("/v1/customers/cus_1").send(&sandbox).await.verdict(),
        "404 resource_missing"
    );
    charge("cus_1").send(&sandbox).await;
    assert_eq!(
        get("/v1/customers/cus_1").send(&sandbox).await.id(),
        "cus_1"
    );
    let made = post("/v1/customers", "email=a@b.c&name=Ann&metadata[x]=1")
        .send(&sandbox)
        .await;
    assert_eq!(made.json()["email"], "a@b.c");
    assert_eq!(
        ids(&sandbox, "/v1/customers").await,
        [made.id(), "cus_1".to_owned()]
    );
    assert_eq!(
        ids(&sandbox, "/v1/customers?email=a@b.c").await,
        [made.id()]
    );

    for path in [
        "/v1/customers/cus_1/payment_methods",
        "/v1/payment_methods?customer=cus_1",
        "/v1/payment_methods?customer=cus_1&type=card",
    ] {
        assert_eq!(ids(&sandbox, path).await, ["pm_1"], "{path}");
    }
    let method = get("/v1/payment_methods/pm_1").send(&sandbox).await.json();
    assert_eq!(method["customer"], "cus_1");
    assert_eq!(
        get("/v1/payment_methods/pm_card_visa")
            .send(&sandbox)
            .await
            .status,
        200
    );
    assert_eq!(
        get("/v1/payment_methods/pm_none")
            .send(&sandbox)
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn the_account_and_its_balance() {
    let sandbox = start();
    assert_eq!(
        get("/v1/account").send(&sandbox).await.id(),
        "acct_1SpendcapSandbox"
    );
    let connected = get("/v1/account")
        .header("stripe-account", "acct_2")
        .send(&sandbox)
        .await;
    assert_eq!(connected.id(), "acct_2");
    let other = get("/v1/account")
        .header("stripe-account", "bogus")
        .send(&sandbox)
        .await;
    assert_eq!(other.verdict(), "403 account_invalid");

    let transaction = charge("cus_1").send(&sandbox).await.json()["balance_transaction"].clone();
    let transaction = transaction.as_str().unwrap();
    assert_eq!(
        ids(&sandbox, "/v1/balance_transactions").await,
        [transaction]
    );
    let path = format!("/v1/balance_transactions/{transaction}");
    assert_eq!(get(&path).send(&sandbox).await.json()["amount"], 9900);
    let balance = get("/v1/balance").send(&sandbox).await.json();
    assert_eq!(balance["available"][0]["amount"], 9900 - 317);
}

#[tokio::test]
async fn what_is_not_there_is_404_in_the_envelope() {
    let sandbox = start();
    for path in [
        "/v1/charges/ch_x",
        "/v1/events/evt_x",
        "/v1/balance_transactions/txn_x",
    ] {
        assert_eq!(
            get(path).send(&sandbox).await.verdict(),
            "404 resource_missing",
            "{path}"
        );
    }
    for call in [
        get("/v1/nope"),
        post("/v1/account", ""),
        get("/"),
        get("/V1/charges"),
    ] {
        assert_eq!(
            call.send(&sandbox).await.verdict(),
            "404 invalid_request_error"
        );
    }
    let limit = get("/v1/charges?limit=101").send(&sandbox).await;
    assert_eq!(limit.verdict(), "400 parameter_invalid_integer");
}
