//! Finds the message that a quoted text belongs to.
//!
//! In: the texts of a chat with their ids, and a quoted text. Out: the id of the latest message with
//! that text, if it is one of the last [`KEPT`]. Memory is bounded.

use std::collections::{HashMap, VecDeque};

/// How many messages are kept.
const KEPT: usize = 4_096;

/// The latest messages of a chat.
#[derive(Default)]
pub(super) struct SignalQuoteIndex {
    ids: HashMap<[u8; 32], String>,
    order: VecDeque<[u8; 32]>,
}

impl SignalQuoteIndex {
    /// Keeps a message.
    pub(super) fn add(&mut self, text: &str, id: &str) {
        let Some(key) = key(text) else { return };
        if self.ids.insert(key, id.to_owned()).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    /// The id of the latest message with this text.
    pub(super) fn find(&self, quoted: &str) -> Option<String> {
        self.ids.get(&key(quoted)?).cloned()
    }
}

/// A hash of the words alone, because the exporter changes blank space and leaves out backticks.
fn key(text: &str) -> Option<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let mut any = false;
    for word in text.split_whitespace() {
        for part in word.split('`') {
            hasher.update(part.as_bytes());
        }
        hasher.update(b" ");
        any = true;
    }
    any.then(|| *hasher.finalize().as_bytes())
}
