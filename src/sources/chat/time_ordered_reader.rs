//! A reader for exports that are not in order of time.
//!
//! In: a platform's two steps: `collect` reads the export from beginning to end and keeps what it needs of each
//! message; `item` makes an item from what was kept. Out: the items, oldest first; rejects and skips of the first step
//! are returned as soon as they are found. In the second step the whole export is known: accounts, channels, and which
//! messages have replies. Memory is bounded by `time_sorter`.

use std::collections::{BTreeMap, VecDeque};

use super::{
    chat_item::ChatItem,
    chat_reader::{ChatReader, UnknownNames},
    time_sorter::{SortedRecords, TimeSorter, TimedRecord},
};
use crate::{SourceError, trimmed_text::TrimmedText, turn_source::SourceProgress};

/// A platform's two steps.
pub(crate) trait UnorderedReader: Send {
    /// Reads the next record or records. Adds whatever is not a message to `found`, which is returned at once. False at
    /// the end.
    ///
    /// # Errors
    /// [`SourceError`] when the export can no longer be read.
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError>;

    /// The item made from what was kept.
    fn item(&mut self, kept: TimedRecord) -> ChatItem;

    /// As [`ChatReader::describe`].
    fn describe(&self) -> String;

    /// How many bytes were collected, and how many there are.
    fn bytes(&self) -> (u64, u64);

    /// As [`ChatReader::notice`].
    fn notice(&self) -> Option<String> {
        None
    }

    /// As [`ChatReader::default_bank`].
    fn default_bank(&self) -> Option<&'static str> {
        None
    }

    /// As [`ChatReader::default_redaction`].
    fn default_redaction(&self) -> Option<&'static str> {
        None
    }

    /// As [`ChatReader::chosen`].
    fn chosen(&self) -> Option<UnknownNames> {
        None
    }

    /// As [`ChatReader::unread`].
    fn unread(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// As [`ChatReader::trimmed`].
    fn trimmed(&self) -> TrimmedText {
        TrimmedText::default()
    }
}

/// A reader that returns a platform's messages oldest first.
pub(crate) struct TimeOrderedReader<P> {
    platform: P,
    found: VecDeque<ChatItem>,
    step: ReorderPhase,
    returned: u64,
}

enum ReorderPhase {
    Collecting(TimeSorter),
    Returning(SortedRecords),
}

impl<P: UnorderedReader> TimeOrderedReader<P> {
    /// A reader of a platform's export.
    pub(crate) fn new(platform: P) -> Self {
        Self { platform, found: VecDeque::new(), step: ReorderPhase::Collecting(TimeSorter::new()), returned: 0 }
    }
}

impl<P: UnorderedReader> ChatReader for TimeOrderedReader<P> {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        loop {
            if let Some(item) = self.found.pop_front() {
                return Ok(Some(item));
            }
            match &mut self.step {
                ReorderPhase::Collecting(order) => {
                    if !self.platform.collect(order, &mut self.found)? {
                        let order = std::mem::replace(order, TimeSorter::new());
                        self.step = ReorderPhase::Returning(order.oldest_first()?);
                    }
                }
                ReorderPhase::Returning(records) => {
                    let Some(kept) = records.next()? else { return Ok(None) };
                    self.returned += 1;
                    return Ok(Some(self.platform.item(kept)));
                }
            }
        }
    }

    fn describe(&self) -> String {
        self.platform.describe()
    }

    /// Collecting is the first half of the progress bar, and returning the second half.
    fn progress(&self) -> SourceProgress {
        let (collected, total) = self.platform.bytes();
        let total = total.max(collected);
        let done = match &self.step {
            ReorderPhase::Collecting(_) => collected / 2,
            ReorderPhase::Returning(records) => {
                let share = u128::from(total) * u128::from(self.returned) / u128::from(records.count().max(1));
                total / 2 + u64::try_from(share).unwrap_or(total).div_ceil(2)
            }
        };
        SourceProgress { done: done.min(total), total: Some(total), unit: "bytes" }
    }

    fn notice(&self) -> Option<String> {
        self.platform.notice()
    }

    fn default_bank(&self) -> Option<&'static str> {
        self.platform.default_bank()
    }

    fn default_redaction(&self) -> Option<&'static str> {
        self.platform.default_redaction()
    }

    fn chosen(&self) -> Option<UnknownNames> {
        self.platform.chosen()
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.platform.unread()
    }

    fn trimmed(&self) -> TrimmedText {
        self.platform.trimmed()
    }
}
