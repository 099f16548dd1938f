//! Finds what happened in one of Slack's conversations while the app was offline.
//!
//! In: replies of `conversations.history` and `conversations.replies`, page by page, one request at a time; the last
//! messages that were received before. Out: what was said since, oldest first, and which of those last messages were
//! edited or deleted, once all pages have arrived. Slack returns the newest page first, so the messages of a gap are
//! held until the last page. A message counts as deleted only if the history shows an older one: messages that Slack
//! hides or expires because of their age were not deleted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::error::LiveError;

/// The maximum number of messages on a page; Slack returns fewer to apps that it limits.
const PAGE: &str = "200";

/// A conversation whose missed messages are being requested.
#[derive(Debug)]
pub(super) struct SlackGap {
    channel: String,
    /// The `ts` up to which everything is known.
    known: String,
    /// The `ts` of the last messages that were received.
    heard: BTreeSet<String>,
    /// The cursor of the history's next page; `None` once all pages have arrived.
    page: Option<String>,
    /// The threads that are still to be requested, each with the cursor of its next page.
    threads: VecDeque<(String, String)>,
    found: BTreeMap<String, Value>,
    /// The messages for which an event arrived during the requests, each with its edit time in that event.
    told: BTreeMap<String, String>,
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum SlackGapProgress {
    /// There are more pages.
    More,
    /// Everything has arrived.
    Done(SlackMissedMessages),
}

/// What happened while the app was offline.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SlackMissedMessages {
    /// What was said or edited, oldest first.
    pub(super) messages: Vec<Value>,
    /// The `ts` of the deleted messages.
    pub(super) deleted: Vec<String>,
}

impl SlackGap {
    /// The gap of a conversation. Everything up to the `ts` `known` is known; `heard` are the last messages that were
    /// received.
    pub(super) fn new(channel: String, known: String, heard: BTreeSet<String>) -> Self {
        let (page, threads) = (Some(String::new()), VecDeque::new());
        Self { channel, known, heard, page, threads, found: BTreeMap::new(), told: BTreeMap::new() }
    }

    /// Notes a message for which an event arrived, because a page may hold an older version.
    pub(super) fn note(&mut self, message: &Value) {
        if let Some(ts) = message.get("ts").and_then(Value::as_str) {
            self.told.insert(ts.to_owned(), edited(message).to_owned());
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Makes one request with `ask`.
    ///
    /// # Errors
    /// Those of `ask`; the next call makes the same request again.
    pub(super) fn step(
        &mut self,
        ask: impl FnOnce(&str, &[(&str, &str)]) -> Result<Value, LiveError>,
    ) -> Result<SlackGapProgress, LiveError> {
        let query = |oldest| vec![("channel", self.channel.as_str()), ("oldest", oldest), ("limit", PAGE)];
        if let Some(page) = &self.page {
            let first_heard = self.heard.first().filter(|first| **first <= self.known);
            let mut query = query(first_heard.unwrap_or(&self.known).as_str());
            if first_heard.is_some() {
                query.push(("inclusive", "true"));
            }
            if !page.is_empty() {
                query.push(("cursor", page));
            }
            let reply = ask("conversations.history", &query)?;
            for message in messages(&reply) {
                let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
                let has_replies = message.get("reply_count").and_then(Value::as_u64).is_some_and(|count| count > 0);
                if has_replies && text("ts") > self.known.as_str() {
                    self.threads.push_back((text("ts").to_owned(), String::new()));
                }
                self.found.insert(text("ts").to_owned(), message.clone());
            }
            self.page = next_page(&reply).filter(|next| Some(next) != self.page.as_ref());
        } else if let Some((root, page)) = self.threads.front_mut() {
            let mut query = query(self.known.as_str());
            query.push(("ts", root.as_str()));
            if !page.is_empty() {
                query.push(("cursor", page.as_str()));
            }
            let reply = ask("conversations.replies", &query)?;
            for message in messages(&reply) {
                let ts = message.get("ts").and_then(Value::as_str).unwrap_or_default();
                // Slack repeats the root before the replies.
                self.found.entry(ts.to_owned()).or_insert_with(|| message.clone());
            }
            match next_page(&reply).filter(|next| *next != *page) {
                Some(next) => *page = next,
                None => drop(self.threads.pop_front()),
            }
        }
        if self.page.is_some() || !self.threads.is_empty() {
            return Ok(SlackGapProgress::More);
        }
        Ok(SlackGapProgress::Done(self.missed()))
    }

    fn missed(&mut self) -> SlackMissedMessages {
        let found = std::mem::take(&mut self.found);
        let is_missing =
            |ts: &&String| !found.contains_key(*ts) && found.keys().next().is_some_and(|first| first < *ts);
        let deleted = self.heard.iter().filter(is_missing).cloned().collect();
        let is_told =
            |ts: &str, message: &Value| self.told.get(ts).is_some_and(|then| edited(message) <= then.as_str());
        let is_new =
            |(ts, message): &(String, Value)| (*ts > self.known || self.has_changed(message)) && !is_told(ts, message);
        let messages = found.into_iter().filter(is_new);
        SlackMissedMessages { messages: messages.map(|(_, message)| message).collect(), deleted }
    }

    /// Whether a known message may have changed since. If it has not, its version is already known.
    fn has_changed(&self, message: &Value) -> bool {
        // If the first message of a thread is deleted, a tombstone stays.
        let is_deleted = message.get("subtype").and_then(Value::as_str) == Some("tombstone");
        is_deleted || edited(message) > self.known.as_str()
    }
}

/// When a message was edited; empty if it never was.
fn edited(message: &Value) -> &str {
    message.pointer("/edited/ts").and_then(Value::as_str).unwrap_or_default()
}

fn messages(reply: &Value) -> &[Value] {
    reply.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn next_page(reply: &Value) -> Option<String> {
    let next = reply.pointer("/response_metadata/next_cursor")?.as_str()?;
    Some(next.to_owned()).filter(|next| !next.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_and_threads_come_together_oldest_first() {
        let mut gap = SlackGap::new("C1".to_owned(), "1.0".to_owned(), BTreeSet::new());
        let mut replies = VecDeque::from([
            (
                "conversations.history channel=C1 oldest=1.0 limit=200",
                json!({"messages": [{"ts": "5.0"}, {"ts": "4.0", "reply_count": 2}], "response_metadata": {"next_cursor": "p"}}),
            ),
            ("conversations.history channel=C1 oldest=1.0 limit=200 cursor=p", json!({"messages": [{"ts": "2.0"}]})),
            (
                "conversations.replies channel=C1 oldest=1.0 limit=200 ts=4.0",
                json!({"messages": [{"ts": "4.0"}, {"ts": "6.0"}], "response_metadata": {"next_cursor": "q"}}),
            ),
            (
                "conversations.replies channel=C1 oldest=1.0 limit=200 ts=4.0 cursor=q",
                json!({"messages": [{"ts": "4.5"}], "response_metadata": {"next_cursor": ""}}),
            ),
        ]);
        loop {
            // A request that fails is made again.
            assert!(gap.step(|_, _| Err(LiveError::Lost(String::new()))).is_err());
            let step = gap.step(|method, query| {
                let query: Vec<String> = query.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let (expected, reply) = replies.pop_front().unwrap();
                assert_eq!(format!("{method} {}", query.join(" ")), expected);
                Ok(reply)
            });
            if let SlackGapProgress::Done(SlackMissedMessages { messages, deleted }) = step.unwrap() {
                let order: Vec<&str> = messages.iter().filter_map(|m| m["ts"].as_str()).collect();
                assert_eq!(order, ["2.0", "4.0", "4.5", "5.0", "6.0"]);
                assert_eq!(deleted, Vec::<String>::new());
                break;
            }
        }
        assert!(replies.is_empty());
    }

    /// Checks what is found about the messages 2 to 6, all of them known, from the history that Slack shows.
    fn check(history: &Value, expected: &[&str], expected_deleted: &[&str]) {
        let heard = ["2.0", "3.0", "4.0", "5.0", "6.0"].map(str::to_owned);
        let mut gap = SlackGap::new("C1".to_owned(), "6.0".to_owned(), heard.into());
        let step = gap.step(|method, query| {
            let asked = [("channel", "C1"), ("oldest", "2.0"), ("limit", PAGE), ("inclusive", "true")];
            assert_eq!((method, query), ("conversations.history", &asked[..]));
            Ok(json!({"messages": history}))
        });
        let SlackGapProgress::Done(SlackMissedMessages { messages, deleted }) = step.unwrap() else {
            panic!("{history}")
        };
        let messages: Vec<&str> = messages.iter().filter_map(|m| m["ts"].as_str()).collect();
        assert_eq!(messages, expected, "{history}");
        assert_eq!(deleted, expected_deleted, "{history}");
    }

    #[test]
    fn edits_and_deletions_of_the_last_messages_are_found() {
        let said = |ts: &str| json!({"ts": ts});
        let edited = |ts: &str, at: &str| json!({"ts": ts, "edited": {"user": "U1", "ts": at}});
        // An edit that came before the last message was heard.
        let whole = json!([said("6.0"), edited("5.0", "5.5"), said("4.0"), said("3.0"), said("2.0")]);
        check(&whole, &[], &[]);
        let changed = json!([said("7.0"), edited("6.0", "8.0"), edited("4.0", "6.5"), said("3.0"), said("2.0")]);
        check(&changed, &["4.0", "6.0", "7.0"], &["5.0"]);
        // The deleted first message of a thread; its replies are not requested again.
        let stone = json!({"ts": "4.0", "subtype": "tombstone", "reply_count": 1});
        check(&json!([said("6.0"), said("5.0"), stone, said("3.0"), said("2.0")]), &["4.0"], &[]);
    }

    /// If a page holds the same version as an event, the message is not returned again.
    #[test]
    fn what_an_event_told_meanwhile_is_not_told_again_as_it_was() {
        let mut gap = SlackGap::new("C1".to_owned(), "6.0".to_owned(), BTreeSet::new());
        let edited = |at: &str| json!({"ts": "7.0", "edited": {"user": "U1", "ts": at}});
        let page = |gap: &mut SlackGap, next: &str, shown: &Value| {
            gap.step(|_, _| Ok(json!({"messages": [shown], "response_metadata": {"next_cursor": next}}))).unwrap()
        };
        for (at, expected) in [("8.0", 0), ("9.0", 1)] {
            assert!(matches!(page(&mut gap, "p", &edited(at)), SlackGapProgress::More));
            gap.note(&edited("8.0"));
            let SlackGapProgress::Done(missed) = page(&mut gap, "", &json!({"ts": "6.0"})) else { panic!("{at}") };
            assert_eq!(missed.messages.len(), expected, "{at}");
            gap = SlackGap::new("C1".to_owned(), "6.0".to_owned(), BTreeSet::new());
        }
    }

    #[test]
    fn what_slack_does_not_show_any_more_was_not_deleted() {
        let said = |ts: &str| json!({"ts": ts});
        check(&json!([]), &[], &[]);
        check(&json!([said("6.0"), said("5.0")]), &[], &[]);
        check(&json!([said("6.0"), said("4.0")]), &[], &["5.0"]);
        // A notice that somebody joined is not one of the known messages, but is in the history too.
        check(&json!([said("2.5")]), &[], &["3.0", "4.0", "5.0", "6.0"]);
    }
}
