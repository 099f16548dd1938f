//! Turns a response into a value that matches its contract's schema.
//!
//! In: a response's text. Out: the value, or everything that is wrong with the text, worded for
//! the model, which is asked to repair it.

use serde::de::DeserializeOwned;

use super::{cache::Response, contract::Contract};

/// The value, or what is wrong with the text.
pub(super) fn parse<T: DeserializeOwned>(contract: Contract, response: &Response) -> Result<T, String> {
    if response.repeats {
        return Err("it repeats the same text over and over; write each thing once and end there".to_owned());
    }
    if response.cut_at.is_some() {
        return Err("it was cut off at the limit of its length; be shorter".to_owned());
    }
    // Some models put their JSON between code fences, whatever the prompt says.
    let text = response.text.trim();
    let text = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text);
    let text = text.strip_suffix("```").unwrap_or(text).trim();
    if text.is_empty() {
        return Err("it is empty; write the JSON object".to_owned());
    }
    let whole = || serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"));
    let value: serde_json::Value = whole().or_else(|problem| at_the_end(text).ok_or(problem))?;
    let problems = contract.problems(&value);
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    serde_json::from_value(value).map_err(|e| e.to_string())
}

/// The JSON object at the end of a text, because some models think aloud before it.
fn at_the_end(text: &str) -> Option<serde_json::Value> {
    /// How many places are tried.
    const TRIES: usize = 64;
    let places = text.match_indices('{').map(|(at, _)| at).take(TRIES);
    places.filter_map(|at| text.get(at..)).find_map(|object| serde_json::from_str(object).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nouns::model::Usage;

    #[test]
    fn an_invalid_reply_says_what_is_wrong() {
        let check = |text: &str, cut: bool, word: Option<&str>| {
            let response =
                Response { text: text.to_owned(), cut_at: cut.then_some(16), repeats: false, usage: Usage::default() };
            match (parse::<serde_json::Value>(Contract::Judge, &response), word) {
                (Ok(_), None) => {}
                (Err(problem), Some(word)) => assert!(problem.contains(word), "{problem}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        };
        check(r#"{"label": "wrong"}"#, false, None);
        check("```json\n{\"label\": \"wrong\"}\n```", false, None);
        check(r#"I think so. {"a": {}}. </think> {"label": "wrong"}"#, false, None);
        check(r#"{"label": "wrong"} is my answer"#, false, Some("not JSON"));
        check(" ", false, Some("it is empty"));
        check(r#"{"label": "wrong"}"#, true, Some("cut off"));
        check(r#"{"label": "wro"#, false, Some("not JSON"));
        check(r#"{"label": 3}"#, false, Some("/label"));
        check(r#"{}"#, false, Some("label"));
    }
}
