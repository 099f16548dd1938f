//! The names that a live source has given, as they are kept from run to run.
//!
//! In: the bank and the session of each conversation, and the speaker name of each account. Out: the same as JSON.
//! Never holds the text of a message. Each run decides again whether a conversation is read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The names that were given so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssignedNames {
    /// The bank template under which they were given: with another template, conversations get new banks.
    pub template: String,
    /// The bank and the session of each conversation.
    pub places: Vec<AssignedRoute>,
    /// By bank, the speaker of each account.
    pub people: BTreeMap<String, BTreeMap<String, String>>,
}

/// A conversation, with the bank and the session that it was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssignedRoute {
    /// The workspace of the conversation.
    pub workspace: Option<String>,
    /// The platform's id of the conversation.
    pub id: String,
    /// Its bank.
    pub bank: String,
    /// Its session, if several conversations share the bank.
    pub session: Option<String>,
}
