//! The JSON Schemas of an evaluation and of its report.
//!
//! Out: the schemas of `schemas/eval.v1.json`, `schemas/report.v1.json` and `schemas/report-question.v1.json`; a test
//! fails when they drift apart.

use schemars::{JsonSchema, Schema};

use super::{
    report::{EvalReport, QuestionReport},
    result::EvalResult,
};

/// The schema of what `ripplemem-eval --json` prints.
#[must_use]
pub fn schema() -> Schema {
    let about = "The figures of one evaluation. Shares are fractions; null is not measured.";
    types::schema::titled_schema(EvalResult::json_schema, about)
}

/// The schema of `report.json`, which `ripplemem-eval --report` writes.
#[must_use]
pub fn report_schema() -> Schema {
    let about = "The figures of one evaluation with a line for each question. Shares are fractions; null is not \
                 measured.";
    types::schema::titled_schema(EvalReport::json_schema, about)
}

/// The schema of a question's file beside `report.json`.
#[must_use]
pub fn question_report_schema() -> Schema {
    let about = "One question of an evaluation: its evidence, found or lost, and the answer with its trace.";
    types::schema::titled_schema(QuestionReport::json_schema, about)
}
