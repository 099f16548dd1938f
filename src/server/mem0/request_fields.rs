//! Reads a request, field by field.
//!
//! In: a JSON object or a query. Out: typed values. A field that is not known here is refused by name, since ignoring
//! it could change what the caller gets. A field that is null counts as absent.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::{Map, Value};

use super::{
    entity_ids::EntityIds,
    filters::{self, FilterBranch},
    mem0_failure::Mem0Failure,
};
use crate::query_string::parameters;
use types::model::{EventTime, PrecedingTurn, UniqueJson};

/// The maximum number of messages in a request, and of memories in a batch.
pub(super) const MAX: usize = 1_000;

/// The fields of a request that have not been read yet.
pub(super) struct RequestFields(Map<String, Value>);

/// A message to remember.
pub(super) struct Mem0Message {
    pub(super) role: String,
    pub(super) name: Option<String>,
    pub(super) text: String,
}

impl RequestFields {
    /// The fields of a body; an empty body has none.
    pub(super) fn of_body(bytes: &[u8]) -> Result<Self, Mem0Failure> {
        if bytes.is_empty() {
            return Ok(Self(Map::new()));
        }
        let UniqueJson(body) =
            serde_json::from_slice(bytes).map_err(|e| Mem0Failure::invalid(format!("the body: {e}")))?;
        match body {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Mem0Failure::invalid("the body is not a JSON object")),
        }
    }

    /// The fields of a query.
    pub(super) fn of_query(query: &str) -> Result<Self, Mem0Failure> {
        let mut fields = Map::new();
        for (name, value) in parameters(query).map_err(Mem0Failure::invalid)? {
            if fields.insert(name.clone(), Value::String(value)).is_some() {
                return Err(Mem0Failure::invalid(format!("{name}: is given twice")));
            }
        }
        Ok(Self(fields))
    }

    pub(super) fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    /// A text.
    pub(super) fn text(&mut self, field: &str) -> Result<Option<String>, Mem0Failure> {
        let text = |value| match value {
            Value::String(text) => Ok(text),
            _ => Err(Mem0Failure::invalid(format!("{field}: not a text"))),
        };
        self.take(field).map(text).transpose()
    }

    /// A whole number from 1 to `most`; in a query, it is written in digits.
    pub(super) fn number(&mut self, field: &str, most: usize) -> Result<Option<usize>, Mem0Failure> {
        let number = |value: Value| {
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            let number = number.and_then(|number| usize::try_from(number).ok());
            let bad = || Mem0Failure::invalid(format!("{field}: not a whole number from 1 to {most}"));
            number.filter(|number| (1..=most).contains(number)).ok_or_else(bad)
        };
        self.take(field).map(number).transpose()
    }

    /// The entities of a request that concerns exactly them: fields of their own, and those of `filters`.
    pub(super) fn ids(&mut self) -> Result<EntityIds, Mem0Failure> {
        match self.branches()?.as_slice() {
            [FilterBranch { ids, conditions }] if conditions.is_empty() => Ok(ids.clone()),
            _ => Err(Mem0Failure::unsupported("filters: more than ids")),
        }
    }

    /// The alternatives of a request's filters, with the entities that are fields of their own.
    pub(super) fn branches(&mut self) -> Result<Vec<FilterBranch>, Mem0Failure> {
        let mut ids = EntityIds::default();
        for field in super::entity_ids::FIELDS {
            if let Some(id) = self.text(field)? {
                ids.set(field, &id)?;
            }
        }
        filters::branches(&ids, self.take("filters").as_ref())
    }

    /// A point in time: seconds since 1970, a date, or a time in RFC 3339.
    pub(super) fn time(&mut self, field: &str) -> Result<Option<EventTime>, Mem0Failure> {
        self.take(field).map(|value| parse_time(field, &value)).transpose()
    }

    /// The messages.
    pub(super) fn messages(&mut self) -> Result<Vec<Mem0Message>, Mem0Failure> {
        let messages = match self.take("messages") {
            Some(Value::Array(messages)) if !messages.is_empty() => messages,
            _ => return Err(Mem0Failure::invalid("messages: none; send at least one, with role and content")),
        };
        if messages.len() > MAX {
            return Err(Mem0Failure::invalid(format!("messages: more than {MAX}; split them across several calls")));
        }
        let read = messages.into_iter().enumerate().map(|(index, message)| one_message(index, message));
        let messages: Vec<Mem0Message> = read.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        if messages.is_empty() {
            return Err(Mem0Failure::invalid("messages: all are empty; send at least one with content"));
        }
        Ok(messages)
    }

    /// The last turns of the running conversation, oldest first.
    pub(super) fn said_before(&mut self) -> Result<Vec<PrecedingTurn>, Mem0Failure> {
        let turns = match self.take("said_before") {
            None => return Ok(Vec::new()),
            Some(Value::Array(turns)) => turns,
            Some(_) => return Err(Mem0Failure::invalid("said_before: not a list of turns with speaker and text")),
        };
        let read = |(index, turn): (usize, Value)| {
            serde_json::from_value(turn).map_err(|e| Mem0Failure::invalid(format!("said_before[{index}]: {e}")))
        };
        turns.into_iter().enumerate().map(read).collect()
    }

    /// The memories of a batch.
    pub(super) fn memories(&mut self) -> Result<Vec<Self>, Mem0Failure> {
        let memories = match self.take("memories") {
            Some(Value::Array(memories)) if !memories.is_empty() => memories,
            _ => return Err(Mem0Failure::invalid("memories: none")),
        };
        if memories.len() > MAX {
            return Err(Mem0Failure::invalid(format!("memories: more than {MAX}; split them across several calls")));
        }
        let fields = |memory| match memory {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Mem0Failure::invalid("memories: not objects with memory_id")),
        };
        memories.into_iter().map(fields).collect()
    }

    /// Ends the reading: all remaining fields must be in `indifferent`, the fields that change nothing here.
    pub(super) fn end(self, indifferent: &[&str]) -> Result<(), Mem0Failure> {
        let unknown = |(field, value): &(String, Value)| !value.is_null() && !indifferent.contains(&field.as_str());
        match self.0.into_iter().find(unknown) {
            Some((field, _)) => Err(Mem0Failure::unsupported(field)),
            None => Ok(()),
        }
    }
}

fn parse_time(field: &str, value: &Value) -> Result<EventTime, Mem0Failure> {
    let of_seconds = |seconds: f64| {
        let seconds = Some(seconds).filter(|seconds| seconds.is_finite())?;
        EventTime::new((seconds * 1_000.0) as i64, 0).ok()
    };
    let of_text = |text: &str| {
        let date = || {
            let start = text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?;
            EventTime::new(start.timestamp().as_millisecond(), 0).ok()
        };
        EventTime::read(text).ok().or_else(date).or_else(|| of_seconds(text.parse().ok()?))
    };
    let found = match value {
        Value::Number(seconds) => seconds.as_f64().and_then(of_seconds),
        Value::String(text) => of_text(text),
        _ => None,
    };
    let bad = || Mem0Failure::invalid(format!("{field}: neither seconds since 1970 nor a date such as 2026-01-31"));
    found.ok_or_else(bad)
}

/// The current time.
pub(super) fn now() -> EventTime {
    // The system's clock is between 1900 and 2199.
    let start = EventTime { unix_ms: 0, offset_seconds: 0 };
    EventTime::new(Timestamp::now().as_millisecond(), 0).unwrap_or(start)
}

/// A message; `None` if it has no content and calls no tool, like those that agents send between two calls.
fn one_message(index: usize, message: Value) -> Result<Option<Mem0Message>, Mem0Failure> {
    /// Fields that clients send along and that do not change what was said.
    const INDIFFERENT: [&str; 7] =
        ["tool_call_id", "id", "annotations", "audio", "reasoning_content", "reasoning", "tool_name"];
    let Value::Object(message) = message else {
        return Err(Mem0Failure::invalid(format!("messages[{index}]: not an object with role and content")));
    };
    let mut message = RequestFields(message);
    let role = message.text("role")?.unwrap_or_else(|| "user".to_owned());
    let name = message.text("name")?.filter(|name| !name.trim().is_empty());
    let said = match message.take("content") {
        None => None,
        Some(Value::String(text)) => Some(text),
        Some(Value::Array(parts)) => {
            let parts: Result<Vec<String>, Mem0Failure> = parts.into_iter().map(|part| one_part(index, part)).collect();
            Some(parts?.join("\n"))
        }
        Some(_) => {
            return Err(Mem0Failure::invalid(format!(
                "messages[{index}]: content: neither a text nor a list of texts"
            )));
        }
    };
    let said = said.or(message.text("refusal")?);
    let called = match message.take("tool_calls") {
        None => Vec::new(),
        Some(Value::Array(calls)) => calls.iter().map(tool_call_text).collect(),
        Some(_) => return Err(Mem0Failure::invalid(format!("messages[{index}]: tool_calls: not a list"))),
    };
    let called = called.into_iter().chain(message.take("function_call").as_ref().map(written_call));
    message.end(&INDIFFERENT)?;
    let lines = said.into_iter().chain(called).filter(|line| !line.trim().is_empty());
    let text = lines.collect::<Vec<_>>().join("\n");
    Ok((!text.is_empty()).then_some(Mem0Message { role, name, text }))
}

/// The text of a part of a message's content.
fn one_part(index: usize, part: Value) -> Result<String, Mem0Failure> {
    let other = || Mem0Failure::unsupported(format!("messages[{index}]: content other than text"));
    let Value::Object(part) = part else { return Err(other()) };
    let mut part = RequestFields(part);
    let text = part.text("text").ok().flatten().ok_or_else(other)?;
    part.end(&["type", "annotations", "cache_control"])?;
    Ok(text)
}

/// A tool call as a line: `calls weather({"city": "Oulu"})`.
fn tool_call_text(call: &Value) -> String {
    written_call(call.get("function").unwrap_or(call))
}

fn written_call(function: &Value) -> String {
    let name = function.get("name").and_then(Value::as_str).unwrap_or("a tool");
    let arguments = match function.get("arguments").or_else(|| function.get("args")) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    format!("calls {name}({arguments})")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(messages: Value) -> Result<Vec<(String, String)>, Mem0Failure> {
        let mut fields = RequestFields::of_body(json!({"messages": messages}).to_string().as_bytes())?;
        Ok(fields.messages()?.into_iter().map(|message| (message.role, message.text)).collect())
    }

    #[test]
    fn a_call_of_a_tool_is_kept_and_what_says_nothing_is_left_out() {
        let call = |name: &str, arguments: Value| json!({"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}});
        let found = read(json!([
            {"role": "user", "content": "Is it warm in Oulu?"},
            {"role": "assistant", "content": null, "tool_calls": [call("weather", json!("{\"city\": \"Oulu\"}")), call("clock", Value::Null)]},
            {"role": "assistant", "tool_calls": [], "refusal": null, "annotations": []},
            {"role": "tool", "tool_call_id": "c", "content": "-4"},
            {"role": "assistant", "content": "Let me see.", "tool_calls": [call("weather", json!({"city": "Oulu"}))]},
            {"role": "assistant", "content": ""}
        ]));
        let expected = [
            ("user", "Is it warm in Oulu?"),
            ("assistant", "calls weather({\"city\": \"Oulu\"})\ncalls clock()"),
            ("tool", "-4"),
            ("assistant", "Let me see.\ncalls weather({\"city\":\"Oulu\"})"),
        ];
        assert_eq!(found.ok(), Some(expected.map(|(role, text)| (role.to_owned(), text.to_owned())).to_vec()));
        assert!(read(json!([{"role": "assistant", "content": null}])).is_err(), "nothing is stored, which is told");
        assert!(read(json!([{"role": "user", "content": 5}])).is_err());
        assert!(read(json!([{"role": "user", "content": "a", "mood": "b"}])).is_err(), "a field that is not known");
    }
}
