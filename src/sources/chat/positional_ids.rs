//! Ids for the messages of platforms that have none.
//!
//! In: the time of a message as the file states it, and its author. Out: an id made of the time, the author, and the
//! message's number among the author's messages of that time. It stays the same in later exports, and when the message
//! is edited or deleted. Never looks at the text. Memory is bounded: an author's messages of one time are counted
//! together as long as fewer than 200,000 other pairs of time and author come between them.

use std::collections::HashMap;

/// The messages of one conversation so far.
#[derive(Default)]
pub(crate) struct PositionalIds {
    /// Counts by hash of time and author: the most recent pairs, and the ones before those.
    recent: HashMap<u64, u32>,
    earlier: HashMap<u64, u32>,
}

impl PositionalIds {
    /// The id of the next message: `TIME/AUTHOR`, and `TIME/AUTHOR/2` for the author's second one of that time. Pass
    /// `time` in a form that does not depend on the phone's language, such as `2024-05-01T10:00`.
    pub(crate) fn id(&mut self, time: &str, author: &str) -> String {
        const PAIRS: usize = 200_000;
        let hash = blake3::hash(format!("{}/{time}/{author}", time.len()).as_bytes());
        let key = hash.as_bytes().iter().take(8).fold(0u64, |key, byte| key << 8 | u64::from(*byte));
        let before = self.recent.get(&key).or_else(|| self.earlier.get(&key)).copied().unwrap_or(0);
        let nth = before.saturating_add(1);
        self.recent.insert(key, nth);
        if self.recent.len() >= PAIRS {
            self.earlier = std::mem::take(&mut self.recent);
        }
        let author = author.replace('%', "%25").replace('/', "%2F");
        if nth == 1 { format!("{time}/{author}") } else { format!("{time}/{author}/{nth}") }
    }
}
