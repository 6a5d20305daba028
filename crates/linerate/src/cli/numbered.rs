//! The number of a shape, which documents carry.
//!
//! In: a document. Out: the same with `schema` in front.

use schemars::JsonSchema;
use serde::Serialize;

/// A document with the number of its shape, which grows when a field changes its meaning.
#[derive(Serialize, JsonSchema)]
pub(super) struct Numbered<T> {
    /// The number of the shape.
    schema: u32,
    #[serde(flatten)]
    document: T,
}

impl<T> Numbered<T> {
    pub(super) fn new(document: T) -> Self {
        Self { schema: linerate_model::SCHEMA, document }
    }
}
