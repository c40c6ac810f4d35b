use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::*;

fn create(body: &str) -> Result<JudgedCharge, BadParameter> {
    judge_create(body.as_bytes(), &HeaderMap::new())
}

fn capture(body: &str) -> Result<JudgedCapture, BadParameter> {
    judge_capture(body.as_bytes(), &HeaderMap::new())
}

#[test]
fn a_charge_is_judged_whole() {
    let body = "customer=cus_1&expand[]=customer&expand[]=refunds&currency=USD&amount=9900&\
                capture=false&metadata[order]=7&description=";
    let judged = create(body).unwrap();
    assert_eq!(judged.money.amount.get(), 9_900);
    assert_eq!(judged.money.currency.as_str(), "usd");
    assert_eq!(judged.customer.as_deref(), Some("cus_1"));
    assert_eq!(
        judged.canonical_body,
        "amount=9900&capture=false&currency=usd&customer=cus_1&description=&\
         expand%5B0%5D=customer&expand%5B1%5D=refunds&metadata%5Border%5D=7"
    );
    assert_eq!(
        judged.expand_query,
        "expand%5B0%5D=customer&expand%5B1%5D=refunds"
    );
}

#[test]
fn spellings_of_one_request_have_one_body() {
    let one = create("amount=100&currency=usd&expand[]=customer").unwrap();
    let other = create("expand%5B0%5D=customer&currency=USD&amount=%3100").unwrap();
    assert_eq!(one, other);
    assert!(one.customer.is_none());
    for (plain, of_python) in [("true", "True"), ("false", "False")] {
        let judged = |capture| create(&format!("amount=1&currency=usd&capture={capture}")).unwrap();
        assert_eq!(judged(plain), judged(of_python));
    }
}

/// Parameters beside a good currency, the code, the parameter to blame.
const BAD: [(&str, &str, &str); 18] = [
    ("", "parameter_missing", "amount"),
    ("AMOUNT=5", "parameter_unknown", "AMOUNT"),
    ("amount=", "parameter_invalid_integer", "amount"),
    ("amount=+100", "parameter_invalid_integer", "amount"),
    ("amount=%2B100", "parameter_invalid_integer", "amount"),
    ("amount=1e3", "parameter_invalid_integer", "amount"),
    ("amount=0", "parameter_invalid_integer", "amount"),
    ("amount[]=100", "charge_invalid_parameter", "amount"),
    ("amount[0]=100", "charge_invalid_parameter", "amount"),
    ("amount%5B%5D=5", "charge_invalid_parameter", "amount"),
    ("amount=1&amount=2", "parameters_exclusive", "amount"),
    ("amount=1&customer=", "parameter_invalid_empty", "customer"),
    ("amount=1&customer=+cus_1", "invalid_characters", "customer"),
    ("amount=1&customer=a:b", "invalid_characters", "customer"),
    (
        "amount=1&customer[id]=c",
        "charge_invalid_parameter",
        "customer",
    ),
    ("amount=1&capture=", "charge_invalid_parameter", "capture"),
    (
        "amount=1&capture=FALSE",
        "charge_invalid_parameter",
        "capture",
    ),
    ("amount=1&key=pk_live_1", "parameter_unknown", "key"),
];

#[test]
fn charges_that_cannot_be_judged_are_refused() {
    for (body, code, param) in BAD {
        let error = create(&format!("{body}&currency=usd")).unwrap_err();
        let found = (error.code.as_str(), error.param.as_deref());
        assert_eq!(found, (code, Some(param)), "{body}");
        assert!(!error.message.is_empty());
    }
    for (currency, code) in [
        ("", "parameter_missing"),
        ("&currency=", "charge_invalid_parameter"),
        ("&currency[]=usd", "charge_invalid_parameter"),
        ("&currency=dollars", "charge_invalid_parameter"),
        ("&currency=usd&currency=eur", "parameters_exclusive"),
    ] {
        let error = create(&format!("amount=1{currency}")).unwrap_err();
        let found = (error.code.as_str(), error.param.as_deref());
        assert_eq!(found, (code, Some("currency")), "{currency}");
    }
}

#[test]
fn a_name_that_is_not_listed_could_raise_the_amount_and_is_refused() {
    for name in [
        "payment_method_options[card][request_overcapture]=if_available",
        "amount_details[tip][amount]=5",
        "amount_to_capture=5",
        "automatic_tax[enabled]=true",
        "tip=5",
        "Amount=5",
    ] {
        let error = create(&format!("amount=1&currency=usd&{name}")).unwrap_err();
        assert_eq!(error.code.as_str(), "parameter_unknown", "{name}");
        assert!(capture(name).is_err(), "{name}");
    }
}

#[test]
fn what_only_divides_the_amount_is_forwarded() {
    for name in [
        "application_fee_amount=5",
        "destination=acct_1",
        "on_behalf_of=acct_1",
        "source=tok_visa",
        "statement_descriptor_suffix=x",
        "transfer_data%5Bdestination%5D=acct_1",
        "transfer_group=g",
    ] {
        let judged = create(&format!("amount=1&currency=usd&{name}")).unwrap();
        assert!(judged.canonical_body.contains(name), "{name}");
    }
}

#[test]
fn a_capture_is_judged_whole() {
    let nine = AmountMinor::new(900).unwrap();
    let all = capture("").unwrap();
    assert_eq!(all.amount, None);
    assert_eq!(
        all.canonical_body(nine),
        "amount=900",
        "it names its amount"
    );
    let part = capture("expand[]=customer&amount=500").unwrap();
    assert_eq!(part.amount, AmountMinor::new(500));
    let five = part.amount.unwrap();
    assert_eq!(
        part.canonical_body(five),
        "amount=500&expand%5B0%5D=customer"
    );
    assert_eq!(part.expand_query, "expand%5B0%5D=customer");
    for body in [
        "amount=",
        "amount=0",
        "amount=1.5",
        "amount[]=1",
        "amount=1&amount=2",
        "amount_to_capture=5",
    ] {
        assert!(capture(body).is_err(), "{body}");
    }
}

#[test]
fn a_body_that_is_not_a_form_is_refused() {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let error = judge_create(br#"{"amount":1,"currency":"usd"}"#, &headers).unwrap_err();
    assert_eq!(error.param.as_deref(), Some("content-type"));
    assert!(error.message.contains("application/x-www-form-urlencoded"));
    assert!(judge_capture(b"", &headers).is_err());
}
