//! Entries of operations that cannot be read.
//!
//! In: the name and value of an entry that the log keeps. Out: what is wrong with it, if it belongs to an operation. On
//! Kafka, programs with rights in the topic of operations may write other records there: such an entry is skipped and
//! reported, and the other operations are carried out. In a directory it is damage, and work stops.

use super::{
    PipelineError,
    operation::{DONE, ForgetOperation, LEFT, PENDING},
};
use logs::Log;

/// An entry that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableOperation {
    /// What the entry describes.
    pub what: String,
    /// Why it cannot be read.
    pub problem: String,
}

/// What is wrong with an entry of an operation; `None` for any other entry.
pub fn unreadable_entry(name: &str, value: &[u8]) -> Option<UnreadableOperation> {
    let (what, error) = if name.starts_with(PENDING) || name.starts_with(DONE) {
        ("an operation that forgets turns", serde_json::from_slice::<ForgetOperation>(value).err()?)
    } else if name.starts_with(LEFT) {
        ("the turns that are left of an operation", serde_json::from_slice::<Vec<String>>(value).err()?)
    } else {
        return None;
    };
    Some(UnreadableOperation { what: what.to_owned(), problem: error.to_string() })
}

/// How many entries of operations cannot be read.
pub(super) fn unreadable_entries(log: &dyn Log) -> Result<usize, PipelineError> {
    let mut found = 0;
    for prefix in [PENDING, DONE, LEFT] {
        found += log.entries(prefix)?.iter().filter(|(name, value)| unreadable_entry(name, value).is_some()).count();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_an_operation_that_cannot_be_read_is_named_and_another_is_none() {
        let of = |name: &str, value: &str| unreadable_entry(name, value.as_bytes()).map(|found| found.what);
        assert_eq!(of("forget 1f", "junk").as_deref(), Some("an operation that forgets turns"));
        assert_eq!(of("forgotten 1f", "{}").as_deref(), Some("an operation that forgets turns"));
        assert_eq!(of("forget-turns 1f 00000000", "{}").as_deref(), Some("the turns that are left of an operation"));
        assert_eq!(of("forget-turns 1f 00000000", "[\"1\"]"), None);
        assert_eq!(of("looked for words", "junk"), None);
        assert_eq!(of("\u{fffd}", "junk"), None);
    }
}
