//! Which of the two forms of its id a turn is known by.
//!
//! In: an event, and the salt. Out: the event with the id by which the bank knows its turn. An id with a phone number
//! or a mail address has two forms: plain, as sources once sent it, and hidden. The form that arrives first is the
//! turn's id; the other one means the same turn. A deletion replaces the plain form by the hidden one, so a turn that
//! is sent again in either form stays deleted. A function of the events and the salt.

use std::collections::HashMap;

use super::bank_windows::BankWindows;
use types::model::{IdSalt, Turn, TurnDeletion, TurnEvent, holds_contact, is_hidden};

impl BankWindows {
    /// The event with the ids by which this bank knows its turns; `None` if it has them already.
    pub(super) fn in_known_form(&mut self, event: &TurnEvent, salt: IdSalt) -> Option<TurnEvent> {
        match event {
            TurnEvent::Turn(turn) => {
                let id = self.other_form(&turn.turn, salt);
                let reply_to = turn.reply_to.as_ref().and_then(|answered| self.other_form(answered, salt));
                if id.is_none() && reply_to.is_none() {
                    self.note_plain_id(&turn.turn, salt);
                    return None;
                }
                let id = id.unwrap_or_else(|| turn.turn.clone());
                self.note_plain_id(&id, salt);
                let reply_to = reply_to.or_else(|| turn.reply_to.clone());
                Some(TurnEvent::Turn(Turn { turn: id, reply_to, ..turn.clone() }))
            }
            TurnEvent::Deletion(deletion) => {
                let known = self.other_form(&deletion.turn, salt);
                // A deletion of a turn that never arrived is stored in the hidden form only.
                let id = known.or_else(|| {
                    let is_plain = !self.knows(&deletion.turn) && holds_contact(&deletion.turn);
                    is_plain.then(|| salt.hidden(&deletion.turn))
                })?;
                Some(TurnEvent::Deletion(TurnDeletion { turn: id, ..deletion.clone() }))
            }
            _ => None,
        }
    }

    /// Replaces the id of a deleted turn by its hidden form. `turn` is either form.
    pub(super) fn hide_deleted(&mut self, turn: &str, salt: IdSalt) {
        let id = match self.plain.as_ref().and_then(|plain| plain.get(turn)) {
            Some(plain) => plain.clone(),
            None => turn.to_owned(),
        };
        if holds_contact(&id) && self.hide_deleted_turn(&id, &salt) {
            self.plain.get_or_insert_default().remove(&salt.hidden(&id));
        }
    }

    /// The other form of an id, if the bank knows a turn by that form and not by this one.
    fn other_form(&mut self, id: &str, salt: IdSalt) -> Option<String> {
        if self.knows(id) {
            return None;
        }
        if is_hidden(id) {
            return self.plain_ids(salt).get(id).cloned();
        }
        let hidden = holds_contact(id).then(|| salt.hidden(id))?;
        self.knows(&hidden).then_some(hidden)
    }

    fn knows(&self, id: &str) -> bool {
        self.positions.get(id, &self.sessions).is_some() || self.unseen.contains_key(id)
    }

    /// The ids that hold a number or an address, by their hidden forms. They are collected once, from all turns.
    fn plain_ids(&mut self, salt: IdSalt) -> &HashMap<String, String> {
        let (sessions, unseen) = (&self.sessions, &self.unseen);
        self.plain.get_or_insert_with(|| {
            let held = sessions.iter().flat_map(|session| session.turns.iter()).map(|turn| turn.id.to_owned());
            let all = held.chain(unseen.keys().cloned()).filter(|id| holds_contact(id));
            all.map(|id| (salt.hidden(&id), id)).collect()
        })
    }

    /// Notes the id of a turn that arrives.
    fn note_plain_id(&mut self, id: &str, salt: IdSalt) {
        if let Some(plain) = self.plain.as_mut().filter(|_| holds_contact(id)) {
            plain.entry(salt.hidden(id)).or_insert_with(|| id.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Windower,
        tests::{RecordLedger, settings},
    };
    use super::*;
    use types::model::{Bank, EventTime};

    const PLAIN: &str = "Trip/2024-05-01T10:00/+49 170 1234567";

    fn salt() -> IdSalt {
        IdSalt::new([7; 32])
    }

    fn said(id: &str, version: u64, text: &str) -> TurnEvent {
        let time = EventTime::parse("2024-05-01T10:00:00Z").unwrap();
        let turn = Turn::new(Bank::parse("b").unwrap(), id, "Ann", text, time);
        TurnEvent::Turn(Turn { version, ..turn })
    }

    fn deleted(id: &str) -> TurnEvent {
        TurnEvent::Deletion(TurnDeletion { bank: Bank::parse("b").unwrap(), turn: id.to_owned(), version: u64::MAX })
    }

    /// What the log holds after these events: for each turn its id, its words and whether it is deleted. The result is
    /// the same if the events come at once, one by one, or with a restart after each, and whether or not windows close.
    fn held(events: &[TurnEvent]) -> Vec<(String, String, bool)> {
        let mut all = Vec::new();
        for (turns, restarts, drains) in
            [(9, false, false), (9, false, true), (9, true, true), (1, false, true), (1, true, true)]
        {
            let settings = settings(turns, 0);
            let (mut windower, mut ledger) = (Windower::new(&settings), RecordLedger::default());
            for (offset, event) in events.iter().enumerate() {
                if restarts {
                    windower = ledger.restart(&settings);
                }
                if windower.lacks_salt_for(event) {
                    windower.set_id_salt(salt());
                }
                windower.apply(offset as u64 + 1, event);
                if drains {
                    ledger.write(&windower.drain());
                }
            }
            ledger.write(&windower.drain());
            let turns = ledger.0.values().flat_map(|record| record.turns.iter());
            let mut found: Vec<_> = turns.map(|of| (of.turn.turn.clone(), of.turn.text.clone(), of.deleted)).collect();
            found.sort();
            all.push(found);
        }
        assert!(all.iter().all(|found| *found == all[0]), "{all:?}");
        all.swap_remove(0)
    }

    #[test]
    fn both_forms_of_an_id_are_of_one_turn() {
        let hidden = salt().hidden(PLAIN);
        let turn = |id: &str, text: &str| (id.to_owned(), text.to_owned(), false);
        let hole = (hidden.clone(), String::new(), true);
        let other = || said("Trip/2024-05-01T10:00/Bo", 0, "yes");
        let of_other = turn("Trip/2024-05-01T10:00/Bo", "yes");
        for (events, expected) in [
            // An earlier build stored the plain id, and the export is read again.
            (vec![said(PLAIN, 0, "hi"), said(&hidden, 0, "hi")], vec![turn(PLAIN, "hi")]),
            (vec![said(&hidden, 0, "hi"), said(PLAIN, 0, "hi")], vec![turn(&hidden, "hi")]),
            (vec![said(PLAIN, 0, "hi"), said(&hidden, 5, "ho")], vec![turn(PLAIN, "ho")]),
            // A forgotten turn stays forgotten in either form, and its id holds no number.
            (
                vec![said(PLAIN, 0, "hi"), deleted(PLAIN), said(PLAIN, 0, "hi"), said(&hidden, 9, "hi")],
                vec![hole.clone()],
            ),
            (
                vec![said(PLAIN, 0, "hi"), deleted(&hidden), said(&hidden, 0, "hi"), said(PLAIN, 3, "x")],
                vec![hole.clone()],
            ),
            (vec![said(&hidden, 0, "hi"), deleted(PLAIN), said(PLAIN, 0, "hi")], vec![hole.clone()]),
            (vec![deleted(PLAIN), said(&hidden, 0, "hi"), said(PLAIN, 0, "hi")], vec![hole.clone()]),
            (vec![other(), said(PLAIN, 0, "hi"), deleted(PLAIN), other()], vec![of_other.clone(), hole.clone()]),
        ] {
            assert_eq!(held(&events), expected, "{events:?}");
        }
    }
}
