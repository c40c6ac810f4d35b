//! A cap holds to the last minor unit, however many ask at once.

use spendcap::ledger::command::{Control, Verdict};

use super::on_both;
use super::place::Place;
use super::scene::{
    amount, ask, check_sums, control, currency, issue, paid, refused, reserve, settle, used,
    vault_key,
};

on_both!(
    a_cap_admits_exactly_what_fits,
    currencies_do_not_share_a_cap,
    a_raised_cap_lets_the_same_key_pass,
    a_lowered_cap_keeps_its_usage,
);

const ASKING: i64 = 200;

async fn a_cap_admits_exactly_what_fits(place: Place) {
    let opened = place.open().await;
    // Minor units whose cap fits a whole number of charges, all but one unit, and one unit more.
    for (code, each, max, fit) in [
        ("usd", 9_999, 999_900, 100),
        ("jpy", 1_001, 100_099, 99),
        ("kwd", 1_234_567, 123_456_701, 100),
    ] {
        let key = vault_key(&[(code, max)]);
        issue(&opened.ledger, &key).await;
        let asking = (0..ASKING).map(|number| {
            let ledger = opened.ledger.clone();
            let ask = ask(
                &key,
                &format!("cus_{code}_{number}"),
                each,
                &format!("{code}{number}"),
            );
            tokio::spawn(async move { ledger.reserve(ask).await.unwrap() })
        });
        let mut admitted = 0;
        for verdict in asking.collect::<Vec<_>>() {
            match verdict.await.unwrap() {
                Verdict::Send(_) => admitted += 1,
                other => assert_eq!(refused(other), "SpendCapReached"),
            }
        }
        assert_eq!(admitted, fit, "{code}");
        assert_eq!(used(&opened.ledger, &key).await, (fit * each, 0));
        let rest = max - fit * each;
        if rest > 0 {
            let last = ask(&key, "cus_last", rest, &format!("{code}last"));
            assert!(reserve(&opened.ledger, last).await.remaining().is_zero());
        }
        let one = ask(&key, "cus_one", 1, &format!("{code}one"));
        let over = opened.ledger.reserve(one).await.unwrap();
        assert_eq!(refused(over), "SpendCapReached");
    }
    check_sums(&opened.ledger).await;
    opened.close().await;
}

async fn currencies_do_not_share_a_cap(place: Place) {
    let opened = place.open().await;
    let key = vault_key(&[("eur", 100), ("usd", 50)]);
    issue(&opened.ledger, &key).await;
    reserve(&opened.ledger, ask(&key, "cus_1", 100, "a")).await;
    let mut dollars = ask(&key, "cus_1", 50, "b");
    dollars.money.currency = currency("usd");
    reserve(&opened.ledger, dollars).await;
    let mut pounds = ask(&key, "cus_2", 1, "c");
    pounds.money.currency = currency("gbp");
    let verdict = opened.ledger.reserve(pounds).await.unwrap();
    assert_eq!(refused(verdict), "CurrencyNotAllowed");
    check_sums(&opened.ledger).await;
    opened.close().await;
}

async fn a_raised_cap_lets_the_same_key_pass(place: Place) {
    let opened = place.open().await;
    let key = vault_key(&[("usd", 100)]);
    issue(&opened.ledger, &key).await;
    let over = opened
        .ledger
        .reserve(ask(&key, "cus_1", 101, "a"))
        .await
        .unwrap();
    assert_eq!(refused(over), "SpendCapReached");
    control(&opened.ledger, expect(&key, 101)).await.unwrap();
    reserve(&opened.ledger, ask(&key, "cus_1", 101, "a")).await;
    opened.close().await;
}

async fn a_lowered_cap_keeps_its_usage(place: Place) {
    let opened = place.open().await;
    let key = vault_key(&[("usd", 100)]);
    issue(&opened.ledger, &key).await;
    let ticket = reserve(&opened.ledger, ask(&key, "cus_1", 80, "a")).await;
    control(&opened.ledger, expect(&key, 50)).await.unwrap();
    let over = opened
        .ledger
        .reserve(ask(&key, "cus_2", 1, "b"))
        .await
        .unwrap();
    assert_eq!(refused(over), "SpendCapReached");
    settle(&opened.ledger, &ticket, paid("ch_1", 80)).await;
    assert_eq!(used(&opened.ledger, &key).await, (0, 80));
    check_sums(&opened.ledger).await;
    opened.close().await;
}

fn expect(key: &spendcap::domain::vault_key::VaultKey, total: i64) -> Control {
    Control::UpdateKey {
        id: key.id.clone(),
        expected_totals: vec![(currency("usd"), amount(total))],
        headroom: None,
        resume: false,
        reason: "INC-1".to_owned(),
    }
}
