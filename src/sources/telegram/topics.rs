//! Finds the forum topic that each message belongs to.
//!
//! In: the ids of the messages that began a topic, and what each message answers, in the order of the chat. Out: the id
//! of the message that began the topic. Telegram Desktop writes only what a message answers: either the topic's first
//! message or another message in the topic. So each message in a topic is remembered, in 12 bytes; for chats without
//! topics nothing is remembered.

/// The topics of one chat.
#[derive(Default)]
pub(super) struct TelegramTopics {
    /// The messages that began a topic.
    roots: Vec<i64>,
    /// The messages in topics, ascending; then, for each, the index of its topic in `roots`.
    ids: Vec<i64>,
    topics: Vec<u32>,
}

impl TelegramTopics {
    /// Notes that a message began a topic.
    pub(super) fn begin(&mut self, id: i64) {
        if !self.roots.contains(&id) {
            self.roots.push(id);
        }
    }

    /// Whether a message began a topic.
    pub(super) fn is_root(&self, id: i64) -> bool {
        self.roots.contains(&id)
    }

    /// The topic of a message that answers another one; `None` outside topics.
    pub(super) fn of(&mut self, id: i64, reply_to: i64) -> Option<i64> {
        let at = match self.roots.iter().position(|root| *root == reply_to) {
            Some(at) => u32::try_from(at).ok()?,
            None => *self.topics.get(self.ids.binary_search(&reply_to).ok()?)?,
        };
        if let Err(place) = self.ids.binary_search(&id) {
            self.ids.insert(place, id);
            self.topics.insert(place, at);
        }
        self.roots.get(usize::try_from(at).ok()?).copied()
    }
}
