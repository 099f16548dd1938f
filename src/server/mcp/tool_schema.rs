//! JSON Schemas of tools, in the form that clients take.
//!
//! In: a type. Out: its schema, small and plain. Schemas of inputs have no references and no null, because
//! some models and clients understand neither. Formats such as `uint64` are removed: JSON Schema does not
//! define them, and clients warn about them. Schemas of outputs keep their references, but lose the
//! comments of nested types, which are in `schemas/topics`. Every character of a schema costs context in every
//! conversation.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// The formats that clients know.
const FORMATS: [&str; 2] = ["date-time", "uri"];

/// The schema of what a tool takes.
pub(super) fn input_schema<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    without_null(&mut schema);
    object(schema)
}

/// The schema of what a tool gives.
pub(super) fn output_schema<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| settings.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(definitions) = schema.get_mut("$defs") {
        without_comments(definitions);
    }
    without_limits(&mut schema);
    object(schema)
}

/// The schema of what a tool gives, with its fields alone: what they hold is described in `schemas`.
pub(super) fn shallow_output_schema<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = JsonObject::clone(&output_schema::<T>());
    schema.remove("$defs");
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        let kind = field.get("type").cloned();
        *field = kind.map_or_else(|| json!({}), |kind| json!({ "type": kind }));
    }
    Arc::new(schema)
}

fn object(mut schema: Value) -> Arc<JsonObject> {
    without_formats(&mut schema);
    let mut object = match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    };
    for noise in ["title", "description"] {
        object.remove(noise);
    }
    // A type without fields has no properties; some clients insist on them.
    object.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    Arc::new(object)
}

fn children(schema: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match schema {
        Value::Object(object) => Box::new(object.values_mut()),
        Value::Array(items) => Box::new(items.iter_mut()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Removes all formats except [`FORMATS`].
fn without_formats(schema: &mut Value) {
    if let Value::Object(object) = schema
        && object.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format))
    {
        object.remove("format");
    }
    children(schema).for_each(without_formats);
}

/// Removes the bounds of values: a client need not know those of what this server gives.
fn without_limits(schema: &mut Value) {
    if let Value::Object(object) = schema {
        for limit in ["minimum", "maximum", "minLength", "maxLength", "pattern"] {
            object.remove(limit);
        }
    }
    children(schema).for_each(without_limits);
}

/// Removes descriptions.
fn without_comments(schema: &mut Value) {
    if let Value::Object(object) = schema
        && object.get("description").is_some_and(Value::is_string)
    {
        object.remove("description");
    }
    children(schema).for_each(without_comments);
}

/// Removes null from the schema of optional fields.
fn without_null(schema: &mut Value) {
    if let Value::Object(object) = schema {
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|name| name != "null");
            if let [name] = types.as_slice() {
                let name = name.clone();
                object.insert("type".to_owned(), name);
            }
        }
        if let Some(Value::Array(forms)) = object.get_mut("anyOf") {
            forms.retain(|form| form.get("type").is_none_or(|name| name != "null"));
            if let [Value::Object(form)] = forms.as_mut_slice() {
                let form = std::mem::take(form);
                object.remove("anyOf");
                // The field's own description wins: it says more than that of its type.
                for (key, value) in form {
                    object.entry(key).or_insert(value);
                }
            }
        }
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default");
        }
    }
    children(schema).for_each(without_null);
}
