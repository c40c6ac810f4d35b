mod rack;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use rack::Rack;

fn canonical(body: &str) -> Result<String, FormError> {
    FormTree::parse(body.as_bytes()).map(|tree| tree.serialise())
}

/// Body and the canonical one, with brackets shown plainly.
#[test]
fn what_is_accepted_has_one_spelling() {
    for (body, expected) in [
        ("", ""),
        ("&&", ""),
        ("amount=100&currency=usd", "amount=100&currency=usd"),
        ("currency=usd&amount=100", "amount=100&currency=usd"),
        ("amount=100&", "amount=100"),
        ("%61mount=1%30%30", "amount=100"),
        ("description=a+b%20c", "description=a+b+c"),
        ("description=1%2B1%3D2%26%3B", "description=1%2B1%3D2%26%3B"),
        ("description=a=b", "description=a%3Db"),
        ("description=", "description="),
        ("description=%2561", "description=%2561"),
        ("description=Café", "description=Caf%C3%A9"),
        ("AMOUNT=5&amount=6", "AMOUNT=5&amount=6"),
        ("expand[]=a&expand[]=b", "expand[0]=a&expand[1]=b"),
        ("expand%5B%5D=b&expand%5b%5d=a", "expand[0]=b&expand[1]=a"),
        ("expand[0]=a&expand[1]=b", "expand[0]=a&expand[1]=b"),
        ("items[][price]=p", "items[0][price]=p"),
        (
            "i[][a]=1&i[][b]=2&i[][a]=3",
            "i[0][a]=1&i[0][b]=2&i[1][a]=3",
        ),
        (
            "i[0][a]=1&i[1][a]=3&i[0][b]=2",
            "i[0][a]=1&i[0][b]=2&i[1][a]=3",
        ),
        (
            "i[][a]=1&i[][t][]=x&i[][t][]=y&i[][a]=2",
            "i[0][a]=1&i[0][t][0]=x&i[0][t][1]=y&i[1][a]=2",
        ),
        (
            "i[][p][a]=1&i[][p][b]=2&i[][p][a]=3",
            "i[0][p][a]=1&i[0][p][b]=2&i[1][p][a]=3",
        ),
        ("metadata[b]=2&metadata[a]=1", "metadata[a]=1&metadata[b]=2"),
        (
            "metadata[0]=x&metadata[10]=y",
            "metadata[0]=x&metadata[10]=y",
        ),
        (
            "metadata[order+id/é:;]=x".replace(';', "%3B").as_str(),
            "metadata[order+id%2F%C3%A9%3A%3B]=x",
        ),
        ("a[b][c-d.e_f]=1", "a[b][c-d.e_f]=1"),
    ] {
        let spelled = expected.replace('[', "%5B").replace(']', "%5D");
        assert_eq!(canonical(body), Ok(spelled), "{body}");
    }
}

type Make = fn(String) -> FormError;

#[test]
fn what_two_readers_could_merge_differently_is_refused() {
    let cases: [(&str, Make, &str); 34] = [
        ("amount=100&amount=999", FormError::Duplicate, "amount"),
        ("amount=100&%61mount=100", FormError::Duplicate, "amount"),
        ("amount[]=100&amount=999", FormError::Mixed, "amount"),
        ("amount=999&amount[]=100", FormError::Mixed, "amount[]"),
        ("a=2&a[b]=1", FormError::Mixed, "a[b]"),
        ("a[b]=1&a=2", FormError::Mixed, "a"),
        ("a[b]=1&a[]=2", FormError::Mixed, "a[]"),
        ("a[b]=1&a[0]=2", FormError::Mixed, "a[0]"),
        ("a[0]=1&a[]=2", FormError::Mixed, "a[]"),
        ("a[]=1&a[0]=2", FormError::Mixed, "a[0]"),
        ("a[]=1&a[][b]=2", FormError::Mixed, "a[][b]"),
        ("a[][b]=2&a[]=1", FormError::Mixed, "a[]"),
        ("a[b]=1&a[b]=2", FormError::Duplicate, "a[b]"),
        ("a[0]=1&a[0]=2", FormError::Duplicate, "a[0]"),
        ("a[1]=1", FormError::Index, "a[1]"),
        ("a[1]=1&a[0]=2", FormError::Index, "a[1]"),
        ("a[0]=1&a[2]=2", FormError::Index, "a[2]"),
        ("a[00]=1", FormError::Name, "a[00]"),
        (
            "a[99999999999999999999]=1",
            FormError::Name,
            "a[99999999999999999999]",
        ),
        ("[amount]=7", FormError::Name, "[amount]"),
        ("amount]=3", FormError::Name, "amount]"),
        ("amount[=3", FormError::Name, "amount["),
        ("x[amount]]=2", FormError::Name, "x[amount]]"),
        ("x[[amount]]=2", FormError::Name, "x[[amount]]"),
        ("x[a]b=2", FormError::Name, "x[a]b"),
        ("=5", FormError::Name, ""),
        ("+amount=5", FormError::Name, " amount"),
        ("amount%20=5", FormError::Name, "amount "),
        ("metadata[]=5", FormError::Name, "metadata[]"),
        ("amount", FormError::NoValue, "amount"),
        ("a[][]=1", FormError::Grouping, "a[][]"),
        ("a[][b][][c]=1", FormError::Grouping, "a[][b][][c]"),
        ("i[][a]=1&i[][b]=2&i[][b]=3", FormError::Grouping, "i[][b]"),
        ("i[][t][]=1&i[][t][]=2", FormError::Grouping, "i[][t][]"),
    ];
    for (body, error, name) in cases {
        assert_eq!(canonical(body), Err(error(name.to_owned())), "{body}");
    }
}

#[test]
fn bytes_that_are_not_plain_text_are_refused() {
    for (body, error) in [
        (&b"amount=1;amount=2"[..], FormError::Semicolon),
        (b"amount=%", FormError::Escape),
        (b"amount=%1", FormError::Escape),
        (b"amount=%zz", FormError::Escape),
        (b"amount=%+1", FormError::Escape),
        (b"am%ount=1", FormError::Escape),
        (b"description=%FF", FormError::NotUtf8),
        (b"description=\xff", FormError::NotUtf8),
        (b"description=%C3", FormError::NotUtf8),
        (b"%C0%AEa=1", FormError::NotUtf8),
        (b"description=a%00b", FormError::Nul),
        (b"description=a\0b", FormError::Nul),
        (b"amount%00=1", FormError::Nul),
    ] {
        assert_eq!(FormTree::parse(body), Err(error), "{body:?}");
    }
}

#[test]
fn names_that_open_another_door_are_refused() {
    for name in ["key", "api_key", "access_token", "_method", "callback"] {
        for body in [
            format!("{name}=x"),
            format!("{name}[]=x"),
            format!("amount=1&{name}="),
        ] {
            assert_eq!(
                canonical(&body),
                Err(FormError::Refused(name.to_owned())),
                "{body}"
            );
        }
        assert!(canonical(&format!("metadata[{name}]=x")).is_ok());
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let many = |count: usize| vec!["a[]=1"; count].join("&");
    assert!(canonical(&many(PARAMETERS_MAX)).is_ok());
    assert_eq!(
        canonical(&many(PARAMETERS_MAX + 1)),
        Err(FormError::TooMany)
    );
    let deep = |depth: usize| format!("a{}", "[b]".repeat(depth - 1));
    assert!(canonical(&format!("{}=1", deep(DEPTH_MAX))).is_ok());
    let name = deep(DEPTH_MAX + 1);
    assert_eq!(
        canonical(&format!("{name}=1")),
        Err(FormError::TooDeep(name))
    );
}

#[test]
fn an_error_names_the_parameter_and_stays_short() {
    let long = format!("{}\n]", "x".repeat(5_000));
    let error = FormTree::parse(format!("{long}=1").as_bytes()).unwrap_err();
    let bad = BadParameter::from(error);
    assert_eq!(bad.code.as_str(), "parameter_unknown");
    assert!(bad.message.len() < 500 && bad.param.unwrap().len() < 500);
    let bad = BadParameter::from(FormError::Duplicate("amount".to_owned()));
    assert_eq!(bad.code.as_str(), "parameters_exclusive");
    assert_eq!(bad.param.as_deref(), Some("amount"));
    assert_eq!(bad.message, "Parameter sent more than once: amount.");
}

fn to_rack(value: &FormValue) -> Rack {
    match value {
        FormValue::Scalar(text) => Rack::Text(text.clone()),
        FormValue::Map(map) => {
            let entries = map.iter();
            Rack::Hash(
                entries
                    .map(|(key, value)| (key.clone(), to_rack(value)))
                    .collect(),
            )
        }
        // Indices are keys to Rack.
        FormValue::List(items) => {
            let entries = items.iter().enumerate();
            Rack::Hash(
                entries
                    .map(|(i, value)| (i.to_string(), to_rack(value)))
                    .collect(),
            )
        }
    }
}

fn text_of(params: &BTreeMap<String, Rack>, name: &str) -> Option<String> {
    match params.get(name) {
        Some(Rack::Text(text)) => Some(text.clone()),
        Some(other) => Some(format!("{other:?}")),
        None => None,
    }
}

fn name() -> impl Strategy<Value = String> {
    "[A-Za-z_.-][A-Za-z0-9_.-]{0,5}".prop_filter("metadata has its own keys", |name| {
        name != "metadata" && !REFUSED.contains(&name.as_str())
    })
}

fn value() -> impl Strategy<Value = FormValue> {
    let leaf = "\\PC{0,6}|[&=;%+\\[\\] ]{0,4}".prop_map(FormValue::Scalar);
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map(name(), inner.clone(), 1..4).prop_map(FormValue::Map),
            prop::collection::vec(inner, 1..4).prop_map(FormValue::List),
        ]
    })
}

fn tree() -> impl Strategy<Value = FormTree> {
    let metadata = prop::collection::btree_map(
        "[^\\[\\]\\x00]{1,8}",
        "[^\\x00]{0,8}".prop_map(FormValue::Scalar),
        1..4,
    );
    let fields = prop::collection::btree_map(name(), value(), 0..6);
    (fields, prop::option::of(metadata)).prop_map(|(mut fields, metadata)| {
        if let Some(metadata) = metadata {
            fields.insert("metadata".to_owned(), FormValue::Map(metadata));
        }
        FormTree { fields }
    })
}

/// Bodies near the edge of the grammar: few names, so that they meet; mostly plain, so that many are
/// accepted; now and then a trick.
fn tricky_body() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        12 => "(amount|customer|a)",
        1 => "[\\[\\] +a.%_]{0,3}",
    ];
    let step = prop_oneof![8 => "\\[[01ab]?\\]", 1 => "[\\[\\]]"];
    let steps = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(step, 1..3)];
    let value = prop_oneof![12 => "[0-9]{0,2}", 1 => "[0-9a%;=+]{0,3}"];
    let joint = prop_oneof![12 => Just("&"), 1 => Just(";"), 1 => Just("& ")];
    let pair = (name, steps, value, joint)
        .prop_map(|(name, steps, value, joint)| format!("{name}{}={value}{joint}", steps.concat()));
    prop::collection::vec(pair, 0..4).prop_map(|pairs| pairs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn trees_round_trip(tree in tree()) {
        let body = tree.serialise();
        prop_assert_eq!(FormTree::parse(body.as_bytes()), Ok(tree));
    }

    #[test]
    fn the_parser_never_panics_and_is_canonical(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(tree) = FormTree::parse(&bytes) {
            let body = tree.serialise();
            prop_assert_eq!(FormTree::parse(body.as_bytes()), Ok(tree));
        }
    }

    /// Whatever is accepted, Rack reads our spelling as the very tree that was judged, and the
    /// client's spelling as the same scalars.
    #[test]
    fn rack_sees_what_was_judged(body in tricky_body()) {
        if let Ok(tree) = FormTree::parse(body.as_bytes()) {
            let again = tree.serialise();
            let ours = rack::parse(&again).unwrap();
            let judged = tree.fields.iter();
            let judged: BTreeMap<_, _> = judged.map(|(k, v)| (k.clone(), to_rack(v))).collect();
            prop_assert_eq!(&ours, &judged);
            let theirs = rack::parse(&body).unwrap();
            for name in ["amount", "currency", "customer"] {
                if let Some(FormValue::Scalar(text)) = tree.get(name) {
                    prop_assert_eq!(text_of(&theirs, name), Some(text.clone()));
                }
                prop_assert_eq!(tree.get(name).is_some(), theirs.contains_key(name));
            }
        }
    }

    /// The items of `items[][…]` are the ones Rack makes.
    #[test]
    fn unindexed_items_group_as_rack_groups_them(
        keys in prop::collection::vec("(a|b|c\\[d\\]|c\\[e\\])", 1..8),
    ) {
        let pairs = keys.iter().enumerate().map(|(n, key)| {
            let key = if key.starts_with('c') { format!("[{}", key.replacen('[', "][", 1)) } else { format!("[{key}]") };
            format!("items[]{key}={n}")
        });
        let body = pairs.collect::<Vec<_>>().join("&");
        if let Ok(tree) = FormTree::parse(body.as_bytes()) {
            let Some(FormValue::List(ours)) = tree.get("items") else { panic!("a list") };
            let theirs = rack::parse(&body).unwrap();
            let Some(Rack::Array(theirs)) = theirs.get("items") else { panic!("an array") };
            let ours: Vec<Rack> = ours.iter().map(to_rack).collect();
            prop_assert_eq!(&ours, theirs);
        }
    }
}

#[test]
fn the_model_merges_as_rack_does() {
    let text = |body: &str, name: &str| rack::parse(body).map(|params| text_of(&params, name));
    let some = |text: &str| Some(Some(text.to_owned()));
    assert_eq!(text("amount=100&amount=999", "amount"), some("999"));
    assert_eq!(text("amount[]=100&amount=999", "amount"), some("999"));
    assert_eq!(text("amount=999&amount[]=100", "amount"), None);
    assert_eq!(text("a=2&a[b]=1", "a"), None);
    assert_eq!(text("[amount]=7", "amount"), some("7"));
    assert_eq!(text("amount]=3", "amount"), some("3"));
    assert_eq!(text("amount=1;amount=2", "amount"), some("2"));
    assert_eq!(text("amount=+100", "amount"), some(" 100"));
    assert_eq!(
        text("x[amount]]=2", "x"),
        some(r#"Hash({"amount": Text("2")})"#)
    );
    assert_eq!(
        text("amount[0]=100", "amount"),
        some(r#"Hash({"0": Text("100")})"#)
    );
}
