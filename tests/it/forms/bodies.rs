//! Every row of contract §5.1. The sandbox merges parameters as Rack does, so a body that two readers
//! could understand differently would show there as other money than was judged.

use serde_json::json;

use super::Scene;

/// Body, code, and the parameter that is named.
const REFUSED: &[(&str, &str, Option<&str>)] = &[
    // Contract §5.1, row by row.
    (
        "amount=100&amount=999&currency=usd",
        "parameters_exclusive",
        Some("amount"),
    ),
    (
        "amount=100&currency=usd&currency=eur",
        "parameters_exclusive",
        Some("currency"),
    ),
    (
        "amount[]=100&currency=usd",
        "charge_invalid_parameter",
        Some("amount"),
    ),
    (
        "amount[0]=100&currency=usd",
        "charge_invalid_parameter",
        Some("amount"),
    ),
    (
        "amount[]=100&amount=999&currency=usd",
        "parameters_exclusive",
        Some("amount"),
    ),
    (
        "amount=999&amount[]=100&currency=usd",
        "parameters_exclusive",
        Some("amount[]"),
    ),
    (
        "amount=2&amount[b]=1&currency=usd",
        "parameters_exclusive",
        Some("amount[b]"),
    ),
    (
        "amount=100&[amount]=7&currency=usd",
        "parameter_unknown",
        Some("[amount]"),
    ),
    (
        "amount=100&amount]=3&currency=usd",
        "parameter_unknown",
        Some("amount]"),
    ),
    (
        "amount=100&currency=usd&x[amount]]=2",
        "parameter_unknown",
        Some("x[amount]]"),
    ),
    ("amount=1;amount=2&currency=usd", "invalid_characters", None),
    (
        "amount=100&amount%5B%5D=5&currency=usd",
        "parameters_exclusive",
        Some("amount[]"),
    ),
    (
        "amount=100&%61mount=999&currency=usd",
        "parameters_exclusive",
        Some("amount"),
    ),
    ("AMOUNT=5&currency=usd", "parameter_unknown", Some("AMOUNT")),
    (
        "amount&currency=usd",
        "parameter_invalid_empty",
        Some("amount"),
    ),
    (
        "amount=&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=+100&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "{\"amount\":100,\"currency\":\"usd\"}",
        "parameter_invalid_empty",
        Some("{\"amount\":100,\"currency\":\"usd\"}"),
    ),
    (
        "amount=100&currency=usd&description=%ff",
        "invalid_characters",
        None,
    ),
    (
        "amount=100&currency=usd&description=%00",
        "invalid_characters",
        None,
    ),
    (
        "amount=100&currency=usd&description=100%",
        "invalid_characters",
        None,
    ),
    (
        "amount=100&currency=usd&_method=delete",
        "parameter_unknown",
        Some("_method"),
    ),
    (
        "amount=100&currency=usd&callback=f",
        "parameter_unknown",
        Some("callback"),
    ),
    (
        "amount=100&currency=usd&key=sk_test_1",
        "parameter_unknown",
        Some("key"),
    ),
    // Contract §5.2 and §5.3.
    (
        "amount=%20100&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=%2B100&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=0100&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=1_000&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=0x10&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=1e3&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=1998.9999999999998&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=0&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=-100&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=100000000000000&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    (
        "amount=18446744073709551716&currency=usd",
        "parameter_invalid_integer",
        Some("amount"),
    ),
    // What else names the slot, or the money.
    ("currency=usd", "parameter_missing", Some("amount")),
    ("amount=100", "parameter_missing", Some("currency")),
    (
        "amount=100&currency=usd&customer=",
        "parameter_invalid_empty",
        Some("customer"),
    ),
    (
        "amount=100&currency=usd&customer[]=cus_1",
        "charge_invalid_parameter",
        Some("customer"),
    ),
    (
        "amount=100&currency=usd&customer=cus_1%20",
        "invalid_characters",
        Some("customer"),
    ),
    (
        "amount=100&currency=usd&capture=maybe",
        "charge_invalid_parameter",
        Some("capture"),
    ),
    (
        "amount=100&currency=usd&payment_method_options[card][request_overcapture]=if_available",
        "parameter_unknown",
        Some("payment_method_options"),
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_read_in_two_ways_is_refused_and_never_sent() {
    let scene = Scene::new().await;
    for (body, code, param) in REFUSED {
        let refused = scene.post(body).await.expect(400);
        assert_eq!(refused.code(), *code, "{body}");
        let error = &refused.json()["error"];
        assert_eq!(error["type"], "invalid_request_error", "{body}");
        assert_eq!(error["param"].as_str(), *param, "{body}");
        let message = error["message"].as_str().unwrap();
        assert!(message.ends_with('.'), "{body}: {message}");
        assert_eq!(refused.header("stripe-should-retry"), "false");
        scene.assert_untouched(body).await;
    }
}

/// Body as the client writes it, and as Stripe is given it, with brackets shown plainly.
const ACCEPTED: &[(&str, &str)] = &[
    (
        "amount=100&currency=usd&customer=cus_1",
        "amount=100&currency=usd&customer=cus_1",
    ),
    (
        "customer=cus_1&currency=usd&&amount=100&",
        "amount=100&currency=usd&customer=cus_1",
    ),
    (
        "%61mount=1%30%30&currency=USD&customer=cus%5F1",
        "amount=100&currency=usd&customer=cus_1",
    ),
    (
        "amount=100&currency=usd&customer=cus_1&metadata[order+id]=a%26amount%3D999&metadata[amount]=7",
        "amount=100&currency=usd&customer=cus_1&metadata[amount]=7&metadata[order+id]=a%26amount%3D999",
    ),
    (
        "amount=100&currency=usd&customer=cus_1&expand%5B%5D=customer&description=Caf%C3%A9+%E2%82%AC",
        "amount=100&currency=usd&customer=cus_1&description=Caf%C3%A9+%E2%82%AC&expand[0]=customer",
    ),
    (
        "amount=100&currency=usd&customer=cus_1&description=amount%3D999%3B%5Bamount%5D",
        "amount=100&currency=usd&customer=cus_1&description=amount%3D999%3B%5Bamount%5D",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn stripe_is_given_what_was_judged_written_anew() {
    for (body, given) in ACCEPTED {
        let scene = Scene::new().await;
        let made = scene.post(body).await.expect(200);
        assert_eq!(made.header("spendcap-remaining"), "9900", "{body}");
        let seen = scene.world.sandbox.requests();
        let seen = seen.iter().find(|one| one.method == "POST").unwrap();
        let given = given.replace('[', "%5B").replace(']', "%5D");
        assert_eq!(seen.body, given);
        let [charge] = scene.world.made().try_into().unwrap();
        assert_eq!((charge.amount, charge.currency.as_str()), (100, "usd"));
        assert_eq!(charge.customer.as_deref(), Some("cus_1"));
    }
}

/// What a name that nobody knows does to the amount is not known either: it never reaches Stripe.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_parameter_is_refused_before_anything_is_sent() {
    let scene = Scene::new().await;
    for body in [
        "amount=100&AMOUNT=5&currency=usd",
        "amount=100&currency=usd&amout=7",
    ] {
        let refused = scene.post(body).await.expect(400);
        assert_eq!(refused.code(), "parameter_unknown");
        let cap = scene.world.cap(&scene.key, "usd").await;
        assert_eq!((&cap["reserved"], &cap["settled"]), (&json!(0), &json!(0)));
    }
    let seen = scene.world.sandbox.requests();
    assert!(seen.iter().all(|one| one.method == "GET"), "{seen:?}");
}
