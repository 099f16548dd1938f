//! JSON in which every field of an object appears only once.
//!
//! In: JSON. Out: its value, or the field that appears twice. Parsers differ in which of the two they use, so a check
//! in front of us might see another value than the one that is stored.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// A value in which no field appears twice, at any depth.
pub struct UniqueJson(pub Value);

impl<'de> Deserialize<'de> for UniqueJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueJsonVisitor).map(Self)
    }
}

struct UniqueJsonVisitor;

impl<'de> Visitor<'de> for UniqueJsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(UniqueJson(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let UniqueJson(value) = fields.next_value()?;
            if all.contains_key(&name) {
                return Err(A::Error::custom(format_args!("{name}: is given twice")));
            }
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_by_the_library_unless_a_field_stands_twice() {
        for text in [
            r#"{"a": [1, -2, 0.5, 18446744073709551615, 1e300, "x\u0041", null, true, {}], "b": {"a": []}}"#,
            "[]",
            "null",
            "\"a\"",
        ] {
            let UniqueJson(read) = serde_json::from_str(text).unwrap();
            assert_eq!(read, serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        for twice in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"b":{"a":1,"c":2,"a":3}}]"#] {
            let error = serde_json::from_str::<UniqueJson>(twice).err().map(|e| e.to_string()).unwrap();
            assert!(error.starts_with("a: is given twice"), "{error}");
        }
    }
}
