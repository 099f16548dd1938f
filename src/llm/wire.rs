//! The protocol: what a chat endpoint is sent, and what it says.
//!
//! In: messages and a schema; the bytes of a reply, whole or as a stream of events. Out: a
//! request's JSON, and the text, tokens and end of a reply. Fields that endpoints leave out or
//! add are no error; a reply without a message is one.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Message {
    role: &'static str,
    content: String,
}

impl Message {
    pub(super) fn system(content: &str) -> Self {
        Self { role: "system", content: content.to_owned() }
    }

    pub(super) fn user(content: &str) -> Self {
        Self { role: "user", content: content.to_owned() }
    }

    /// What the model said before.
    pub(super) fn assistant(content: &str) -> Self {
        Self { role: "assistant", content: content.to_owned() }
    }

    pub(super) fn content(&self) -> &str {
        &self.content
    }
}

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [Message],
    /// Always 0: the likeliest answer, and as far as the endpoint can, the same one again.
    pub(super) temperature: u8,
    pub(super) max_tokens: u32,
    pub(super) response_format: Format<'a>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
}

/// What the text of a completion must be.
#[derive(Debug, Serialize)]
pub(super) struct Format<'a> {
    r#type: &'static str,
    json_schema: Schema<'a>,
}

#[derive(Debug, Serialize)]
struct Schema<'a> {
    name: &'static str,
    strict: bool,
    /// As it stands in its file: a model fills the properties in their order.
    schema: &'a RawValue,
}

impl<'a> Format<'a> {
    /// JSON by a schema, which has a name.
    pub(super) fn schema(name: &'static str, schema: &'a RawValue) -> Self {
        Self { r#type: "json_schema", json_schema: Schema { name, strict: true, schema } }
    }
}

/// What a stream tells besides the text.
#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Reply {
    /// What the model said.
    pub(super) text: String,
    /// It was cut at the limit of a completion's tokens.
    pub(super) cut: bool,
    /// Tokens of the prompt and the completion, where the endpoint says so.
    pub(super) tokens: Option<(u64, u64)>,
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    message: Option<Said>,
    #[serde(default)]
    delta: Option<Said>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Said {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

impl Usage {
    /// The tokens; none where the endpoint fills the field without counting.
    fn counted(self) -> Option<(u64, u64)> {
        (self.prompt_tokens > 0).then_some((self.prompt_tokens, self.completion_tokens))
    }
}

/// The end that says that a completion was cut.
const CUT: &str = "length";

/// Reads a whole reply.
pub(super) fn read_all(reader: &mut dyn BufRead) -> Result<Reply, String> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|e| broken(&e))?;
    read(&bytes)
}

fn read(bytes: &[u8]) -> Result<Reply, String> {
    let completion: Completion = serde_json::from_slice(bytes).map_err(|e| format!("not a chat completion: {e}"))?;
    let tokens = completion.usage.and_then(Usage::counted);
    let choice = completion.choices.into_iter().next().ok_or("a chat completion without a choice")?;
    let said = choice.message.ok_or("a chat completion without a message")?;
    // A refusal is what the model said: it fits no schema, and is told as such.
    let text = said.content.or(said.refusal).unwrap_or_default();
    Ok(Reply { text, cut: choice.finish_reason.as_deref() == Some(CUT), tokens })
}

/// Reads a stream of events to its end; `each` sees every piece of text as it comes.
pub(super) fn read_stream(reader: impl BufRead, each: &mut dyn FnMut(&str)) -> Result<Reply, String> {
    let mut reply = Reply::default();
    let mut ended = false;
    for line in reader.lines() {
        let line = line.map_err(|e| broken(&e))?;
        // Other fields of an event, comments and empty lines say nothing here.
        let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
        if data == "[DONE]" {
            ended = true;
            break;
        }
        let event: Completion = serde_json::from_str(data).map_err(|e| format!("not an event of a completion: {e}"))?;
        reply.tokens = event.usage.and_then(Usage::counted).or(reply.tokens);
        for choice in event.choices {
            if let Some(text) = choice.delta.and_then(|said| said.content.or(said.refusal)) {
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
    fn replies_are_read_leniently() {
        let check = |text: &str, expected: Result<Reply, &str>| match (read(text.as_bytes()), expected) {
            (Ok(reply), Ok(wanted)) => assert_eq!(reply, wanted, "{text}"),
            (Err(problem), Err(word)) => assert!(problem.contains(word), "{problem}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        let reply = |text: &str, cut, tokens| Ok(Reply { text: text.to_owned(), cut, tokens });
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
    fn a_stream_is_read_to_its_end_and_no_further() {
        let check = |events: &str, expected: Result<&str, &str>| {
            let mut shown = String::new();
            let found = read_stream(events.as_bytes(), &mut |piece| shown.push_str(piece));
            match (found, expected) {
                (Ok(reply), Ok(text)) => assert_eq!((reply.text.as_str(), shown.as_str()), (text, text)),
                (Err(problem), Err(word)) => assert!(problem.contains(word), "{problem}"),
                (found, _) => panic!("{events}: {found:?}"),
            }
        };
        let said = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
        check(&format!(": hello\n\n{}{}data: [DONE]\n\n", said("a"), said("b")), Ok("ab"));
        check(
            &format!("{}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n", said("a")),
            Ok("a"),
        );
        check(&said("a"), Err("ended before"));
        check("data: {\"choi\n\n", Err("not an event"));
    }
}
