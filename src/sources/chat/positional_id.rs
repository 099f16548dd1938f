//! Ids for the messages of platforms that have none.
//!
//! In: when a message was said as the file has it, and who said it. Out: an id that is the same in a
//! later export, and when the message was edited or deleted: the time, the author, and which one of
//! the author's messages of that time it is. Never looks at the text. Memory is bounded: an author's
//! messages of one time are counted together as long as fewer than 200,000 other pairs of time and
//! author lie between them.

use std::collections::HashMap;

/// The messages so far of one conversation.
#[derive(Default)]
pub(crate) struct PositionalIds {
    /// Counts by hash of time and author: the pairs of now, and those before.
    recent: HashMap<u64, u32>,
    earlier: HashMap<u64, u32>,
}

impl PositionalIds {
    /// The id of the next message: `TIME/AUTHOR`, and `TIME/AUTHOR/2` for the author's second one of
    /// that time. Give `time` in a form that does not depend on the phone's language, such as
    /// `2024-05-01T10:00`.
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
