//! The wire format of OpenAI's chat completions.
//!
//! In: messages and a schema; the bytes of a reply as server-sent events. Out: a request's JSON; a reply's text,
//! tokens, and how it ended. Every reply is streamed, so that one that repeats itself is stopped while it is written.
//! Missing or unknown fields are not errors, because endpoints differ. What a model thinks before it answers is not
//! part of the reply, unless there is nothing else. An `error` in the stream means that the endpoint failed, and so
//! does a stream without a completion.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{repetition::RepetitionGuard, thoughts::Thoughts};
use endpoint::ReplyProblem;
use nouns::half_characters::without_half_characters;

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

    /// An earlier reply of the model.
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
    /// Always 0: the most likely answer, and the same one each time, as far as the endpoint can.
    pub(super) temperature: u8,
    pub(super) max_tokens: u32,
    pub(super) response_format: ResponseFormat<'a>,
    /// Always true.
    pub(super) stream: bool,
    pub(super) stream_options: StreamOptions,
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
    /// Byte for byte as in its file, because a model fills the properties in the file's order.
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
    /// Whether it was cut off at `max_tokens`.
    pub(super) cut: bool,
    /// It repeated itself and was stopped; the text ends with the first copy.
    pub(super) repeats: bool,
    /// If it was stopped, the text that had arrived after the first copy, which has to be paid for, too.
    pub(super) unread: String,
    /// Tokens of the prompt and of the completion, if the endpoint reports them.
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
    #[serde(default, alias = "message")]
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
    #[serde(default, alias = "reasoning")]
    reasoning_content: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
struct TokenCounts {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

impl TokenCounts {
    /// `None` if the endpoint sends zeros instead of counting.
    fn reported(self) -> Option<(u64, u64)> {
        (self.prompt_tokens > 0).then_some((self.prompt_tokens, self.completion_tokens))
    }
}

/// The `finish_reason` of a completion that was cut off.
const CUT: &str = "length";

/// The `finish_reason` of a completion that failed.
const FAILED: &str = "error";

/// Reads a stream of events to its end, or until the text repeats itself; `each` receives every piece of text as it
/// arrives. A server that does not stream writes one object, which is read like an event.
pub(super) fn read_stream(reader: impl BufRead, each: &mut dyn FnMut(&str)) -> Result<ChatReply, ReplyProblem> {
    let mut reading = Reading::new(each);
    let mut whole = String::new();
    for line in reader.lines() {
        let line = line.map_err(|e| broken(&e))?;
        match line.strip_prefix("data:").map(str::trim) {
            Some("[DONE]") => {
                reading.ended = true;
                break;
            }
            Some(data) => {
                reading.event(data)?;
                if reading.reply.repeats {
                    // The caller drops the connection, so the server stops writing.
                    return Ok(reading.reply);
                }
            }
            None if !whole.is_empty() || line.trim_start().starts_with('{') => whole.push_str(&line),
            // Other fields of an event, comments and empty lines carry no text.
            None => {}
        }
    }
    if !reading.any && !whole.is_empty() {
        reading.event(&whole)?;
        reading.ended = true;
    }
    reading.finish()
}

/// A completion that is being read.
struct Reading<'a> {
    reply: ChatReply,
    guard: RepetitionGuard,
    thoughts: Thoughts,
    /// The text in the field where some servers put thoughts.
    reasoning: String,
    /// Whether any choice has arrived, and whether the completion is complete.
    any: bool,
    ended: bool,
    each: &'a mut dyn FnMut(&str),
}

impl<'a> Reading<'a> {
    fn new(each: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            reply: ChatReply::default(),
            guard: RepetitionGuard::default(),
            thoughts: Thoughts::default(),
            reasoning: String::new(),
            any: false,
            ended: false,
            each,
        }
    }

    fn event(&mut self, data: &str) -> Result<(), ReplyProblem> {
        let not_one = |e: serde_json::Error| format!("not an event of a completion: {e}");
        let event: Value = serde_json::from_slice(&without_half_characters(data.as_bytes())).map_err(not_one)?;
        if let Some(failed) = ReplyProblem::reported(&event) {
            return Err(failed);
        }
        let event: Completion = serde_json::from_value(event).map_err(not_one)?;
        self.reply.tokens = event.usage.and_then(TokenCounts::reported).or(self.reply.tokens);
        for choice in event.choices {
            self.any = true;
            if let Some(content) = choice.delta {
                self.reasoning.push_str(&content.reasoning_content.unwrap_or_default());
                // A refusal counts as the reply: it matches no schema, so the model is asked to repair it.
                let text = content.content.or(content.refusal).unwrap_or_default();
                let text = self.thoughts.said(&text);
                self.say(&text);
            }
            match choice.finish_reason.as_deref() {
                Some(FAILED) => {
                    let problem = "the completion ended with an error".to_owned();
                    return Err(ReplyProblem::Failed { problem, status: None });
                }
                Some(reason) => (self.reply.cut, self.ended) = (reason == CUT, true),
                None => {}
            }
        }
        Ok(())
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() || self.reply.repeats {
            return;
        }
        (self.each)(text);
        self.reply.text.push_str(text);
        if let Some(first_copy) = self.guard.push(text) {
            self.reply.unread = self.reply.text.split_off(self.reply.text.floor_char_boundary(first_copy));
            self.reply.repeats = true;
        }
    }

    fn finish(mut self) -> Result<ChatReply, ReplyProblem> {
        let last = self.thoughts.end();
        self.say(&last);
        // Some servers put the whole reply where the thoughts belong.
        if self.reply.text.trim().is_empty() {
            self.reply.text = self.reasoning;
        }
        match (self.ended, self.any) {
            (true, true) => Ok(self.reply),
            (true, false) => Err("the stream ended without a completion".to_owned().into()),
            (false, _) => Err("the stream ended before the completion did".to_owned().into()),
        }
    }
}

fn broken(error: &io::Error) -> String {
    format!("the connection broke: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_unknown_fields_are_no_error() {
        let check = |events: &str, text: &str, cut: bool, tokens| {
            let found = read_stream(events.as_bytes(), &mut |_| ()).expect("a reply");
            assert_eq!(found, ChatReply { text: text.to_owned(), cut, tokens, ..ChatReply::default() }, "{events}");
        };
        check(
            "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"},\
             \"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\
             \"completion_tokens\":1,\"total_tokens\":4}}\n\n",
            "hi",
            false,
            Some((3, 1)),
        );
        check("data: {\"choices\":[{\"delta\":{\"content\":\"h\"},\"finish_reason\":\"length\"}]}", "h", true, None);
        check("data: {\"choices\":[{\"delta\":{\"refusal\":\"no\"}}],\"usage\":{}}\ndata: [DONE]\n", "no", false, None);
    }

    #[test]
    fn a_reply_that_repeats_itself_is_stopped_and_keeps_the_first_copy() {
        let again = "Ann said that Bo said that Ann said it. ";
        let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{again}\"}}}}]}}\n\n");
        let (mut shown, stream) = (0, event.repeat(500));
        let found = read_stream(stream.as_bytes(), &mut |piece| shown += piece.len()).expect("a reply");
        assert!(found.repeats && found.text == again && shown < 500, "{found:?}");
        assert_eq!(found.text.len() + found.unread.len(), shown);
    }

    #[test]
    fn what_repeats_may_begin_within_a_character() {
        // The last bytes of "ğ" and "ş" are equal, so the repetition begins between the bytes of "ğ".
        let events = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\u{11f}{}\"}}}}]}}\n\n",
            " Ali geldi ve oturmu\u{15f}".repeat(30)
        );
        let found = read_stream(events.as_bytes(), &mut |_| ()).expect("a reply");
        assert!(found.repeats && found.text.starts_with('a'), "{found:?}");
    }

    #[test]
    fn a_stream_ends_at_its_last_event_and_an_early_end_is_an_error() {
        let check = |events: &str, expected: Result<&str, &str>| {
            let mut shown = String::new();
            let found = read_stream(events.as_bytes(), &mut |piece| shown.push_str(piece));
            match (found, expected) {
                (Ok(reply), Ok(text)) => assert_eq!((reply.text.as_str(), shown.as_str()), (text, text)),
                (Err(problem), Err(word)) => assert!(format!("{problem:?}").contains(word), "{problem:?}"),
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
        check("data: [DONE]\n\n", Err("without a completion"));
        check("data: {\"choices\":[]}\n\ndata: [DONE]\n\n", Err("without a completion"));
    }

    #[test]
    fn an_error_in_the_stream_is_the_endpoints_failure() {
        let said = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        let done = "data: [DONE]\n\n";
        for (events, problem, status) in [
            (
                format!("data: {{\"choices\":[],\"error\":{{\"code\":502,\"message\":\"no worker\"}}}}\n\n{done}"),
                "no worker",
                Some(502),
            ),
            (
                format!(
                    "{said}data: {{\"error\":{{\"code\":\"server_error\",\"message\":\"gone\"}},\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"error\"}}]}}\n\n{done}"
                ),
                "gone",
                None,
            ),
            (
                format!("{said}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"error\"}}]}}\n\n{done}"),
                "the completion ended with an error",
                None,
            ),
            ("{\"error\": {\"message\": \"too long\", \"code\": 400}}".to_owned(), "too long", Some(400)),
        ] {
            let expected = ReplyProblem::Failed { problem: problem.to_owned(), status };
            assert_eq!(read_stream(events.as_bytes(), &mut |_| ()), Err(expected), "{events}");
        }
    }

    #[test]
    fn thoughts_are_no_reply_unless_there_is_nothing_else() {
        let delta =
            |field: &str, text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"{field}\":\"{text}\"}}}}]}}\n\n");
        let done = "data: [DONE]\n\n";
        let whole =
            |message: &str| format!("{{\"choices\": [\n{{\"message\": {{{message}}}, \"finish_reason\": \"stop\"}}]}}");
        for (events, expected) in [
            (delta("content", "<think>hm") + &delta("content", "</think> yes") + done, "yes"),
            (delta("reasoning_content", "hm") + &delta("content", "yes") + done, "yes"),
            (delta("reasoning_content", "ye") + &delta("reasoning", "s") + done, "yes"),
            (delta("content", "half \\ud83d") + done, "half \u{fffd}"),
            (whole("\"content\": \"yes\""), "yes"),
            (whole("\"content\": null, \"reasoning_content\": \"yes\""), "yes"),
        ] {
            assert_eq!(read_stream(events.as_bytes(), &mut |_| ()).expect("a reply").text, expected, "{events}");
        }
    }
}
