//! Counts by name the parts of records that the reader ignored.

use std::collections::BTreeMap;

/// How many names are counted separately.
const MAX_NAMES: usize = 64;

/// How many parts of records the reader ignored, by name. The records themselves were read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct UnreadCounts(BTreeMap<String, u64>);

impl UnreadCounts {
    /// Counts one part that the reader ignored.
    pub(crate) fn add(&mut self, name: &str) {
        self.add_many(name, 1);
    }

    /// Adds the counts of another one, and empties it.
    pub(crate) fn take(&mut self, other: &mut Self) {
        std::mem::take(&mut other.0).iter().for_each(|(name, count)| self.add_many(name, *count));
    }

    fn add_many(&mut self, name: &str, count: u64) {
        let name = if self.0.len() < MAX_NAMES || self.0.contains_key(name) { name } else { "other fields" };
        *self.0.entry(name.to_owned()).or_default() += count;
    }

    /// The counts by name.
    pub(crate) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let mut unread = UnreadCounts::default();
        (0..2 * MAX_NAMES).for_each(|n| unread.add(&n.to_string()));
        assert_eq!((unread.counts().len(), unread.counts()["other fields"]), (MAX_NAMES + 1, MAX_NAMES as u64));
        let mut all = UnreadCounts::default();
        all.take(&mut unread);
        assert_eq!((all.counts().len(), unread.counts().len()), (MAX_NAMES + 1, 0));
    }
}
