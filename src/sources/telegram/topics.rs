//! Which topic of a forum each message belongs to.
//!
//! In: the ids of the messages that began a topic, and what each message answers, in the order of the
//! chat. Out: the id of the message that began the topic. Telegram Desktop writes only what a message
//! answers: either the beginning of the topic, or another message of it. So a message of a topic is
//! remembered in 12 bytes; chats without topics remember nothing.

/// The topics of one chat.
#[derive(Default)]
pub(super) struct Topics {
    /// The messages that began a topic.
    roots: Vec<i64>,
    /// Messages of topics, ascending, and beside each the index of its topic in `roots`.
    ids: Vec<i64>,
    topics: Vec<u32>,
}

impl Topics {
    /// A message began a topic.
    pub(super) fn begin(&mut self, id: i64) {
        if !self.roots.contains(&id) {
            self.roots.push(id);
        }
    }

    /// Whether a message began a topic.
    pub(super) fn is_root(&self, id: i64) -> bool {
        self.roots.contains(&id)
    }

    /// The topic of a message that answers another one; none outside topics.
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
