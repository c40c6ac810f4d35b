use super::*;

const NOT_PERMITTED: Refusal = Refusal::OperationNotPermitted { missing: None };

fn read(permission: Permission) -> Classified {
    Classified::Read { permission }
}

const READS: [(&str, Permission); 12] = [
    ("/v1/charges", Permission::ChargesRead),
    ("/v1/charges/ch_1", Permission::ChargesRead),
    ("/v1/customers", Permission::CustomersRead),
    ("/v1/customers/cus_1", Permission::CustomersRead),
    (
        "/v1/customers/c/payment_methods",
        Permission::PaymentMethodsRead,
    ),
    (
        "/v1/customers/c/payment_methods/pm_1",
        Permission::PaymentMethodsRead,
    ),
    ("/v1/payment_methods", Permission::PaymentMethodsRead),
    ("/v1/payment_methods/pm_1", Permission::PaymentMethodsRead),
    (
        "/v1/balance_transactions",
        Permission::BalanceTransactionsRead,
    ),
    (
        "/v1/balance_transactions/txn_1",
        Permission::BalanceTransactionsRead,
    ),
    ("/v1/events", Permission::EventsRead),
    ("/v1/events/evt_1", Permission::EventsRead),
];

#[test]
fn what_is_listed() {
    for (path, permission) in READS {
        assert_eq!(
            classify(&Method::GET, path, None),
            Ok(read(permission)),
            "{path}"
        );
    }
    let charge = "ch_1".to_owned();
    for (path, call) in [
        ("/v1/charges", MoneyCall::ChargesCreate),
        (
            "/v1/charges/ch_1/capture",
            MoneyCall::ChargesCapture { charge },
        ),
    ] {
        assert_eq!(call.path(), path);
        assert_eq!(call.permission(), Permission::ChargesWrite);
        let expected = Ok(Classified::Money(call));
        assert_eq!(classify(&Method::POST, path, None), expected, "{path}");
    }
}

#[test]
fn everything_else_is_refused() {
    for path in [
        "",
        "/",
        "*",
        "/v1",
        "/v1/",
        "/v1/charges/",
        "//v1/charges",
        "/v1//charges",
        "/v1/charges//capture",
        "/v1/./charges",
        "/v1/../v1/charges",
        "/v1/charges/..",
        "/v1/charges/ch_1/../ch_2/capture",
        "/v1/%63harges",
        "/v1/charges%2Fch_1",
        "/v1/charges/ch%5F1/capture",
        "/v1/charges/ch_1%2e",
        "/v1\\charges",
        "/v1/charges\\ch_1",
        "/v1/charges.",
        "/v1/charges.json",
        "/v1/charges/ch_1.",
        "/V1/charges",
        "/v1/Charges",
        "/v1/charges;a=1",
        "/v1/charges ",
        "/v2/charges",
        "/v1/charges/ch_1/capture/",
        "/v1/charges/ch_1/Capture",
        "/v1/charges/ch_1/refund",
        "/v1/charges/ch_1/refunds",
        "/v1/charges/ch_1/dispute",
        "/v1/payment_intents",
        "/v1/payment_intents/pi_1/confirm",
        "/v1/refunds",
        "/v1/customers/cus_1/cards",
        "/v1/customers/cus_1/subscriptions",
        "/v1/tokens",
        "/v1/ephemeral_keys",
        "/v1/account",
        "/v1/test_helpers/test_clocks",
        "/oauth/token",
        "/v1/unheard_of",
        "https://api.stripe.com/v1/charges",
        "v1/charges",
    ] {
        for method in [Method::GET, Method::POST] {
            assert_eq!(
                classify(&method, path, None),
                Err(NOT_PERMITTED),
                "{method} {path}"
            );
        }
    }
}

#[test]
fn only_get_and_post_are_known() {
    for method in [
        "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "QUERY",
    ] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        for path in [
            "/v1/charges",
            "/v1/charges/ch_1",
            "/v1/charges/ch_1/capture",
        ] {
            assert_eq!(
                classify(&method, path, None),
                Err(NOT_PERMITTED),
                "{method}"
            );
        }
    }
    for path in [
        "/v1/charges/ch_1",
        "/v1/customers",
        "/v1/events",
        "/v1/payment_methods",
    ] {
        assert_eq!(
            classify(&Method::POST, path, None),
            Err(NOT_PERMITTED),
            "{path}"
        );
    }
    let capture = "/v1/charges/ch_1/capture";
    assert_eq!(classify(&Method::GET, capture, None), Err(NOT_PERMITTED));
}

#[test]
fn ids_are_bounded() {
    let path = |length: usize| format!("/v1/charges/{}", "a".repeat(length));
    assert!(classify(&Method::GET, &path(255), None).is_ok());
    assert_eq!(classify(&Method::GET, &path(256), None), Err(NOT_PERMITTED));
}

#[test]
fn a_post_takes_no_query() {
    for query in ["", "amount=999", "expand[]=customer", "_method=GET"] {
        let refusal = classify(&Method::POST, "/v1/charges", Some(query)).unwrap_err();
        assert!(matches!(refusal, Refusal::BadParameter(_)), "{query:?}");
    }
}

#[test]
fn a_reads_query_is_strict_too() {
    let get = |query| classify(&Method::GET, "/v1/charges", Some(query));
    for query in [
        "",
        "limit=3",
        "expand[]=data.customer",
        "created[gte]=1&customer=cus_1",
    ] {
        assert_eq!(get(query), Ok(read(Permission::ChargesRead)), "{query}");
    }
    for query in [
        "_method=POST",
        "%5Fmethod=POST",
        "[_method]=POST",
        "_method]=POST",
        "key=pk_live_1",
        "api_key=sk_1",
        "access_token=x",
        "callback=steal",
        "limit=1;_method=POST",
        "limit=%00",
        "limit=1&limit=2",
    ] {
        let refusal = get(query).unwrap_err();
        assert!(matches!(refusal, Refusal::BadParameter(_)), "{query}");
    }
}
