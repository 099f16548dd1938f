//! Which conversation of a room a turn belongs to, if conversations cross.
//!
//! In: the turns of a room (a caller's session, or the rest of a bank), by event time and offset. Out: the conversation
//! of the turn that a new turn answers, within the gap before its time. What is kept is a function of the current
//! turns, so that it is the same after a restart. A turn's words are split again if they are needed and no longer
//! cached.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    antecedent::{ConversationTurn, REACH, antecedent},
    packed_turns::PackedTurn,
    session_windows::{SessionWindows, TurnPosition},
    turn_words::TurnWords,
};
use types::model::{SessionId, Turn};

/// The number of turns whose words are cached.
const AT_HAND: usize = 16 * REACH;

/// The turns of a bank in which conversations cross, by room.
#[derive(Debug, Default)]
pub(super) struct CrossingConversations {
    rooms: HashMap<String, BTreeMap<TurnMoment, TurnPosition>>,
    /// The number of the next conversation.
    next: usize,
    heard: HashMap<(usize, u32, u64), Arc<SpeakerWords>>,
}

/// When a turn was said, in milliseconds since 1970, and the offset of its current version.
type TurnMoment = (i64, u64);

/// A turn's speaker, in lower case, and its words.
#[derive(Debug)]
struct SpeakerWords {
    speaker: String,
    words: TurnWords,
}

impl SpeakerWords {
    fn of(speaker: &str, text: &str) -> Self {
        Self { speaker: speaker.to_lowercase(), words: TurnWords::of(text) }
    }
}

impl CrossingConversations {
    /// The name of a new conversation in a room, which is a caller's session or none.
    pub(super) fn new_session_id(&self, room: Option<&str>) -> SessionId {
        SessionId(format!("talk:{}:{}", self.next, room.unwrap_or_default()))
    }

    /// Adds a turn to its conversation; does nothing for a session of another kind.
    pub(super) fn add(&mut self, session: &SessionId, turn: &PackedTurn<'_>, position: TurnPosition) {
        let Some((number, room)) = parse(session) else { return };
        self.next = self.next.max(number.saturating_add(1));
        self.rooms.entry(room.to_owned()).or_default().insert(moment(turn), position);
    }

    /// Updates the moment of a turn that has a new version.
    pub(super) fn revise(&mut self, session: &SessionId, old: &PackedTurn<'_>, new: &PackedTurn<'_>) {
        let Some(room) = parse(session).and_then(|(_, room)| self.rooms.get_mut(room)) else { return };
        if let Some(position) = room.remove(&moment(old)) {
            room.insert(moment(new), position);
        }
    }

    /// The index of the session that a new turn joins; none if the turn begins a conversation. It never answers a turn
    /// that is more than `gap_ms` earlier.
    pub(super) fn joined_session(&mut self, turn: &Turn, sessions: &[SessionWindows], gap_ms: i64) -> Option<usize> {
        let room = self.rooms.get(turn.session.as_deref().unwrap_or_default())?;
        let at_ms = turn.time.unix_ms;
        let before = room.range((at_ms.saturating_sub(gap_ms), 0)..=(at_ms, u64::MAX)).rev().take(REACH);
        if self.heard.len() > AT_HAND {
            self.heard.clear();
        }
        let mut found: Vec<(TurnPosition, i64, Arc<SpeakerWords>)> = Vec::new();
        for (&(unix_ms, offset), &position) in before {
            let Some(said) = sessions.get(position.session).and_then(|s| s.turns.get(position.ordinal)) else {
                continue;
            };
            let key = (position.session, position.ordinal, offset);
            let heard = self.heard.entry(key).or_insert_with(|| Arc::new(SpeakerWords::of(said.speaker, said.text)));
            found.push((position, unix_ms, Arc::clone(heard)));
        }
        let said: Vec<ConversationTurn<'_>> = found
            .iter()
            .map(|(position, unix_ms, heard)| ConversationTurn {
                speaker: &heard.speaker,
                unix_ms: *unix_ms,
                words: &heard.words,
                conversation: position.session,
            })
            .collect();
        let new = SpeakerWords::of(&turn.speaker, &turn.text);
        let new =
            ConversationTurn { speaker: &new.speaker, unix_ms: at_ms, words: &new.words, conversation: usize::MAX };
        let answered = antecedent(&new, &said)?;
        found.get(answered).map(|(position, ..)| position.session)
    }
}

/// Whether a session is a conversation of a room.
pub(super) fn is_of(session: &SessionId, room: &str) -> bool {
    parse(session).is_some_and(|(_, of)| of == room)
}

/// The number and the room of a session, if it is a conversation of a room.
fn parse(id: &SessionId) -> Option<(usize, &str)> {
    let (number, room) = id.0.strip_prefix("talk:")?.split_once(':')?;
    Some((number.parse().ok()?, room))
}

fn moment(turn: &PackedTurn<'_>) -> TurnMoment {
    (turn.unix_ms, turn.source_offset)
}
