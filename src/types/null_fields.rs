//! Optional fields that are null.
//!
//! In: an optional field of a request or a record, for `#[serde(default, deserialize_with = "null_as_default")]`. Out:
//! its value. Null is the default, as if the field were absent: many programs write every field that they know.

use serde::{Deserialize, Deserializer};

/// The value of a field; the default for null.
///
/// # Errors
/// Those of the field's own form.
pub fn null_as_default<'de, D, T>(field: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(field)?.unwrap_or_default())
}
