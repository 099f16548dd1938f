//! Turns a response into a value that matches its contract's schema.
//!
//! In: a response's text, perhaps with words before and after its JSON. Out: the value, or everything that is wrong
//! with the text, worded for the model, which is asked to repair it. If a text has no JSON, such as a refusal, its
//! first words are reported.

use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Value};

use super::{contract::Contract, response_cache::PaidResponse};

/// The value, or what is wrong with the text. If the endpoint gives a reason why the text ended, it is reported.
pub(super) fn parse<T: DeserializeOwned>(contract: Contract, response: &PaidResponse) -> Result<T, String> {
    value(contract, response).map_err(|problem| match &response.stopped {
        Some(reason) => format!("it was stopped (finish_reason {reason:?}): {problem}"),
        None => problem,
    })
}

fn value<T: DeserializeOwned>(contract: Contract, response: &PaidResponse) -> Result<T, String> {
    if response.repeats {
        return Err("it repeats the same text over and over; write each thing once and end there".to_owned());
    }
    if response.cut_at.is_some() {
        return Err("it was cut off at the limit of its length (finish_reason \"length\"); be shorter".to_owned());
    }
    // Some models put their JSON between code fences, whatever the prompt says.
    let text = response.text.trim();
    let text = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text);
    let text = text.strip_suffix("```").unwrap_or(text).trim();
    if text.is_empty() {
        return Err("it is empty; write the JSON object".to_owned());
    }
    let whole: Result<Value, _> = serde_json::from_str(text);
    let value = whole.or_else(|e| object_of(contract, text).ok_or_else(|| not_json(text, &e)))?;
    let problems = contract.problems(&value);
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    serde_json::from_value(value).map_err(|e| e.to_string())
}

/// The JSON object of a text with other words: the last that matches the schema, because some models think aloud before
/// their reply and some explain it afterwards. If none does, the last one.
fn object_of(contract: Contract, text: &str) -> Option<Value> {
    let mut found = objects(text);
    let fits = |object: &Option<Value>| object.as_ref().is_some_and(|object| contract.problems(object).is_empty());
    let at = found.iter().rposition(fits).or(found.len().checked_sub(1))?;
    found.swap_remove(at)
}

/// The whole JSON objects of a text, none inside another; `None` for a brace that begins none.
fn objects(text: &str) -> Vec<Option<Value>> {
    /// How many braces are tried.
    const TRIES: usize = 64;
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('{').filter(|_| found.len() < TRIES) {
        rest = rest.get(at..).unwrap_or_default();
        let mut reading = Deserializer::from_str(rest).into_iter::<Value>();
        let object = reading.next().and_then(Result::ok);
        let end = if object.is_some() { reading.byte_offset() } else { 1 };
        found.push(object);
        rest = rest.get(end..).unwrap_or_default();
    }
    found
}

/// What is wrong with a text without a JSON object.
fn not_json(text: &str, error: &serde_json::Error) -> String {
    /// How many characters are reported of what it says instead.
    const TOLD_CHARACTERS: usize = 120;
    if text.starts_with(['{', '[']) {
        return format!("it is not JSON: {error}");
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told: String = words.chars().take(TOLD_CHARACTERS).collect();
    let more = if told.len() < words.len() { " \u{2026}" } else { "" };
    format!("it is not JSON; it says: {}{more}", told.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::ModelUsage;

    #[test]
    fn an_invalid_reply_says_what_is_wrong() {
        let check = |text: &str, cut: bool, word: Option<&str>| {
            let (text, cut_at, usage) = (text.to_owned(), cut.then_some(16), ModelUsage::default());
            let response = PaidResponse { text, cut_at, repeats: false, stopped: None, usage };
            match (parse::<serde_json::Value>(Contract::Judge, &response), word) {
                (Ok(_), None) => {}
                (Err(problem), Some(word)) => assert!(problem.contains(word), "{problem}"),
                (found, _) => panic!("{response:?}: {found:?}"),
            }
        };
        check(r#"{"label": "wrong"}"#, false, None);
        check("```json\n{\"label\": \"wrong\"}\n```", false, None);
        check(r#"I think so. {"a": {}}. </think> {"label": "wrong"}"#, false, None);
        check(r#"{"label": "wrong"} is my answer"#, false, None);
        check("Sure:\n```json\n{\"label\": \"wrong\"}\n```\nHope {this} helps!", false, None);
        check("```json\n{\"label\": 3}\n```\nHope this helps!", false, Some("/label"));
        check("I cannot\nhelp with that.", false, Some("it is not JSON; it says: I cannot help with that."));
        check(&"no ".repeat(100), false, Some(" no no \u{2026}"));
        check(" ", false, Some("it is empty"));
        check(r#"{"label": "wrong"}"#, true, Some("cut off at the limit of its length (finish_reason \"length\")"));
        check(r#"{"label": "wro"#, false, Some("not JSON"));
        check(r#"{"label": 3}"#, false, Some("/label"));
        check(r#"{}"#, false, Some("label"));
    }

    #[test]
    fn the_reason_why_a_text_was_stopped_is_told_and_a_good_text_is_read() {
        for (text, expected) in [
            ("", Err("it was stopped (finish_reason \"content_filter\"): it is empty; write the JSON object")),
            ("{\"lab", Err("it was stopped (finish_reason \"content_filter\"): it is not JSON")),
            ("{\"label\": \"wrong\"}", Ok(())),
        ] {
            let (stopped, usage) = (Some("content_filter".to_owned()), ModelUsage::default());
            let response = PaidResponse { text: text.to_owned(), cut_at: None, repeats: false, stopped, usage };
            match (parse::<serde_json::Value>(Contract::Judge, &response), expected) {
                (Ok(_), Ok(())) => {}
                (Err(problem), Err(words)) => assert!(problem.starts_with(words), "{problem}"),
                (found, _) => panic!("{response:?}: {found:?}"),
            }
        }
    }
}
