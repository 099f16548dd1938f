//! The schema files of what an evaluation writes are what the Rust types say. A run with `REWRITE=1` writes the files.

use types::schema::schema_text;

use super::support::check_golden;

#[test]
fn the_schema_of_an_evaluation_has_not_drifted() {
    check_golden("schemas/eval.v1.json", &schema_text(&eval::schema()));
    check_golden("schemas/report.v1.json", &schema_text(&eval::report_schema()));
    check_golden("schemas/report-question.v1.json", &schema_text(&eval::question_report_schema()));
}
