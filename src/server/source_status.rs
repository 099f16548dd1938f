//! The states of the live sources of a process, for its status.
//!
//! In: what happens at each source, in order. Out: by source, whether it is followed, why it is not, and what its user
//! should know. Holds no word of what was said.

use std::{collections::BTreeMap, sync::Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use ingest::LiveSourceEvent;
use types::sync;

/// A live source of this process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceStatus {
    /// Its name in the pipeline file.
    pub name: String,
    /// Whether its platform answers.
    pub following: bool,
    /// Why it does not; the source is opened again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What its log line last said that its user should know, such as what a lost session hides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// The sources of which something is known, by name.
#[derive(Default)]
pub(super) struct SourceStatuses(Mutex<BTreeMap<String, SourceStatus>>);

impl SourceStatuses {
    /// Takes what happens at a source.
    pub(super) fn note(&self, name: &str, event: &LiveSourceEvent) {
        let mut all = sync::lock(&self.0);
        let status = all
            .entry(name.to_owned())
            .or_insert_with(|| SourceStatus { name: name.to_owned(), ..SourceStatus::default() });
        match event {
            LiveSourceEvent::Following => (status.following, status.problem) = (true, None),
            LiveSourceEvent::Committed { .. } => {}
            LiveSourceEvent::Notice(notice) => status.notice = Some(notice.clone()),
            LiveSourceEvent::Interrupted { problem, .. } => {
                (status.following, status.problem) = (false, Some(problem.clone()));
            }
        }
    }

    /// Another process follows the source from now on.
    pub(super) fn forget(&self, name: &str) {
        sync::lock(&self.0).remove(name);
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<SourceStatus> {
        sync::lock(&self.0).values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_notice_stays_and_a_problem_ends_when_the_source_is_followed_again() {
        let sources = SourceStatuses::default();
        let interrupted = LiveSourceEvent::Interrupted { problem: "no answer".to_owned(), after: Duration::ZERO };
        let notice = LiveSourceEvent::Notice("edits are not found".to_owned());
        for event in [&LiveSourceEvent::Following, &notice, &interrupted] {
            sources.note("chat", event);
        }
        sources.note("other", &LiveSourceEvent::Following);
        let all = sources.all();
        let [chat, other] = &all[..] else { panic!("{all:?}") };
        assert!(other.following && other.problem.is_none() && other.notice.is_none());
        assert_eq!((chat.following, chat.problem.as_deref()), (false, Some("no answer")));
        sources.note("chat", &LiveSourceEvent::Following);
        let chat = sources.all().remove(0);
        assert_eq!((chat.following, chat.problem), (true, None));
        assert_eq!(chat.notice.as_deref(), Some("edits are not found"));
        sources.forget("chat");
        assert_eq!(sources.all().len(), 1);
    }
}
