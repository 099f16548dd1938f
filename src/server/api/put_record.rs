//! The form of a record that is sent to be written.
//!
//! In: the schema of the turns topic. Out: the schema of what POST /v1/turns takes: a turn and a deletion may have a
//! condition, and the records that only the service writes are left out.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use types::model::TurnEvent;

/// What only the service writes, and the names of its parts.
const OF_THE_SERVICE: [&str; 2] = ["conditional", "verdict"];
const PARTS_OF_THE_SERVICE: [&str; 3] = ["TurnChange", "Refused", "Decided"];

/// A record as a caller sends it. Only its schema is used.
pub(super) struct PutRecord;

impl JsonSchema for PutRecord {
    fn schema_name() -> Cow<'static, str> {
        "TurnEvent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut own = generator.settings().clone().into_generator();
        let mut schema = TurnEvent::json_schema(&mut own);
        for (name, part) in own.take_definitions(false) {
            if !PARTS_OF_THE_SERVICE.contains(&name.as_str()) {
                generator.definitions_mut().entry(name).or_insert(part);
            }
        }
        if let Some(variants) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
            let name =
                |variant: &Value| variant.pointer("/properties/type/const").and_then(Value::as_str).map(str::to_owned);
            variants.retain(|variant| name(variant).is_none_or(|name| !OF_THE_SERVICE.contains(&name.as_str())));
            let versioned = variants.iter_mut().filter_map(|variant| variant.get_mut("properties")?.as_object_mut());
            for fields in versioned.filter(|fields| fields.contains_key("version")) {
                let about = "The version that must stand, or nothing is written; 0 if the turn must be absent or \
                             deleted. Needs to stand alone in its request, or `together`.";
                let expected = json!({ "description": about, "type": ["integer", "null"], "minimum": 0 });
                fields.insert("expected_version".to_owned(), expected);
                let Some(version) = fields.get_mut("version").and_then(Value::as_object_mut) else { continue };
                version.remove("type");
                version.remove("minimum");
                let number = json!({ "type": "integer", "minimum": 0 });
                let next = json!({ "type": "string", "const": "next" });
                version.insert("anyOf".to_owned(), json!([number, next, { "type": "null" }]));
                let about = version.get("description").and_then(Value::as_str).unwrap_or_default();
                let about =
                    format!("{about} `next`: the service chooses the next one, and the same content changes nothing.");
                version.insert("description".to_owned(), about.into());
            }
        }
        schema.insert("description".to_owned(), "A record to write; one without `type` is a turn.".into());
        schema
    }
}
