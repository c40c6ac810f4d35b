//! JSON as the control plane reads it: one object, no key twice, each field by its name.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::param;
use crate::admin::error::BadParameter;

/// The fields of an object that are not read yet.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// Takes an object whose fields are all among `known`; the unknown ones are named together.
    pub(super) fn new(object: Map<String, Value>, known: &[&str]) -> Result<Self, BadParameter> {
        let unknown: Vec<&str> = object
            .keys()
            .map(String::as_str)
            .filter(|name| !known.contains(name))
            .collect();
        match unknown.first() {
            None => Ok(Self(object)),
            Some(first) => Err(param::unknown(first, &unknown, known)),
        }
    }

    /// Reads a field that may be absent; `null` is not absence.
    pub(super) fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str, &Value) -> Result<T, BadParameter>,
    ) -> Result<Option<T>, BadParameter> {
        self.0
            .remove(name)
            .map(|value| read(name, &value))
            .transpose()
    }

    /// Reads a field that must be there.
    pub(super) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str, &Value) -> Result<T, BadParameter>,
    ) -> Result<T, BadParameter> {
        self.optional(name, read)?
            .ok_or_else(|| param::missing(name))
    }
}

/// Reads a body that must be one JSON object; nothing at all is an empty one.
pub(super) fn parse_object(body: &[u8]) -> Result<Map<String, Value>, BadParameter> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Unique(Value::Object(object))) => Ok(object),
        Ok(Unique(_)) => Err(param::body("the body must be a JSON object".to_owned())),
        Err(error) => Err(param::body(format!("the body is not valid JSON: {error}"))),
    }
}

/// A JSON value in which no object has a key twice. Readers differ on which of the two counts, so a body
/// that has one can be read in two ways.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = sequence.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Unique(value))) = map.next_entry::<String, Unique>()? {
            if object.contains_key(&name) {
                let name = param::echo(&name);
                return Err(de::Error::custom(format_args!("`{name}` is given twice")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_with_no_key_twice() {
        for body in ["", "{}", r#"{"a":{"b":[1,{"c":null}]},"c":1}"#] {
            assert!(parse_object(body.as_bytes()).is_ok(), "{body}");
        }
        for (body, says) in [
            ("[]", "must be a JSON object"),
            ("1", "must be a JSON object"),
            (r#"{"a":1,"a":1}"#, "`a` is given twice"),
            (r#"{"a":[{"usd":1,"usd":2}]}"#, "`usd` is given twice"),
            (r#"{"a":1"#, "not valid JSON"),
            (r#"{"a":1} x"#, "not valid JSON"),
            ("\u{feff}{}", "not valid JSON"),
        ] {
            let error = parse_object(body.as_bytes()).unwrap_err();
            assert!(error.message.contains(says), "{body}: {}", error.message);
        }
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse_object(deep.as_bytes()).is_err());
    }

    #[test]
    fn unknown_fields_are_named() {
        let object = parse_object(br#"{"reason":"x","expire_at":1,"scope":2}"#).unwrap();
        let error = Fields::new(object, &["reason", "expires_at"]).unwrap_err();
        assert_eq!(error.code, "parameter_unknown");
        assert_eq!(error.param.as_deref(), Some("expire_at"));
        assert!(
            error.message.contains("expire_at, scope"),
            "{}",
            error.message
        );
    }

    #[test]
    fn null_is_not_absence() {
        let mut fields = Fields::new(parse_object(br#"{"a":null}"#).unwrap(), &["a", "b"]).unwrap();
        assert_eq!(fields.optional("b", param::text), Ok(None));
        assert!(fields.optional("a", param::text).is_err());
        let missing = fields.required("b", param::text).unwrap_err();
        assert_eq!(
            (missing.code, missing.param.as_deref()),
            ("parameter_missing", Some("b"))
        );
    }
}
