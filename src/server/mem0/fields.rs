//! What a request says, field by field.
//!
//! In: a JSON object or a query. Out: typed values. A field that is not known here is refused by name, since to
//! ignore it could change what the caller gets; one that is null says nothing.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::{Map, Value};

use super::{failure::Failure, ids::Ids};
use crate::query::parameters;
use nouns::model::{EventTime, UniqueJson};

/// Most messages of one request, and most memories of a batch.
pub(super) const MOST: usize = 1_000;

/// The fields of a request that were not read yet.
pub(super) struct Fields(Map<String, Value>);

/// A message to remember.
pub(super) struct Message {
    pub(super) role: String,
    pub(super) name: Option<String>,
    pub(super) text: String,
}

impl Fields {
    /// The fields of a body; an empty body has none.
    pub(super) fn of_body(bytes: &[u8]) -> Result<Self, Failure> {
        if bytes.is_empty() {
            return Ok(Self(Map::new()));
        }
        let UniqueJson(body) = serde_json::from_slice(bytes).map_err(|e| Failure::invalid(format!("the body: {e}")))?;
        match body {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Failure::invalid("the body is no JSON object")),
        }
    }

    /// The fields of a query.
    pub(super) fn of_query(query: &str) -> Result<Self, Failure> {
        let mut fields = Map::new();
        for (name, value) in parameters(query).map_err(Failure::invalid)? {
            if fields.insert(name.clone(), Value::String(value)).is_some() {
                return Err(Failure::invalid(format!("{name}: stands twice")));
            }
        }
        Ok(Self(fields))
    }

    pub(super) fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    /// A text.
    pub(super) fn text(&mut self, field: &str) -> Result<Option<String>, Failure> {
        let text = |value| match value {
            Value::String(text) => Ok(text),
            _ => Err(Failure::invalid(format!("{field}: not a text"))),
        };
        self.take(field).map(text).transpose()
    }

    /// A whole number from 1 to `most`, also as digits in a query.
    pub(super) fn number(&mut self, field: &str, most: usize) -> Result<Option<usize>, Failure> {
        let number = |value: Value| {
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            let number = number.and_then(|number| usize::try_from(number).ok());
            let bad = || Failure::invalid(format!("{field}: not a whole number from 1 to {most}"));
            number.filter(|number| (1..=most).contains(number)).ok_or_else(bad)
        };
        self.take(field).map(number).transpose()
    }

    /// The entities: fields of their own, and those of `filters`.
    pub(super) fn ids(&mut self) -> Result<Ids, Failure> {
        let mut ids = Ids::default();
        for field in super::ids::FIELDS {
            if let Some(id) = self.text(field)? {
                ids.set(field, &id)?;
            }
        }
        if let Some(filters) = self.take("filters") {
            filter(&filters, &mut ids)?;
        }
        Ok(ids)
    }

    /// A moment: seconds since 1970, a date, or a time in RFC 3339.
    pub(super) fn time(&mut self, field: &str) -> Result<Option<EventTime>, Failure> {
        self.take(field).map(|value| moment(field, &value)).transpose()
    }

    /// The messages.
    pub(super) fn messages(&mut self) -> Result<Vec<Message>, Failure> {
        let messages = match self.take("messages") {
            Some(Value::Array(messages)) if !messages.is_empty() => messages,
            _ => return Err(Failure::invalid("messages: none; send at least one, with role and content")),
        };
        if messages.len() > MOST {
            return Err(Failure::invalid(format!("messages: more than {MOST}; divide them among several calls")));
        }
        messages.into_iter().enumerate().map(|(index, message)| one_message(index, message)).collect()
    }

    /// The memories of a batch.
    pub(super) fn memories(&mut self) -> Result<Vec<Self>, Failure> {
        let memories = match self.take("memories") {
            Some(Value::Array(memories)) if !memories.is_empty() => memories,
            _ => return Err(Failure::invalid("memories: none")),
        };
        if memories.len() > MOST {
            return Err(Failure::invalid(format!("memories: more than {MOST}; divide them among several calls")));
        }
        let fields = |memory| match memory {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Failure::invalid("memories: not objects with memory_id")),
        };
        memories.into_iter().map(fields).collect()
    }

    /// Ends the reading: what is left must be in `indifferent`, fields that change nothing here.
    pub(super) fn end(self, indifferent: &[&str]) -> Result<(), Failure> {
        let unknown = |(field, value): &(String, Value)| !value.is_null() && !indifferent.contains(&field.as_str());
        match self.0.into_iter().find(unknown) {
            Some((field, _)) => Err(Failure::unsupported(field)),
            None => Ok(()),
        }
    }
}

/// Adds the entities of a filter: ids, alone or joined by `AND`.
fn filter(filters: &Value, ids: &mut Ids) -> Result<(), Failure> {
    let Some(filters) = filters.as_object() else { return Err(Failure::invalid("filters: not an object")) };
    for (field, value) in filters {
        match (field.as_str(), value) {
            (_, Value::Null) => {}
            ("AND", Value::Array(all)) => all.iter().try_for_each(|filters| filter(filters, ids))?,
            (_, Value::String(id)) if id == "*" => return Err(Failure::unsupported(format!("filters: {field} of *"))),
            (_, Value::String(id)) if ids.set(field, id)? => {}
            _ => return Err(Failure::unsupported(format!("filters: {field}"))),
        }
    }
    Ok(())
}

fn moment(field: &str, value: &Value) -> Result<EventTime, Failure> {
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
    let bad = || Failure::invalid(format!("{field}: neither seconds since 1970 nor a date such as 2026-01-31"));
    found.ok_or_else(bad)
}

/// The moment of now.
pub(super) fn now() -> EventTime {
    // The system's clock stands between 1900 and 2199.
    let start = EventTime { unix_ms: 0, offset_seconds: 0 };
    EventTime::new(Timestamp::now().as_millisecond(), 0).unwrap_or(start)
}

fn one_message(index: usize, message: Value) -> Result<Message, Failure> {
    let Value::Object(message) = message else {
        return Err(Failure::invalid(format!("messages[{index}]: not an object with role and content")));
    };
    let mut message = Fields(message);
    let role = message.text("role")?.unwrap_or_else(|| "user".to_owned());
    let name = message.text("name")?.filter(|name| !name.trim().is_empty());
    let text = match message.take("content") {
        Some(Value::String(text)) => text,
        Some(Value::Array(parts)) => {
            let parts: Option<Vec<&str>> = parts.iter().map(|part| part.get("text")?.as_str()).collect();
            parts.ok_or_else(|| Failure::unsupported(format!("messages[{index}]: content other than text")))?.join("\n")
        }
        _ => return Err(Failure::invalid(format!("messages[{index}]: no content"))),
    };
    message.end(&[])?;
    Ok(Message { role, name, text })
}
