//! Objects in the order in which they were made, found by id, listed the way Stripe lists them.

use std::collections::HashMap;

use serde_json::Value;

use super::errors::ApiError;
use super::params::Params;

const LIMIT_DEFAULT: usize = 10;
const LIMIT_MAX: i64 = 100;

/// Objects of one kind. Adding and finding are O(1); nothing is ever taken away.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    items: Vec<T>,
    index: HashMap<String, usize>,
}

/// What every object on a shelf can tell.
pub(crate) trait Shelved {
    fn id(&self) -> &str;
    /// Unix seconds.
    fn created(&self) -> i64;
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            index: HashMap::new(),
        }
    }
}

impl<T: Shelved + Clone> Shelf<T> {
    pub(crate) fn push(&mut self, item: T) {
        self.index.insert(item.id().to_owned(), self.items.len());
        self.items.push(item);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.items.get(*self.index.get(id)?)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.items.get_mut(*self.index.get(id)?)
    }

    /// Oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// One page, newest first, and whether there is more.
    ///
    /// # Errors
    /// 400 where a cursor names no object.
    pub(crate) fn page(
        &self,
        query: &PageQuery,
        keep: impl Fn(&T) -> bool,
    ) -> Result<(Vec<T>, bool), ApiError> {
        let keep = |item: &&T| query.created.holds(item.created()) && keep(item);
        let wanted = query.limit + 1;
        let mut found: Vec<T> = match &query.cursor {
            Cursor::None => self
                .items
                .iter()
                .rev()
                .filter(keep)
                .take(wanted)
                .cloned()
                .collect(),
            Cursor::After(id) => {
                let older = &self.items[..self.position(id, "starting_after")?];
                older
                    .iter()
                    .rev()
                    .filter(keep)
                    .take(wanted)
                    .cloned()
                    .collect()
            }
            Cursor::Before(id) => {
                let newer = &self.items[self.position(id, "ending_before")? + 1..];
                newer.iter().filter(keep).take(wanted).cloned().collect()
            }
        };
        let has_more = found.len() > query.limit;
        found.truncate(query.limit);
        if matches!(query.cursor, Cursor::Before(_)) {
            found.reverse();
        }
        Ok((found, has_more))
    }

    fn position(&self, id: &str, param: &str) -> Result<usize, ApiError> {
        let position = self.index.get(id).copied();
        position.ok_or_else(|| ApiError::missing("object", id, param))
    }
}

/// `limit`, the cursor and `created[…]` of a list request.
#[derive(Debug)]
pub(crate) struct PageQuery {
    limit: usize,
    cursor: Cursor,
    created: CreatedRange,
}

#[derive(Debug)]
enum Cursor {
    None,
    After(String),
    Before(String),
}

impl PageQuery {
    /// The parameters this reads; add them to the ones a list knows.
    pub(crate) const PARAMS: [&'static str; 5] = [
        "limit",
        "starting_after",
        "ending_before",
        "created",
        "expand",
    ];

    pub(crate) fn read(params: &Params) -> Result<Self, ApiError> {
        let limit = match params.integer("limit")? {
            None => LIMIT_DEFAULT,
            Some(limit @ 1..=LIMIT_MAX) => usize::try_from(limit).unwrap_or(LIMIT_DEFAULT),
            Some(_) => {
                let message = "This value must be between 1 and 100.";
                let error = ApiError::invalid(message).code("parameter_invalid_integer");
                return Err(error.param("limit"));
            }
        };
        let cursor = match (
            params.text("starting_after")?,
            params.text("ending_before")?,
        ) {
            (None, None) => Cursor::None,
            (Some(id), None) => Cursor::After(id.to_owned()),
            (None, Some(id)) => Cursor::Before(id.to_owned()),
            (Some(_), Some(_)) => {
                let message = "You can only pass one of starting_after and ending_before.";
                return Err(ApiError::invalid(message).param("starting_after"));
            }
        };
        Ok(Self {
            limit,
            cursor,
            created: CreatedRange::read(params)?,
        })
    }
}

/// `created=…` or `created[gt|gte|lt|lte]=…`, as inclusive bounds.
#[derive(Debug)]
struct CreatedRange {
    from: i64,
    to: i64,
}

impl CreatedRange {
    fn read(params: &Params) -> Result<Self, ApiError> {
        let mut range = Self {
            from: i64::MIN,
            to: i64::MAX,
        };
        let Some(tree) = params.map("created") else {
            if let Some(exact) = params.integer("created")? {
                range = Self {
                    from: exact,
                    to: exact,
                };
            }
            return Ok(range);
        };
        for (bound, value) in tree {
            let name = format!("created[{bound}]");
            let one = Params([(name.clone(), value.clone())].into());
            let value = one.integer(&name)?.unwrap_or_default();
            match bound.as_str() {
                "gte" => range.from = value,
                "gt" => range.from = value.saturating_add(1),
                "lte" => range.to = value,
                "lt" => range.to = value.saturating_sub(1),
                _ => {
                    let message = format!("Received unknown parameter: {name}");
                    return Err(ApiError::invalid(message)
                        .code("parameter_unknown")
                        .param(name));
                }
            }
        }
        Ok(range)
    }

    fn holds(&self, created: i64) -> bool {
        (self.from..=self.to).contains(&created)
    }
}

/// Stripe's list object.
pub(crate) fn list_object(url: &str, data: Vec<Value>, has_more: bool) -> Value {
    let data = Value::Array(data);
    serde_json::json!({ "object": "list", "url": url, "has_more": has_more, "data": data })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sandbox::form;

    impl Shelved for Arc<(String, i64)> {
        fn id(&self) -> &str {
            &self.0
        }
        fn created(&self) -> i64 {
            self.1
        }
    }

    #[test]
    fn pages_are_newest_first_and_meet_at_their_cursors() {
        let mut shelf = Shelf::default();
        for n in 1..=5 {
            shelf.push(Arc::new((format!("o{n}"), n)));
        }
        let rows = [
            ("limit=2", vec!["o5", "o4"], true),
            ("limit=2&starting_after=o4", vec!["o3", "o2"], true),
            ("limit=2&starting_after=o2", vec!["o1"], false),
            ("limit=2&ending_before=o2", vec!["o4", "o3"], true),
            ("created[gte]=2&created[lt]=4", vec!["o3", "o2"], false),
            ("created[gt]=4", vec!["o5"], false),
            ("created[lte]=1", vec!["o1"], false),
            ("created=3", vec!["o3"], false),
        ];
        for (query, expected, more) in rows {
            let params = Params(form::parse(query).unwrap());
            let (page, has_more) = shelf
                .page(&PageQuery::read(&params).unwrap(), |_| true)
                .unwrap();
            let ids: Vec<&str> = page.iter().map(Shelved::id).collect();
            assert_eq!((ids, has_more), (expected, more), "{query}");
        }
    }

    #[test]
    fn bad_list_parameters_are_refused() {
        for query in [
            "limit=0",
            "limit=101",
            "limit=x",
            "created[x]=1",
            "created[gte]=a",
        ] {
            let params = Params(form::parse(query).unwrap());
            assert!(PageQuery::read(&params).is_err(), "{query}");
        }
    }
}
