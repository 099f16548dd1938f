//! The JSON Schema of an evaluation.
//!
//! Out: the schema of `schemas/eval.v1.json`; a test fails when they drift apart.

use schemars::{JsonSchema, Schema};

use super::result::EvalResult;

/// The schema of what `ripplemem eval --json` prints.
#[must_use]
pub fn schema() -> Schema {
    let about = "The figures of one evaluation. Shares are fractions; null is not measured.";
    nouns::schema::of(EvalResult::json_schema, about)
}
