//! A turn as a windower holds it, in two pieces of memory: as many turns are held as there are in all banks.
//!
//! In: turns. Out: the same turns, for the bank that holds them.

use crate::model::{Attachment, Bank, EventTime, Turn};

/// The length of a text that a turn lacks.
const ABSENT: u16 = u16::MAX;

/// A turn without its bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldTurn {
    pub(super) version: u64,
    unix_ms: i64,
    /// Its texts, one after the other: the names, then the words.
    texts: Box<str>,
    attachments: Option<Box<Attachments>>,
    offset_seconds: i32,
    /// Lengths of the names in bytes: id, speaker, session, thread, and the id of the turn that it answers.
    lengths: [u16; 5],
}

/// Behind one pointer, as hardly any turn has one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attachments(Vec<Attachment>);

impl HeldTurn {
    /// A turn to hold.
    pub(super) fn of(turn: &Turn) -> Self {
        let Turn { speaker, text, session, thread, reply_to, .. } = turn;
        let [session, thread, reply_to] = [session, thread, reply_to].map(Option::as_deref);
        let names = [Some(turn.turn.as_str()), Some(speaker), session, thread, reply_to];
        let attachments = Some(&turn.attachments).filter(|attachments| !attachments.is_empty());
        Self {
            version: turn.version,
            unix_ms: turn.time.unix_ms,
            texts: names.into_iter().flatten().chain([text.as_str()]).collect::<String>().into_boxed_str(),
            attachments: attachments.map(|attachments| Box::new(Attachments(attachments.clone()))),
            offset_seconds: turn.time.offset_seconds,
            // No name has more than [`MAX_NAME_BYTES`](crate::model::MAX_NAME_BYTES).
            lengths: names.map(|name| name.map_or(ABSENT, |name| name.len() as u16)),
        }
    }

    /// What is held of a deleted turn: its ids, speaker and time, without words, reply and attachments.
    pub(super) fn emptied(&self, bank: &Bank, version: u64) -> Self {
        let kept = self.whole(bank);
        Self::of(&Turn { version, text: String::new(), reply_to: None, attachments: Vec::new(), ..kept })
    }

    /// The turn of a bank.
    pub(super) fn whole(&self, bank: &Bank) -> Turn {
        let owned = |at| self.name(at).map(str::to_owned);
        Turn {
            bank: bank.clone(),
            turn: owned(0).unwrap_or_default(),
            version: self.version,
            speaker: owned(1).unwrap_or_default(),
            text: self.text().to_owned(),
            time: self.time(),
            session: owned(2),
            thread: owned(3),
            reply_to: owned(4),
            attachments: self.attachments.as_ref().map(|attachments| attachments.0.clone()).unwrap_or_default(),
        }
    }

    /// Its id.
    pub(super) fn id(&self) -> &str {
        self.name(0).unwrap_or_default()
    }

    /// Who said it.
    pub(super) fn speaker(&self) -> &str {
        self.name(1).unwrap_or_default()
    }

    /// Its words.
    pub(super) fn text(&self) -> &str {
        self.texts.get(self.start(self.lengths.len())..).unwrap_or_default()
    }

    /// When it was said.
    pub(super) fn time(&self) -> EventTime {
        EventTime { unix_ms: self.unix_ms, offset_seconds: self.offset_seconds }
    }

    fn name(&self, at: usize) -> Option<&str> {
        let own = self.lengths.get(at).filter(|own| **own != ABSENT)?;
        let start = self.start(at);
        self.texts.get(start..start + usize::from(*own))
    }

    /// Where a name starts; behind the last name, the words.
    fn start(&self, at: usize) -> usize {
        let present = self.lengths.iter().take(at).filter(|length| **length != ABSENT);
        present.map(|length| usize::from(*length)).sum()
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
