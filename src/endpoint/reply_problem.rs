//! What is wrong with a reply that began well.
//!
//! In: a reply with status 200, or a part of one. Out: whether the endpoint says that it failed, or the reply cannot be
//! read. Many servers, and the gateways in front of them, write an `error` in place of a completion or vectors.

use serde_json::Value;

/// The maximum number of characters of the endpoint's message that an error repeats.
const MAX_MESSAGE_CHARACTERS: usize = 300;

/// What is wrong with a reply of status 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyProblem {
    /// The endpoint says that it failed.
    Failed {
        /// Its message.
        problem: String,
        /// The status that it would have answered with, if it names one.
        status: Option<u16>,
    },
    /// It cannot be read.
    Unreadable(String),
}

impl ReplyProblem {
    /// The failure that a reply, an event of a stream or a choice in it reports; `None` if it reports none.
    #[must_use]
    pub fn reported(reply: &Value) -> Option<Self> {
        let error = reply.get("error").filter(|error| tells_something(error))?;
        let code = ["code", "status", "status_code"].into_iter().find_map(|key| error.get(key));
        let status = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        let message = error_message(&reply.to_string());
        Some(Self::Failed {
            problem: if message.is_empty() { "it failed without a message".to_owned() } else { message },
            status: status.and_then(|status| u16::try_from(status).ok()).filter(|status| *status >= 400),
        })
    }
}

impl From<String> for ReplyProblem {
    fn from(problem: String) -> Self {
        Self::Unreadable(problem)
    }
}

/// Whether the value of `error` reports a failure. Some servers write `false`, `0`, an empty text or `{"message": ""}`
/// beside a good reply.
fn tells_something(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(failed) => *failed,
        Value::Number(code) => code.as_i64() != Some(0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(errors) => errors.iter().any(tells_something),
        Value::Object(fields) => fields.values().any(tells_something),
    }
}

/// `error.message` of a JSON body, or the other fields that endpoints use; else the body's beginning.
pub(super) fn error_message(body: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let message = ["/error/message", "/error", "/message", "/detail"].iter().find_map(|p| json.pointer(p)?.as_str());
    let line = message.unwrap_or(body).split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_MESSAGE_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_in_a_reply_is_found_with_its_message_and_status() {
        for (reply, problem, status) in [
            (json!({"error": {"message": "worker limit", "code": 502}, "choices": []}), "worker limit", Some(502)),
            (json!({"error": {"message": "too long", "code": "400"}}), "too long", Some(400)),
            (json!({"error": {"message": "gone", "code": "server_error"}}), "gone", None),
            (json!({"error": "out of memory"}), "out of memory", None),
        ] {
            let expected = ReplyProblem::Failed { problem: problem.to_owned(), status };
            assert_eq!(ReplyProblem::reported(&reply), Some(expected), "{reply}");
        }
        for reply in [json!({"choices": []}), json!([1])] {
            assert_eq!(ReplyProblem::reported(&reply), None, "{reply}");
        }
        for error in [json!(null), json!(false), json!(0), json!(""), json!({}), json!({"message": "", "code": null})] {
            let reply = json!({"error": error, "data": []});
            assert_eq!(ReplyProblem::reported(&reply), None, "{reply}");
        }
    }

    #[test]
    fn the_error_message_is_found_and_cut() {
        assert_eq!(error_message(r#"{"error":{"message":"no such\n model","code":1}}"#), "no such model");
        assert_eq!(error_message(r#"{"error":"model 'x' not found"}"#), "model 'x' not found");
        assert_eq!(error_message("<html>down</html>"), "<html>down</html>");
        assert_eq!(error_message(&"x".repeat(9_999)).len(), MAX_MESSAGE_CHARACTERS);
    }
}
