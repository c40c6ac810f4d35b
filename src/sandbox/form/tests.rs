use super::*;

fn text(value: &str) -> Param {
    Param::Text(value.to_owned())
}

fn map(pairs: &[(&str, Param)]) -> Param {
    Param::Map(
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    )
}

/// The rows of contract §5.1, with what Rack 2.2.22 answered.
#[test]
fn reads_what_rack_reads() {
    let rows = [
        ("amount=100&amount=999", "amount", text("999")),
        ("amount[]=100", "amount", Param::List(vec![text("100")])),
        ("amount%5B%5D=5", "amount", Param::List(vec![text("5")])),
        ("amount[0]=100", "amount", map(&[("0", text("100"))])),
        ("amount[]=100&amount=999", "amount", text("999")),
        ("[amount]=7", "amount", text("7")),
        ("amount]=3", "amount", text("3")),
        ("x[amount]]=2", "x", map(&[("amount", text("2"))])),
        ("amount=1;amount=2", "amount", text("2")),
        ("AMOUNT=5", "AMOUNT", text("5")),
        ("amount", "amount", Param::Nil),
        ("amount=", "amount", text("")),
        ("amount=+100", "amount", text(" 100")),
        (
            "a[b][c]=1&a[b][d]=2",
            "a",
            map(&[("b", map(&[("c", text("1")), ("d", text("2"))]))]),
        ),
        (
            "i[][p]=1&i[][q]=2&i[][p]=3",
            "i",
            Param::List(vec![
                map(&[("p", text("1")), ("q", text("2"))]),
                map(&[("p", text("3"))]),
            ]),
        ),
        ("i[][p][x]=1&i[][p][y]=2", "i", {
            Param::List(vec![map(&[(
                "p",
                map(&[("x", text("1")), ("y", text("2"))]),
            )])])
        }),
        ("metadata[k]=a%26b", "metadata", map(&[("k", text("a&b"))])),
    ];
    for (input, name, expected) in rows {
        let tree = parse(input).unwrap_or_else(|error| panic!("{input}: {error:?}"));
        assert_eq!(tree.get(name), Some(&expected), "{input}");
        assert_eq!(tree.len(), 1, "{input}");
    }
}

#[test]
fn refuses_what_rack_refuses() {
    for input in [
        "amount=999&amount[]=100",
        "a=2&a[b]=1",
        "a=%zz",
        "a=%",
        "a=%+1",
        "a=%ff",
    ] {
        assert!(parse(input).is_err(), "{input}");
    }
    let deep = format!("a{}=1", "[b]".repeat(DEPTH_MAX + 1));
    assert!(parse(&deep).is_err());
}

#[test]
fn the_body_wins_over_the_query() {
    let tree = merge("amount=999&currency=usd", "amount=100").unwrap();
    assert_eq!(tree["amount"], text("100"));
    assert_eq!(tree["currency"], text("usd"));
}

#[test]
fn canonical_text_ignores_order_and_nothing_else() {
    let canon = |input: &str| {
        let mut out = String::new();
        canonical(&parse(input).unwrap(), &mut out);
        out
    };
    assert_eq!(canon("a=1&b=2"), canon("b=2&a=1"));
    assert_ne!(canon("a=1&b=2"), canon("a=1&b=3"));
    assert_ne!(canon("a=1"), canon("a[]=1"));
    assert_ne!(canon("a"), canon("a="));
}
