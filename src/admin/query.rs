//! What a list is asked for: filters, `limit` and `starting_after`.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::error::AdminError;
use super::param;
use crate::admin::error::BadParameter;
use crate::ledger::Page;

/// A page that was not sized; the same as Stripe's.
const LIMIT_DEFAULT: u32 = 10;
/// The largest page; the same as Stripe's.
const LIMIT_MAX: u32 = 100;

/// The longest filter: a customer's id at Stripe is at most 255 characters.
const VALUE_CHARS_MAX: usize = 255;

/// The query parameters that are not read yet, none given twice.
#[derive(Debug)]
pub(super) struct Query(BTreeMap<String, String>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = AdminError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AdminError> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default())?)
    }
}

impl Query {
    fn parse(query: &str) -> Result<Self, BadParameter> {
        let mut values = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if values.contains_key(name.as_ref()) {
                return Err(param::invalid(&name, "a query parameter is given once"));
            }
            values.insert(name.into_owned(), value.into_owned());
        }
        Ok(Self(values))
    }

    /// Refuses parameters outside of `known`.
    pub(super) fn only(self, known: &[&str]) -> Result<Self, BadParameter> {
        let names = self.0.keys().map(String::as_str);
        let unknown: Vec<&str> = names.filter(|name| !known.contains(name)).collect();
        match unknown.first() {
            None => Ok(self),
            Some(first) => Err(param::unknown(first, &unknown, known)),
        }
    }

    /// A filter as text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, BadParameter> {
        let value = self.0.remove(name);
        match &value {
            Some(text) if !(1..=VALUE_CHARS_MAX).contains(&text.chars().count()) => {
                let message =
                    format!("{name} is 1 to {VALUE_CHARS_MAX} characters; leave it out instead");
                Err(param::invalid(name, message))
            }
            _ => Ok(value),
        }
    }

    /// A filter that is the name of a period or a namespace.
    pub(super) fn label(&mut self, name: &str) -> Result<Option<String>, BadParameter> {
        let label = self.0.remove(name);
        label
            .map(|label| param::check_label(name, &label).map(|()| label))
            .transpose()
    }

    /// A filter that is an id.
    pub(super) fn id<Id: FromStr>(
        &mut self,
        name: &str,
        prefix: &str,
    ) -> Result<Option<Id>, BadParameter> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            let message = format!(
                "{name} is an id such as {prefix}…, not {}",
                param::echo(&text)
            );
            param::invalid(name, message)
        })
    }

    /// A filter that is one of a closed list of names.
    pub(super) fn choice<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
        names: &[&str],
    ) -> Result<Option<T>, BadParameter> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let found = parse(&text).map(Some);
        found.ok_or_else(|| param::not_a_choice(name, &text, names))
    }

    /// `limit` and `starting_after`.
    pub(super) fn page<Id: FromStr>(&mut self, prefix: &str) -> Result<Page<Id>, BadParameter> {
        let limit = match self.0.remove("limit") {
            None => LIMIT_DEFAULT,
            Some(text) => {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                let limit = text
                    .parse()
                    .ok()
                    .filter(|limit| (1..=LIMIT_MAX).contains(limit));
                limit.filter(|_| digits).ok_or_else(|| {
                    let found = param::echo(&text);
                    let message =
                        format!("limit is a whole number from 1 to {LIMIT_MAX}, not {found}");
                    param::invalid_integer("limit", message)
                })?
            }
        };
        let starting_after = self.id("starting_after", prefix)?;
        Ok(Page {
            limit,
            starting_after,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::FlagId;

    fn page(query: &str) -> Result<Page<FlagId>, BadParameter> {
        let query = Query::parse(query)?;
        query.only(&["limit", "starting_after"])?.page("flag_")
    }

    #[test]
    fn pages_are_bounded() {
        assert_eq!(page("").unwrap().limit, 10);
        assert_eq!(page("limit=100").unwrap().limit, 100);
        let after = page("starting_after=flag_0000000000007&limit=1").unwrap();
        assert_eq!(after.starting_after, Some(FlagId(7)));
        for (query, param, code) in [
            ("limit=0", "limit", "parameter_invalid_integer"),
            ("limit=101", "limit", "parameter_invalid_integer"),
            ("limit=+5", "limit", "parameter_invalid_integer"),
            ("limit=", "limit", "parameter_invalid_integer"),
            ("limit=ten", "limit", "parameter_invalid_integer"),
            ("limit=5&limit=6", "limit", "parameter_invalid"),
            (
                "starting_after=rsv_0000000000007",
                "starting_after",
                "parameter_invalid",
            ),
            ("starting_after=", "starting_after", "parameter_invalid"),
            (
                "ending_before=flag_0000000000007",
                "ending_before",
                "parameter_unknown",
            ),
        ] {
            let error = page(query).unwrap_err();
            assert_eq!(
                (error.param.as_deref(), error.code),
                (Some(param), code),
                "{query}"
            );
        }
    }
}
