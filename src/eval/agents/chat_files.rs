//! Reads the files of a set of conversations: which set, which chats.
//!
//! In: a path. Out: chats, in the order of their numbers or names, and what was damaged. Reads only the files of the
//! set.

use std::path::Path;

use super::{
    beam,
    chats::{AgentChats, AgentSet, ChatQuestion},
    realmem,
};
use crate::{dataset::DatasetError, dataset_damage::DatasetDamage};

/// Reads the chats of a path: all of them, or those in `only`.
///
/// # Errors
/// [`DatasetError`] when a file cannot be read or is not of the set, or no chat has a question to ask.
pub(super) fn read(set: AgentSet, path: &Path, only: &[String]) -> Result<AgentChats, DatasetError> {
    let mut found = match set {
        AgentSet::Beam => beam::read(path, only)?,
        AgentSet::RealMem => realmem::read(path, only)?,
    };
    for chat in &found.chats {
        for (at, question) in chat.questions.iter().enumerate().filter(|(_, q)| !q.is_asked()) {
            found.problems.note(DatasetDamage::NoEvidence, format!("{}#{at}, {}", chat.name, question.kind));
        }
    }
    if !found.chats.iter().any(|chat| chat.questions.iter().any(ChatQuestion::is_asked)) {
        return Err(DatasetError::Empty {
            path: path.to_owned(),
            why: match set {
                AgentSet::Beam => "no SIZE/N/chat.json of these chats with probing questions".to_owned(),
                AgentSet::RealMem => "no NAME_dialogues_256k.json of these chats with a query".to_owned(),
            },
        });
    }
    Ok(found)
}
