//! What was said in a conversation of Slack while nobody listened.
//!
//! In: replies of `conversations.history` and `conversations.replies`, page by page, one request at a
//! time. Out: the messages, oldest first, once all pages are there. Slack gives the newest page first,
//! so the messages of a gap are held until the last page.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::error::LiveError;

/// The most messages of a page; Slack gives fewer to apps that it limits.
const PAGE: &str = "200";

/// A conversation that is being asked for.
#[derive(Debug)]
pub(super) struct Gap {
    channel: String,
    oldest: String,
    /// Where the next page of the history begins; none once all pages are there.
    page: Option<String>,
    /// The threads that are still to be asked for, and where their next pages begin.
    threads: VecDeque<(String, String)>,
    found: BTreeMap<String, Value>,
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Step {
    /// There are more pages.
    More,
    /// Everything, oldest first.
    Done(Vec<Value>),
}

impl Gap {
    /// What was said in a conversation behind `oldest`, a `ts`.
    pub(super) fn new(channel: String, oldest: String) -> Self {
        Self { channel, oldest, page: Some(String::new()), threads: VecDeque::new(), found: BTreeMap::new() }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Makes one request with `ask`.
    ///
    /// # Errors
    /// Those of `ask`; the same request is made again then.
    pub(super) fn step(
        &mut self,
        ask: impl FnOnce(&str, &[(&str, &str)]) -> Result<Value, LiveError>,
    ) -> Result<Step, LiveError> {
        let mut query = vec![("channel", self.channel.as_str()), ("oldest", self.oldest.as_str()), ("limit", PAGE)];
        if let Some(page) = &self.page {
            if !page.is_empty() {
                query.push(("cursor", page));
            }
            let reply = ask("conversations.history", &query)?;
            for message in messages(&reply) {
                let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
                if message.get("reply_count").and_then(Value::as_u64).is_some_and(|count| count > 0) {
                    self.threads.push_back((text("ts").to_owned(), String::new()));
                }
                self.found.insert(text("ts").to_owned(), message.clone());
            }
            self.page = next_page(&reply).filter(|next| Some(next) != self.page.as_ref());
        } else if let Some((root, page)) = self.threads.front_mut() {
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
            return Ok(Step::More);
        }
        Ok(Step::Done(std::mem::take(&mut self.found).into_values().collect()))
    }
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
        let mut gap = Gap::new("C1".to_owned(), "1.0".to_owned());
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
            if let Step::Done(messages) = step.unwrap() {
                let order: Vec<&str> = messages.iter().filter_map(|m| m["ts"].as_str()).collect();
                assert_eq!(order, ["2.0", "4.0", "4.5", "5.0", "6.0"]);
                break;
            }
        }
        assert!(replies.is_empty());
    }
}
