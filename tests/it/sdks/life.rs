//! What a billing service does all day, with every SDK: charge, capture, read, be declined, meet the cap.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use spendcap::sandbox::{Fault, FaultKind};
use tokio::task::JoinSet;

use super::client::Record;
use super::stage::AMOUNT_MINOR;
use super::{CLIENTS, Client, Sdk};
use crate::support::{LedgerKind, VaultKey, World};

#[tokio::test(flavor = "multi_thread")]
async fn every_sdk_charges_captures_reads_and_meets_the_cap() {
    let mut running = JoinSet::new();
    for sdk in CLIENTS {
        running.spawn(a_day(sdk));
    }
    running.join_all().await;
}

/// A billing service that uses one SDK.
struct Service {
    world: World,
    key: VaultKey,
    client: Client,
}

async fn a_day(sdk: Sdk) {
    let world = World::on(LedgerKind::Sqlite).await;
    let more = json!({ "permissions": ["charges:write", "charges:read"], "headroom": "1.00" });
    let key = world.issue(10 * AMOUNT_MINOR, more).await;
    let client = Client::start(sdk);
    let mut service = Service { world, key, client };
    service.charges_once().await;
    service.captures().await;
    service.is_declined().await;
    service.meets_the_cap().await;
    service.reads_every_page().await;
    service.world.assert_balanced(&service.key).await;
}

impl Service {
    async fn call(&mut self, call: &str, more: Value) -> Record {
        let mut whole = json!({ "case": call, "call": call, "api_key": self.key.secret });
        let fields = whole.as_object_mut().unwrap();
        fields.extend(more.as_object().cloned().unwrap());
        let proxy = self.world.apps[0].proxy_addr();
        self.client.call(proxy, whole).await
    }

    async fn charge(&mut self, customer: &str, amount: i64) -> Record {
        let params = json!({ "amount": amount, "currency": "usd", "customer": customer,
            "description": "August & more", "metadata": { "run": "2026-08" } });
        self.call("charges.create", json!({ "params": params }))
            .await
    }

    /// The SDK makes a key for each call, so the user's second call comes under a fresh one.
    async fn charges_once(&mut self) {
        let made = self.charge("cus_1", AMOUNT_MINOR).await;
        let again = self.charge("cus_1", AMOUNT_MINOR).await;
        assert_eq!(made.id(), again.id());
        let [only] = self.world.made().try_into().unwrap();
        assert_eq!(only.id, made.id());
        let key = only.idempotency_key.unwrap();
        assert!(key.len() >= 32, "the SDK's own key is passed on: {key}");
        let read = json!({ "id": made.id() });
        let read = self.call("charges.retrieve", read).await;
        assert_eq!((read.id(), read.amount_captured), (made.id(), AMOUNT_MINOR));
    }

    async fn captures(&mut self) {
        let params = json!({ "amount": AMOUNT_MINOR, "currency": "usd", "customer": "cus_2", "capture": false });
        let wish = json!({ "params": params, "idempotency_key": "authorise-cus_2" });
        let authorised = self.call("charges.create", wish).await;
        assert_eq!(authorised.amount_captured, 0);
        let part = json!({ "id": authorised.id(), "params": { "amount": 9_000 } });
        for _ in 0..2 {
            let captured = self.call("charges.capture", part.clone()).await;
            assert_eq!(captured.id(), authorised.id());
            assert_eq!(captured.amount_captured, 9_000);
        }
    }

    /// The bank says no: what the SDK makes of it is what it makes of it at Stripe.
    async fn is_declined(&mut self) {
        let fault = Fault::new(FaultKind::Decline).method("POST").once();
        self.world.sandbox.add_fault(fault.customer("cus_3"));
        let declined = self.charge("cus_3", AMOUNT_MINOR).await;
        assert_eq!(declined.error_type.as_deref(), Some("card_error"));
        assert_eq!(declined.code.as_deref(), Some("card_declined"));
        assert_eq!((declined.status, declined.retries), (Some(402), 0));
        let class = declined.class.unwrap();
        let curls = declined.client == "curl" && class == "exit 22";
        assert!(curls || class.ends_with("CardError"), "{class}");
        // The customer has another card by now.
        self.charge("cus_3", AMOUNT_MINOR).await.id();
    }

    async fn meets_the_cap(&mut self) {
        let used = self.world.taken();
        let over = self.charge("cus_4", 10 * AMOUNT_MINOR - used + 1).await;
        assert_eq!(over.code.as_deref(), Some("spend_cap_reached"));
        assert_eq!((over.status, over.retries), (Some(402), 0));
        assert_eq!(over.error_type.as_deref(), Some("invalid_request_error"));
        let message = over.message.unwrap();
        assert!(message.contains("no card was declined"), "{message}");
        self.charge("cus_4", 10 * AMOUNT_MINOR - used).await.id();
    }

    /// Four charges and the declined one, in pages of three.
    async fn reads_every_page(&mut self) {
        let list = json!({ "params": { "limit": 3 } });
        let listed = self.call("charges.list", list).await;
        let ids: BTreeSet<_> = listed.ids.iter().cloned().collect();
        assert_eq!((listed.ids.len(), ids.len()), (5, 5), "{listed:?}");
        let made = self.world.made();
        assert!(made.iter().all(|made| ids.contains(&made.id)), "{made:?}");
        assert_eq!(listed.retries, 1, "two pages");
    }
}
