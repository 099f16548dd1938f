//! A signed webhook: turns as JSON, from anything that can sign a request.
//!
//! In: bodies with one turn event, an array of them, or one per line, in the form of the turns topic. A record without
//! a bank gets the source's bank, and a record may name a bank below that. Out: those events. The sender chooses the id
//! of a turn, so a request that is sent again changes nothing. A record that cannot be read is a dead letter, and the
//! rest of its request is stored.

use std::time::Duration;

use serde_json::{Value, value::RawValue};

use super::{
    error::LiveError,
    live_feed::{FeedArrival, LiveFeed},
    webhook_inbox::WebhookInbox,
};
use crate::SourceError;
use types::{
    config::LiveSourceSettings,
    model::{Bank, DeadLetter, TurnEvent, UniqueJson, stated_bank},
};

/// The requests of a signed webhook.
pub(super) struct SignedWebhook {
    origin: String,
    bank: Bank,
    inbox: WebhookInbox,
}

impl SignedWebhook {
    /// # Errors
    /// [`LiveError::Settings`] when the bank is not a valid name.
    pub(super) fn open(settings: &LiveSourceSettings, origin: &str, inbox: WebhookInbox) -> Result<Self, LiveError> {
        let wrong = |problem| LiveError::of_settings(&settings.name, SourceError::Settings { key: "bank", problem });
        let bank = Bank::parse(&settings.bank).map_err(|e| wrong(e.to_string()))?;
        Ok(Self { origin: origin.to_owned(), bank, inbox })
    }

    fn take(&self, body: &[u8], arrival: &mut FeedArrival) {
        for value in serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>() {
            match value {
                Ok(value) => match serde_json::from_str::<Vec<&RawValue>>(value.get()) {
                    Ok(records) => records.into_iter().for_each(|record| self.record(record.get(), arrival)),
                    Err(_) => self.record(value.get(), arrival),
                },
                Err(e) => {
                    // Nothing after the error can be read either.
                    let reason = format!("not JSON: {e}; send a record, an array of records, or one per line");
                    return arrival.rejects.push(self.letter(reason, body, None));
                }
            }
        }
    }

    fn record(&self, record: &str, arrival: &mut FeedArrival) {
        // A duplicate field is left for the event's parser to refuse.
        let json = match serde_json::from_str(record) {
            Ok(UniqueJson(mut value)) => {
                if let Some(fields) = value.as_object_mut() {
                    fields.entry("bank").or_insert_with(|| self.bank.as_str().into());
                }
                value.to_string()
            }
            Err(_) => record.to_owned(),
        };
        match TurnEvent::from_json(json.as_bytes()) {
            Ok(event) if self.may_write(event.bank()) => arrival.events.push(event),
            Ok(event) => {
                let reason = format!("bank: {} is neither {} nor below it; name such a bank", event.bank(), self.bank);
                arrival.rejects.push(self.letter(reason, json.as_bytes(), None));
            }
            Err(reason) => {
                let stated = stated_bank(json.as_bytes());
                arrival.rejects.push(self.letter(reason, json.as_bytes(), stated));
            }
        }
    }

    /// The dead letter of a record that cannot be read. Its bank is the one that the record states, if this source may
    /// write there; else the source's own.
    fn letter(&self, reason: String, record: &[u8], stated: Option<Bank>) -> DeadLetter {
        let bank = stated.filter(|bank| self.may_write(bank)).unwrap_or_else(|| self.bank.clone());
        DeadLetter::new(self.origin.clone(), reason, record).in_bank(Some(bank))
    }

    /// Whether a bank is the source's bank or below it.
    fn may_write(&self, bank: &Bank) -> bool {
        let below = bank.as_str().strip_prefix(self.bank.as_str());
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl LiveFeed for SignedWebhook {
    fn next(&mut self, wait: Duration) -> Result<FeedArrival, LiveError> {
        let mut arrival = FeedArrival::default();
        for body in self.inbox.next(wait) {
            arrival.moved = true;
            self.take(&body, &mut arrival);
        }
        Ok(arrival)
    }

    fn cursor(&self) -> Value {
        Value::Null
    }

    fn committed(&mut self) -> Result<(), LiveError> {
        self.inbox.confirm();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_holds_one_record_several_or_one_a_line() {
        let turn = |id: &str| format!(r#"{{"turn":"{id}","speaker":"Ann","text":"hi","time":"2024-05-01T10:00:00Z"}}"#);
        let deletion = r#"{"type":"deletion","turn":"a","bank":"b/c"}"#;
        for (body, banks, rejects) in [
            (turn("a"), vec!["b"], 0),
            (format!("[{},{}]", turn("a"), turn("b")), vec!["b", "b"], 0),
            (format!("{}\n{deletion}\n", turn("a")), vec!["b", "b/c"], 0),
            (r#"{"type":"deletion","turn":"a","bank":"bc"}"#.to_owned(), vec![], 1),
            (format!("[{}, 5, {{\"turn\": 1}}]", turn("a")), vec!["b"], 2),
            (format!("{} nonsense", turn("a")), vec!["b"], 1),
            (turn("a").replace('{', r#"{"turn":"z","#), vec![], 1),
            ("[]".to_owned(), vec![], 0),
            (String::new(), vec![], 0),
        ] {
            let (_, arriving) = crossbeam_channel::bounded(0);
            let bank = Bank::parse("b").unwrap();
            let signed = SignedWebhook { origin: "source s".to_owned(), bank, inbox: WebhookInbox::new(arriving) };
            let mut arrival = FeedArrival::default();
            signed.take(body.as_bytes(), &mut arrival);
            let found: Vec<&str> = arrival.events.iter().map(|event| event.bank().as_str()).collect();
            assert_eq!((found, arrival.rejects.len()), (banks, rejects), "{body}");
            assert!(arrival.rejects.iter().all(|letter| letter.bank == Bank::parse("b").ok()), "{body}");
        }
    }
}
