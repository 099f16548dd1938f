//! What readers cut off from messages: quotations, signatures and notices that a program added.
//!
//! In: the words that a reader leaves out of a message, by kind. Out: for each kind the number of messages and words,
//! and the first of these words, so that somebody can check that they are of that kind. Bounded.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many examples of a kind are kept.
const EXAMPLES: usize = 5;
/// The longest example.
const EXAMPLE_BYTES: usize = 240;

/// What was cut off from messages, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TrimmedText(BTreeMap<&'static str, TrimmedKind>);

/// What was cut off of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TrimmedKind {
    /// How many messages it was cut off from.
    pub messages: u64,
    /// How many words.
    pub words: u64,
    /// The first of these, each with its beginning.
    pub examples: Vec<String>,
}

impl TrimmedText {
    /// Counts words of one message.
    pub(crate) fn add(&mut self, kind: &'static str, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let of = self.0.entry(kind).or_default();
        of.messages += 1;
        of.words += text.split_whitespace().count() as u64;
        if of.examples.len() < EXAMPLES {
            let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let shown = plain.get(..plain.floor_char_boundary(EXAMPLE_BYTES)).unwrap_or_default();
            of.examples.push(if shown.len() < plain.len() { format!("{shown} […]") } else { plain });
        }
    }

    /// Whether nothing was cut off.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The kinds with their counts: `2 messages with quotations (31 words)`.
    #[must_use]
    pub fn counts(&self) -> String {
        let of = |(kind, TrimmedKind { messages, words, .. }): (&&str, &TrimmedKind)| {
            format!("{kind} of {messages} messages ({words} words)")
        };
        self.0.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    /// The examples, each with its kind.
    pub fn examples(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().flat_map(|(kind, of)| of.examples.iter().map(|example| (*kind, example.as_str())))
    }
}
