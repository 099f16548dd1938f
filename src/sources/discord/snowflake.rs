//! Reads Discord's ids, which hold the time at which they were assigned.
//!
//! In: an id as a JSON number or string. Out: the id as text, and its time.

use serde_json::Value;

/// Milliseconds from 1970 to the beginning of 2015, from which Discord counts.
const DISCORD_EPOCH_MS: i64 = 1_420_070_400_000;

/// An id as text; `None` if the value is not a whole number.
pub(super) fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => number.as_u64().map(|id| id.to_string()),
        Value::String(text) => parse(text).map(|id| id.to_string()),
        _ => None,
    }
}

/// The moment at which an id was assigned, in milliseconds since 1970. Ids below 2^22 hold no time.
pub(super) fn unix_ms(id: &str) -> Option<i64> {
    let since_epoch = parse(id)? >> 22;
    (since_epoch > 0).then(|| i64::try_from(since_epoch).ok()).flatten()?.checked_add(DISCORD_EPOCH_MS)
}

/// An id as a number.
pub(super) fn parse(id: &str) -> Option<u64> {
    let id = id.trim();
    // `parse` alone would accept a sign.
    id.bytes().all(|b| b.is_ascii_digit()).then(|| id.parse().ok()).flatten()
}
