//! A list as Stripe sends it.

use serde::Serialize;
use utoipa::ToSchema;

/// A page of a list, newest first.
#[derive(Serialize, ToSchema)]
pub(super) struct List<T> {
    /// Always `list`.
    #[schema(example = "list")]
    object: &'static str,
    /// The page.
    data: Vec<T>,
    /// More follows: ask again with `starting_after` set to the last id of `data`.
    has_more: bool,
    /// Where the list is.
    url: &'static str,
}

impl<T> List<T> {
    /// A page of the list at `url`.
    pub(super) fn new(url: &'static str, data: Vec<T>, has_more: bool) -> Self {
        Self {
            object: "list",
            data,
            has_more,
            url,
        }
    }
}
