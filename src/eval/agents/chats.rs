//! Conversations of a user and an assistant, with questions.
//!
//! The types, and functions that the readers of both sets share. Opens no file.

use jiff::civil::Date;

use crate::dataset_damage::DamageCounts;

/// The text of a turn that has none.
const NOTHING_SAID: &str = "…";

/// A benchmark of agents' conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentSet {
    /// BEAM: chats with probing questions, `SIZE/N/chat.json`.
    Beam,
    /// RealMem: dialogues over hundreds of sessions, whose queries use memories of earlier ones.
    RealMem,
}

impl AgentSet {
    /// Its name: on the command line, and the first segment of its banks.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Beam => "beam",
            Self::RealMem => "realmem",
        }
    }
}

/// One conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AgentChat {
    /// `100K/1`, or the name of the dialogue.
    pub(super) name: String,
    pub(super) turns: Vec<ChatTurn>,
    /// The questions in the order of the file.
    pub(super) questions: Vec<ChatQuestion>,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChatTurn {
    /// The number of its session, from 0.
    pub(super) session: usize,
    /// `user` or `assistant`, or a person's name.
    pub(super) role: String,
    pub(super) day: Date,
    /// Never empty.
    pub(super) text: String,
    /// What its images show.
    pub(super) captions: Vec<String>,
}

/// A question about a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChatQuestion {
    pub(super) kind: String,
    pub(super) text: String,
    /// Who asks it, if a question says.
    pub(super) asker: Option<String>,
    /// The turns that hold what it asks for, each once; empty if no turn does.
    pub(super) evidence: Vec<usize>,
    /// What an answer has to say.
    pub(super) facts: Vec<String>,
    /// The number of turns that were said before it is asked.
    pub(super) before: usize,
    /// Whether the conversation holds an answer; a good memory says when it does not.
    pub(super) answerable: bool,
}

impl ChatQuestion {
    /// Whether it is asked, which is the case if what is quoted for it can be scored.
    pub(super) fn is_asked(&self) -> bool {
        !self.answerable || !self.evidence.is_empty()
    }
}

/// The chats of a set and what was damaged in its files.
#[derive(Debug, Default)]
pub(super) struct AgentChats {
    pub(super) chats: Vec<AgentChat>,
    pub(super) problems: DamageCounts,
}

/// What was said, without white space around it.
pub(super) fn said(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() { NOTHING_SAID.to_owned() } else { text.to_owned() }
}

/// The items, each once, in their order.
pub(super) fn each_once(items: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut once = Vec::new();
    for item in items {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}
