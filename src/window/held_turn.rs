//! A turn as a windower holds it, in two pieces of memory: as many turns are held as there are in all banks.
//!
//! In: turns. Out: the same turns, for the bank that holds them.

use crate::model::{Attachment, Bank, EventTime, Turn};

/// The length of a text that a turn lacks.
const ABSENT: u32 = u32::MAX;

/// A turn without its bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldTurn {
    pub(super) version: u64,
    pub(super) time: EventTime,
    /// Its texts, one after the other.
    texts: Box<str>,
    /// Their lengths in bytes: id, speaker, words, session, thread, and the id of the turn that it answers.
    lengths: [u32; 6],
    attachments: Box<[Attachment]>,
}

impl HeldTurn {
    /// A turn to hold.
    pub(super) fn of(turn: &Turn) -> Self {
        let Turn { speaker, text, session, thread, reply_to, .. } = turn;
        let [session, thread, reply_to] = [session, thread, reply_to].map(Option::as_deref);
        let texts = [Some(turn.turn.as_str()), Some(speaker), Some(text), session, thread, reply_to];
        Self {
            version: turn.version,
            time: turn.time,
            texts: texts.into_iter().flatten().collect::<String>().into_boxed_str(),
            // A turn has at most a mebibyte.
            lengths: texts.map(|text| text.map_or(ABSENT, |text| text.len() as u32)),
            attachments: turn.attachments.clone().into_boxed_slice(),
        }
    }

    /// What is held of a deleted turn: its ids, speaker and time, without words, reply and attachments.
    pub(super) fn emptied(&self, bank: &Bank, version: u64) -> Self {
        let kept = self.whole(bank);
        Self::of(&Turn { version, text: String::new(), reply_to: None, attachments: Vec::new(), ..kept })
    }

    /// The turn of a bank.
    pub(super) fn whole(&self, bank: &Bank) -> Turn {
        let owned = |at| self.field(at).map(str::to_owned);
        Turn {
            bank: bank.clone(),
            turn: owned(0).unwrap_or_default(),
            version: self.version,
            speaker: owned(1).unwrap_or_default(),
            text: owned(2).unwrap_or_default(),
            time: self.time,
            session: owned(3),
            thread: owned(4),
            reply_to: owned(5),
            attachments: self.attachments.to_vec(),
        }
    }

    /// Its id.
    pub(super) fn id(&self) -> &str {
        self.field(0).unwrap_or_default()
    }

    /// Who said it.
    pub(super) fn speaker(&self) -> &str {
        self.field(1).unwrap_or_default()
    }

    /// Its words.
    pub(super) fn text(&self) -> &str {
        self.field(2).unwrap_or_default()
    }

    fn field(&self, at: usize) -> Option<&str> {
        let length = |length: &u32| if *length == ABSENT { 0 } else { *length as usize };
        let own = self.lengths.get(at).filter(|own| **own != ABSENT)?;
        let from: usize = self.lengths.iter().take(at).map(length).sum();
        self.texts.get(from..from + length(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_turn_is_the_same_turn() {
        let bank = Bank::parse("team").expect("a valid name");
        let time = EventTime::parse("2024-01-01T00:00:00+01:00").expect("a time");
        let plain = Turn::new(bank.clone(), "1", "Zoë", "Grüße, and “thanks”", time);
        let attached = Attachment { kind: None, caption: Some("a kayak".to_owned()), url: None };
        let full = Turn {
            version: 7,
            session: Some("room".to_owned()),
            thread: Some(String::new()),
            reply_to: Some("0".to_owned()),
            attachments: vec![attached],
            ..plain.clone()
        };
        for turn in [plain, Turn { thread: None, ..full.clone() }, Turn { session: None, ..full.clone() }, full] {
            let held = HeldTurn::of(&turn);
            assert_eq!(held.whole(&bank), turn);
            assert_eq!([held.id(), held.speaker(), held.text()], [&turn.turn, &turn.speaker, &turn.text]);
            let emptied = Turn { version: 9, text: String::new(), reply_to: None, attachments: Vec::new(), ..turn };
            assert_eq!(held.emptied(&bank, 9).whole(&bank), emptied);
        }
    }
}
