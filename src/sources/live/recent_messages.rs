//! Remembers the last messages received in the conversations of a platform: after a pause, their edits and deletions
//! are looked for.
//!
//! In: the ids of messages as they are received and deleted; a later message has a greater id. Out: for each
//! conversation, the last ones that are not deleted. They are part of the position, which every commit writes, so they
//! hold no words and a few hundred messages at most.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The maximum per conversation: as many as one request returns to an app that Slack limits. One page of Discord holds
/// more.
pub(super) const OF_CONVERSATION: usize = 15;
/// The maximum for all conversations together.
const OF_ALL: usize = 512;

/// The ids of the last messages, by conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct RecentMessages<Id: Ord>(BTreeMap<String, BTreeSet<Id>>);

impl<Id: Ord + Clone> RecentMessages<Id> {
    /// Notes a message; if there are too many, the oldest is dropped.
    pub(super) fn add(&mut self, conversation: &str, id: Id) {
        let of_conversation = self.0.entry(conversation.to_owned()).or_default();
        of_conversation.insert(id);
        if of_conversation.len() > OF_CONVERSATION {
            of_conversation.pop_first();
        }
        if self.0.values().map(BTreeSet::len).sum::<usize>() > OF_ALL {
            let oldest = self.0.iter().filter_map(|(conversation, all)| Some((all.first()?, conversation))).min();
            if let Some((id, conversation)) = oldest.map(|(id, conversation)| (id.clone(), conversation.clone())) {
                self.remove(&conversation, &id);
            }
        }
    }

    /// Notes that a message is deleted.
    pub(super) fn remove(&mut self, conversation: &str, id: &Id) {
        if let Some(of_conversation) = self.0.get_mut(conversation) {
            of_conversation.remove(id);
            if of_conversation.is_empty() {
                self.0.remove(conversation);
            }
        }
    }

    /// The messages of a conversation.
    pub(super) fn of(&self, conversation: &str) -> BTreeSet<Id> {
        self.0.get(conversation).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_where_there_are_too_many() {
        let mut heard = RecentMessages::default();
        // A message that arrives late is not the newest.
        for second in (0..20).rev() {
            heard.add("C1", format!("17000000{second:02}.000100"));
        }
        assert_eq!(heard.of("C1").len(), OF_CONVERSATION);
        assert_eq!(heard.of("C1").first().unwrap(), "1700000005.000100");
        heard.remove("C1", &"1700000005.000100".to_owned());
        assert_eq!(heard.of("C1").first().unwrap(), "1700000006.000100");
        for conversation in 0..OF_ALL {
            heard.add(&format!("D{conversation}"), "1700000500.000100".to_owned());
        }
        assert_eq!((heard.of("C1").len(), heard.0.len()), (0, OF_ALL), "all of C1 is older");
        let stored = serde_json::to_string(&heard).unwrap();
        assert!(stored.len() < 20_000, "{}", stored.len());
        assert_eq!(serde_json::from_str::<RecentMessages<String>>(&stored).unwrap(), heard);
    }
}
