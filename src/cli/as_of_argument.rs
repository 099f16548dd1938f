//! A point of the past, as an argument.
//!
//! In: an offset or a time. Out: the point, or an error that names the argument.

use anyhow::{Context, Result};
use snapshots::AsOf;

/// Reads the value of an argument such as `--from`.
pub(crate) fn parse_as_of(argument: &str, text: &str) -> Result<AsOf> {
    replica::parse_as_of(text).with_context(|| {
        format!("{argument} {text:?}: neither an offset nor a time in RFC 3339, such as 2024-05-06T09:00:00Z")
    })
}
