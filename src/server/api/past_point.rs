//! A point of a bank's past, as a request names it.
//!
//! In: a field and its text. Out: an offset of the memory log or a time, or a problem that names the field.

use super::problem::ApiProblem;
use replica::parse_as_of;
use snapshots::AsOf;

/// The point that a field of a request names.
pub(super) fn past_point(field: &str, text: &str) -> Result<AsOf, ApiProblem> {
    let wrong =
        || ApiProblem::invalid(format!("{field}: neither an offset nor a time in RFC 3339; send one of the two"));
    parse_as_of(text).ok_or_else(wrong)
}
