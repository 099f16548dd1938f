//! Holds the events and rejects of a file that is read at once, until they are returned in batches.
//!
//! In: events and rejects in order. Out: batches up to the requested size, and the progress in records; marks added by
//! a source are not counted. Never reads a file.

use std::collections::VecDeque;

use serde_json::Value;

use super::turn_source::{SourceBatch, SourceProgress};
use types::model::{DeadLetter, TurnEvent};

/// The items that are still to be returned.
#[derive(Default)]
pub struct TurnQueue {
    items: VecDeque<QueueItem>,
    total: u64,
    done: u64,
}

enum QueueItem {
    Event(TurnEvent),
    Reject(DeadLetter),
}

impl QueueItem {
    /// True for records of the file, false for the marks that a source adds.
    fn is_record(&self) -> bool {
        matches!(self, Self::Reject(_) | Self::Event(TurnEvent::Turn(_)))
    }
}

impl TurnQueue {
    /// Adds an event of the file, or a mark that a source adds.
    pub fn event(&mut self, event: TurnEvent) {
        self.push(QueueItem::Event(event));
    }

    /// Adds a reject for a damaged value, with its file and its position in the file.
    pub fn reject(&mut self, file: &str, place: &str, reason: String, value: &Value) {
        let origin = format!("{file}: {place}");
        self.push(QueueItem::Reject(DeadLetter::new(origin, reason, value.to_string().as_bytes())));
    }

    fn push(&mut self, item: QueueItem) {
        self.total += u64::from(item.is_record());
        self.items.push_back(item);
    }

    /// Whether everything was returned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// As [`super::TurnSource::next`].
    pub fn next(&mut self, limit: usize) -> Option<SourceBatch> {
        let mut batch = SourceBatch::default();
        for item in self.items.drain(..limit.max(1).min(self.items.len())) {
            self.done += u64::from(item.is_record());
            match item {
                QueueItem::Event(event) => batch.events.push(event),
                QueueItem::Reject(letter) => batch.rejects.push(letter),
            }
        }
        (!(batch.events.is_empty() && batch.rejects.is_empty())).then_some(batch)
    }

    /// How many records were returned, and how many there are.
    #[must_use]
    pub fn progress(&self) -> SourceProgress {
        SourceProgress { done: self.done, total: Some(self.total), unit: "turns" }
    }
}

/// A field that must be text.
///
/// # Errors
/// What is wrong with the field, and what to do.
pub fn text_of<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    match value.get(field) {
        None | Some(Value::Null) => Err(format!("{field}: missing; add it to the record")),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("{field}: not a string; write it as one")),
    }
}
