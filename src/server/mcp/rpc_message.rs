//! Messages of JSON-RPC, as they come from a client.
//!
//! In: the text of a message. Out: the message, or the answer that says what is wrong with it, with its id if that can
//! be read.

use serde_json::{Value, json};

use types::model::UniqueJson;

/// Codes of JSON-RPC.
const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;

/// The answer that says what is wrong with the message that has this id; null if it has none.
pub(super) fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// A body as JSON, without a field that is given twice.
///
/// # Errors
/// The answer that says what is wrong with the body.
pub(super) fn parse_message(bytes: &[u8]) -> Result<Value, Value> {
    match serde_json::from_slice::<UniqueJson>(bytes) {
        Ok(UniqueJson(value)) => Ok(value),
        Err(e) if e.is_data() => Err(error(&Value::Null, INVALID_REQUEST, &format!("{e}; write each field once"))),
        Err(e) => Err(error(&Value::Null, PARSE_ERROR, &format!("the body is not JSON: {e}; send one message"))),
    }
}

/// Checks that a value is a message of JSON-RPC.
///
/// # Errors
/// The answer that says what is wrong with the value.
pub(super) fn check(message: &Value) -> Result<(), Value> {
    let wrong = |why: &str| Err(error(&Value::Null, INVALID_REQUEST, why));
    let Some(message) = message.as_object() else { return wrong("not an object; send one message of JSON-RPC") };
    let id = match message.get("id") {
        None => Value::Null,
        Some(id @ Value::String(_)) => id.clone(),
        Some(id) if id.is_i64() => id.clone(),
        Some(_) => return wrong("id: neither a text nor a whole number from -2^63 to 2^63 - 1"),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(error(&id, INVALID_REQUEST, "jsonrpc: not \"2.0\""));
    }
    let is_answer = message.contains_key("result") || message.contains_key("error");
    if !is_answer && !message.get("method").is_some_and(Value::is_string) {
        return Err(error(&id, INVALID_REQUEST, "method: not a text"));
    }
    if message.get("params").is_some_and(|params| !params.is_object() && !params.is_null()) {
        return Err(error(&id, INVALID_PARAMS, "params: not an object"));
    }
    if is_answer && id.is_null() {
        return wrong("id: missing; an answer names its request");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_answered_as_json_rpc_says() {
        let code = |body: &str| {
            parse_message(body.as_bytes())
                .and_then(|message| check(&message))
                .err()
                .map(|error| (error["error"]["code"].clone(), error["id"].clone()))
        };
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for good in [ping, &ping.replace('1', r#""a""#), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
            assert_eq!(code(good), None, "{good}");
        }
        for (body, expected, id) in [
            ("", PARSE_ERROR, Value::Null),
            ("{", PARSE_ERROR, Value::Null),
            ("[]", INVALID_REQUEST, Value::Null),
            ("5", INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":true,"), INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":1.5,"), INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":9223372036854775808,"), INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":null,"), INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":{},"), INVALID_REQUEST, Value::Null),
            (&ping.replace("2.0", "1.0"), INVALID_REQUEST, json!(1)),
            (&ping.replace("\"ping\"", "7"), INVALID_REQUEST, json!(1)),
            (&ping.replace("\"id\":1", "\"id\":1,\"id\":2"), INVALID_REQUEST, Value::Null),
            (&ping.replace("\"ping\"", "\"ping\",\"params\":[1]"), INVALID_PARAMS, json!(1)),
            (r#"{"jsonrpc":"2.0","result":{}}"#, INVALID_REQUEST, Value::Null),
        ] {
            assert_eq!(code(body), Some((json!(expected), id)), "{body}");
        }
    }
}
