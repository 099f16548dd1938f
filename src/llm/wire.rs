//! The wire format of OpenAI's chat completions.
//!
//! In: messages and a schema; the bytes of a reply, whole or as server-sent events. Out: a
//! request's JSON; a reply's text, tokens, and whether it was cut off. Missing or unknown fields
//! are no error, because endpoints differ; a reply without a message is one.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ChatMessage {
    role: &'static str,
    content: String,
}

impl ChatMessage {
    pub(super) fn system(content: &str) -> Self {
        Self { role: "system", content: content.to_owned() }
    }

    pub(super) fn user(content: &str) -> Self {
        Self { role: "user", content: content.to_owned() }
    }

    /// A reply that the model gave before.
    pub(super) fn assistant(content: &str) -> Self {
        Self { role: "assistant", content: content.to_owned() }
    }

    pub(super) fn content(&self) -> &str {
        &self.content
    }
}

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct ChatBody<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [ChatMessage],
    /// Always 0: the likeliest answer, and the same one each time as far as the endpoint can.
    pub(super) temperature: u8,
    pub(super) max_tokens: u32,
    pub(super) response_format: ResponseFormat<'a>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
}

/// The format of the completion's text.
#[derive(Debug, Serialize)]
pub(super) struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Debug, Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    strict: bool,
    /// Byte for byte as in its file: a model fills the properties in the file's order.
    schema: &'a RawValue,
}

impl<'a> ResponseFormat<'a> {
    /// JSON that matches a named schema.
    pub(super) fn schema(name: &'static str, schema: &'a RawValue) -> Self {
        Self { r#type: "json_schema", json_schema: NamedSchema { name, strict: true, schema } }
    }
}

/// What a stream reports besides the text.
#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

/// A completion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ChatReply {
    /// The model's text.
    pub(super) text: String,
    /// It was cut off at `max_tokens`.
    pub(super) cut: bool,
    /// Tokens of the prompt and of the completion, where the endpoint reports them.
    pub(super) tokens: Option<(u64, u64)>,
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<CompletionChoice>,
    #[serde(default)]
    usage: Option<TokenCounts>,
}

#[derive(Deserialize)]
struct CompletionChoice {
    #[serde(default)]
    message: Option<Content>,
    #[serde(default)]
    delta: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Content {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
struct TokenCounts {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

impl TokenCounts {
    /// `None` where the endpoint sends zeros instead of counting.
    fn reported(self) -> Option<(u64, u64)> {
        (self.prompt_tokens > 0).then_some((self.prompt_tokens, self.completion_tokens))
    }
}

/// The `finish_reason` of a completion that was cut off.
const CUT: &str = "length";

/// Reads a whole reply.
pub(super) fn read_all(reader: &mut dyn BufRead) -> Result<ChatReply, String> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|e| broken(&e))?;
    read(&bytes)
}

fn read(bytes: &[u8]) -> Result<ChatReply, String> {
    let completion: Completion = serde_json::from_slice(bytes).map_err(|e| format!("not a chat completion: {e}"))?;
    let tokens = completion.usage.and_then(TokenCounts::reported);
    let choice = completion.choices.into_iter().next().ok_or("a chat completion without a choice")?;
    let content = choice.message.ok_or("a chat completion without a message")?;
    // A refusal counts as the reply: it matches no schema, so the model is asked to repair it.
    let text = content.content.or(content.refusal).unwrap_or_default();
    Ok(ChatReply { text, cut: choice.finish_reason.as_deref() == Some(CUT), tokens })
}

/// Reads a stream of events to its end; `each` receives every piece of text as it arrives.
pub(super) fn read_stream(reader: impl BufRead, each: &mut dyn FnMut(&str)) -> Result<ChatReply, String> {
    let mut reply = ChatReply::default();
    let mut ended = false;
    for line in reader.lines() {
        let line = line.map_err(|e| broken(&e))?;
        // Other fields of an event, comments and empty lines carry no text.
        let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
        if data == "[DONE]" {
            ended = true;
            break;
        }
        let event: Completion = serde_json::from_str(data).map_err(|e| format!("not an event of a completion: {e}"))?;
        reply.tokens = event.usage.and_then(TokenCounts::reported).or(reply.tokens);
        for choice in event.choices {
            if let Some(text) = choice.delta.and_then(|content| content.content.or(content.refusal)) {
                each(&text);
                reply.text.push_str(&text);
            }
            if let Some(reason) = choice.finish_reason {
                reply.cut = reason == CUT;
                ended = true;
            }
        }
    }
    if ended { Ok(reply) } else { Err("the stream ended before the completion did".to_owned()) }
}

fn broken(error: &io::Error) -> String {
    format!("the connection broke: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_unknown_fields_are_no_error() {
        let check = |text: &str, expected: Result<ChatReply, &str>| match (read(text.as_bytes()), expected) {
            (Ok(reply), Ok(wanted)) => assert_eq!(reply, wanted, "{text}"),
            (Err(problem), Err(word)) => assert!(problem.contains(word), "{problem}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        let reply = |text: &str, cut, tokens| Ok(ChatReply { text: text.to_owned(), cut, tokens });
        check(
            r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#,
            reply("hi", false, Some((3, 1))),
        );
        check(r#"{"choices":[{"message":{"content":"h"},"finish_reason":"length"}]}"#, reply("h", true, None));
        check(r#"{"choices":[{"message":{"content":"h"}}],"usage":{}}"#, reply("h", false, None));
        check(r#"{"choices":[{"message":{"content":null,"refusal":"no"}}]}"#, reply("no", false, None));
        check(r#"{"choices":[]}"#, Err("without a choice"));
        check(r#"{"choices":[{"message":{"cont"#, Err("not a chat completion"));
        check("<html>", Err("not a chat completion"));
    }

    #[test]
    fn a_stream_ends_at_its_last_event_and_an_early_end_is_an_error() {
        let check = |events: &str, expected: Result<&str, &str>| {
            let mut shown = String::new();
            let found = read_stream(events.as_bytes(), &mut |piece| shown.push_str(piece));
            match (found, expected) {
                (Ok(reply), Ok(text)) => assert_eq!((reply.text.as_str(), shown.as_str()), (text, text)),
                (Err(problem), Err(word)) => assert!(problem.contains(word), "{problem}"),
                (found, _) => panic!("{events}: {found:?}"),
            }
        };
        let event = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
        check(&format!(": hello\n\n{}{}data: [DONE]\n\n", event("a"), event("b")), Ok("ab"));
        check(
            &format!("{}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n", event("a")),
            Ok("a"),
        );
        check(&event("a"), Err("ended before"));
        check("data: {\"choi\n\n", Err("not an event"));
    }
}
