//! The wire format of OpenAI's chat completions.
//!
//! In: messages and a schema; the bytes of a reply as server-sent events. Out: a request's JSON; a reply's text,
//! tokens, and how it ended. Every reply is streamed, so that one that repeats itself is stopped while it is written.
//! Missing, unknown and oddly written fields are not errors, because endpoints differ. What a model thinks before it
//! answers is not part of the reply, unless there is nothing else. An `error` in the stream means that the endpoint
//! failed, and so does a stream without a completion. A complete reply that is no JSON counts as the model's reply.

use std::io::{self, BufRead};

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{repetition::RepetitionGuard, thought_filter::ThoughtFilter};
use endpoint::{ReplyProblem, reply_text};
use types::lone_surrogates::replace_lone_surrogates;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LlmMessage {
    role: &'static str,
    content: String,
}

impl LlmMessage {
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
pub(super) struct ChatRequestBody<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [LlmMessage],
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
    /// Its `finish_reason`, if that is another than its end or `max_tokens`, such as `content_filter`.
    pub(super) stopped: Option<String>,
    /// It repeated itself and was stopped; the text ends with the first copy.
    pub(super) repeats: bool,
    /// If it was stopped, the text that had arrived after the first copy; it costs tokens, too.
    pub(super) unread: String,
    /// Tokens of the prompt and of the completion, if the endpoint reports them.
    pub(super) tokens: Option<(u64, u64)>,
}

/// The `finish_reason` of a completion that was cut off.
const CUT: &str = "length";

/// The `finish_reason` of a completion that came to its end.
const ENDED: &str = "stop";

/// The longest `finish_reason` that is reported.
const REASON_CHARACTERS: usize = 64;

/// The `finish_reason` of a completion that failed.
const FAILED: &str = "error";

/// A count of tokens from here on is not believed.
const TOKENS_LIMIT: f64 = 1e12;

/// How much is kept of a completion that is no JSON.
const UNREADABLE_BYTES: usize = 4_096;

/// Reads a stream of events to its end, or until the text repeats itself; `each` receives every piece of text as it
/// arrives. A server that does not stream writes one object, which is read like an event.
pub(super) fn read_stream(reader: impl BufRead, each: &mut dyn FnMut(&str)) -> Result<ChatReply, ReplyProblem> {
    let mut reading = CompletionReader::new(each);
    let mut whole = String::new();
    for line in reader.split(b'\n') {
        let line = line.map_err(|e| broken(&e))?;
        let line = reply_text(&line);
        match line.strip_prefix("data:").map(str::trim) {
            Some("[DONE]") => {
                reading.ended = true;
                break;
            }
            Some(data) if !data.is_empty() => {
                reading.event(data)?;
                if reading.reply.repeats {
                    // The caller drops the connection, so the server stops writing.
                    return Ok(reading.reply);
                }
            }
            None if !whole.is_empty() || line.trim_start().starts_with('{') => whole.push_str(&line),
            // Other fields of an event, comments and empty lines carry no text.
            _ => {}
        }
    }
    if !reading.any && !whole.is_empty() {
        reading.event(&whole)?;
        reading.ended = true;
    }
    reading.finish()
}

/// A completion that is being read.
struct CompletionReader<'a> {
    reply: ChatReply,
    guard: RepetitionGuard,
    thoughts: ThoughtFilter,
    /// The text in the field where some servers put thoughts.
    reasoning: String,
    /// The beginning of the first completion that is no JSON.
    unreadable: Option<String>,
    /// Whether any choice has arrived, and whether the completion is complete.
    any: bool,
    ended: bool,
    each: &'a mut dyn FnMut(&str),
}

impl<'a> CompletionReader<'a> {
    fn new(each: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            reply: ChatReply::default(),
            guard: RepetitionGuard::default(),
            thoughts: ThoughtFilter::default(),
            reasoning: String::new(),
            unreadable: None,
            any: false,
            ended: false,
            each,
        }
    }

    fn event(&mut self, data: &str) -> Result<(), ReplyProblem> {
        let event: Value = match serde_json::from_slice(&replace_lone_surrogates(data.as_bytes())) {
            Ok(event) => event,
            // Some servers keep a connection alive with words.
            Err(_) if !data.trim_start().starts_with('{') => return Ok(()),
            // The connection may have ended in the middle of the event, or the answer is not a model's.
            Err(e) if e.is_eof() || !data.contains("choices") => {
                return Err(format!("not an event of a completion: {e}").into());
            }
            // A retry would bring the same, so it counts as the model's reply.
            Err(_) => {
                let beginning = data.get(..data.floor_char_boundary(UNREADABLE_BYTES)).unwrap_or_default();
                self.unreadable.get_or_insert_with(|| beginning.to_owned());
                self.any = true;
                return Ok(());
            }
        };
        if let Some(failed) = ReplyProblem::reported(&event) {
            return Err(failed);
        }
        self.reply.tokens = reported_tokens(&event).or(self.reply.tokens);
        for choice in event.get("choices").and_then(Value::as_array).into_iter().flatten() {
            self.any = true;
            if let Some(failed) = ReplyProblem::reported(choice) {
                return Err(failed);
            }
            // A server that does not stream writes `message`, and some write both.
            let field =
                |name: &str| ["delta", "message"].iter().find_map(|part| written(choice.get(*part)?.get(name)?));
            let thought = field("reasoning_content").or_else(|| field("reasoning"));
            self.reasoning.push_str(&thought.unwrap_or_default());
            // A refusal counts as the reply: it matches no schema, so the model is asked to repair it.
            let text = field("content").or_else(|| field("refusal")).unwrap_or_default();
            let text = self.thoughts.visible_text(&text);
            self.say(&text);
            match choice.get("finish_reason").and_then(Value::as_str) {
                Some(FAILED) => {
                    let problem = "the completion ended with an error".to_owned();
                    return Err(ReplyProblem::Failed { problem, status: None });
                }
                Some(reason) => {
                    let stopped = (!matches!(reason, CUT | ENDED | "")).then_some(reason);
                    self.reply.stopped = stopped.map(|reason| reason.chars().take(REASON_CHARACTERS).collect());
                    (self.reply.cut, self.ended) = (reason == CUT, true);
                }
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
        // Without the unreadable event, the text may lack words and still parse.
        if let Some(data) = self.unreadable {
            self.reply.text = data;
        }
        match (self.ended, self.any) {
            (true, true) => Ok(self.reply),
            (true, false) => Err("the stream ended without a completion".to_owned().into()),
            (false, _) => Err("the stream ended before the completion did".to_owned().into()),
        }
    }
}

/// The text of a field: a string, an object with a text, or a list of both. Any other object is the model's JSON, which
/// the server has read already. `None` if there is no text.
fn written(field: &Value) -> Option<String> {
    fn text(part: &Value) -> Option<&str> {
        part.as_str().or_else(|| part.get("text")?.as_str())
    }
    let found: String = match field {
        Value::Array(parts) => parts.iter().filter_map(text).collect(),
        Value::Object(object) if !object.is_empty() => text(field).map_or_else(|| field.to_string(), str::to_owned),
        _ => text(field)?.to_owned(),
    };
    Some(found).filter(|found| !found.is_empty())
}

/// Tokens of the prompt and of the completion; `None` if the endpoint sends nulls or zeros instead of counting. Some
/// endpoints write whole numbers as `12.0`.
fn reported_tokens(event: &Value) -> Option<(u64, u64)> {
    let usage = event.get("usage")?;
    let count = |name: &str| usage.get(name)?.as_f64().filter(|n| (0.0..TOKENS_LIMIT).contains(n)).map(|n| n as u64);
    let prompt_tokens = count("prompt_tokens").filter(|tokens| *tokens > 0)?;
    Some((prompt_tokens, count("completion_tokens")?))
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

    /// Replies of real servers and gateways, each complete, as one object and as events.
    #[test]
    fn an_odd_reply_that_can_be_read_is_read() {
        let whole = |message: &str, more: &str| {
            format!("{{\"choices\":[{{\"message\":{{{message}}},\"finish_reason\":\"stop\"}}]{more}}}")
        };
        let said = "\"content\":\"yes\"";
        let parts = "\"content\":[{\"type\":\"thinking\",\"thinking\":[]},{\"type\":\"text\",\"text\":\"ye\"},\"s\"]";
        let both = "\"reasoning\":\"hm\",\"reasoning_content\":\"hm\"";
        for reply in [
            whole(parts, ""),
            whole("\"content\":{\"type\":\"text\",\"text\":\"yes\"}", ""),
            whole(&format!("{said},{both}"), ""),
            whole(&format!("{said},\"reasoning\":null,\"reasoning_content\":null"), ""),
            whole(&format!("\"content\":\"\",{}", both.replace("hm", "yes")), ""),
            whole("\"content\":\"\",\"refusal\":\"yes\"", ""),
            whole(said, ",\"usage\":{\"prompt_tokens\":null,\"completion_tokens\":null}"),
            whole(said, ",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":-1}"),
            whole(said, ",\"usage\":[]"),
            whole(said, ",\"error\":false"),
            whole(said, ",\"error\":{}"),
        ] {
            let event = format!("data: {}\r\n\r\n", reply.replace("\"message\"", "\"delta\""));
            let closing = "data: ping\n\ndata:\n\ndata: {\"choices\":null,\"error\":\"\"}\n\ndata: [DONE]\n\n";
            for bytes in [format!("\u{feff}{reply}"), format!("\u{feff}{event}{closing}"), reply] {
                let found = read_stream(bytes.as_bytes(), &mut |_| ()).expect(&bytes);
                assert_eq!((found.text.as_str(), found.cut, found.tokens), ("yes", false, None), "{bytes}");
            }
        }
        let empty_delta = whole(&format!("{said}}},\"delta\":{{"), "");
        assert_eq!(read_stream(empty_delta.as_bytes(), &mut |_| ()).expect("a reply").text, "yes");
        let floats = whole(said, ",\"usage\":{\"prompt_tokens\":12.0,\"completion_tokens\":3.0}");
        assert_eq!(read_stream(floats.as_bytes(), &mut |_| ()).expect("a reply").tokens, Some((12, 3)));
        let object = whole("\"content\":{\"label\":\"wrong\"}", "");
        assert_eq!(read_stream(object.as_bytes(), &mut |_| ()).expect("a reply").text, "{\"label\":\"wrong\"}");
        let bytes = whole("\"content\":\"a ? b\"", "").into_bytes();
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte == b'?' { 0xff } else { byte }).collect();
        assert_eq!(read_stream(&*bytes, &mut |_| ()).expect("a reply").text, "a \u{fffd} b");
    }

    /// A retry would bring the same: the model is asked to repair it, and then the window is given up.
    #[test]
    fn a_complete_reply_that_is_no_json_is_the_models_and_a_page_is_none() {
        let odd = "{\"choices\":[{\"message\":{\"content\":\"yes\"},\"logprobs\":NaN,\"finish_reason\":\"stop\"}]}";
        let first = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        for (reply, complete) in [
            (odd.to_owned(), true),
            (format!("{first}data: {odd}\n\ndata: [DONE]\n\n"), true),
            (format!("{first}data: {odd}\n\n"), false),
            (odd.replace("NaN", "0").replace("}]}", ""), false),
            ("<html>\n{ color: red }\n</html>".to_owned(), false),
        ] {
            let found = read_stream(reply.as_bytes(), &mut |_| ());
            match found {
                Ok(found) => assert!(complete && found.text == odd, "{reply}: {found:?}"),
                Err(ReplyProblem::Unreadable(_)) => assert!(!complete, "{reply}"),
                Err(failed) => panic!("{reply}: {failed:?}"),
            }
        }
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
            (
                "{\"choices\":[{\"error\":{\"code\":400,\"message\":\"too long\"},\"finish_reason\":\"error\"}]}"
                    .to_owned(),
                "too long",
                Some(400),
            ),
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
