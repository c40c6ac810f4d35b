//! What a simulation puts in the place of a database.

pub(crate) use super::reads::source::{Row, Source};
pub(crate) use super::store::encode::KeyTexts;
pub(crate) use super::store::statement::Param;
pub(crate) use super::store::{Store, StoreError, timed_out};
