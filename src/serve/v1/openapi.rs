//! The OpenAPI document of `/v1`, from the types of the calls.
//!
//! In: nothing. Out: the text of `schemas/openapi.v1.json`; a test fails when they drift apart.

use std::sync::LazyLock;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use super::body::MAX_BYTES;
use crate::{
    model::Evidence,
    serve::api::{Ask, Banks, Digest, Forgotten, Problem, Put, Status, WrittenTurns},
};

static DOCUMENT: LazyLock<String> = LazyLock::new(document);

/// The document, as JSON.
#[must_use]
pub fn openapi() -> &'static str {
    &DOCUMENT
}

fn document() -> String {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut of = settings.into_generator();
    let paths = json!({
        "/v1/turns": {
            "post": operation(
                "put", "Write turns, edits, deletions and ends of sessions; answered when they are durable. A turn that \
                 is sent again, with the same id and version, changes nothing.",
                &[], Some(body::<Put>(&mut of)), &ok::<WrittenTurns>(&mut of, "The turns are durable."),
                &["400", "408", "413", "429"],
            ),
            "delete": operation(
                "forget", "Delete a turn, whether it was sent already or comes later. Answered when the deletion is \
                 durable and, within wait_ms, no answer reflects the turn any more.",
                &[
                    ("bank", true, "The bank.", json!({ "type": "string" })),
                    ("turn", true, "The id of the turn.", json!({ "type": "string" })),
                    ("wait_ms", false, "Most milliseconds to wait until no answer reflects it; 10,000 without it.",
                     json!({ "type": "integer", "minimum": 0, "maximum": 600_000 })),
                ],
                None, &ok::<Forgotten>(&mut of, "The deletion is durable."), &["400", "421"],
            ),
        },
        "/v1/ask": {
            "post": operation(
                "ask", "Recollect evidence for a question: units with their source turns, how each was reached, the \
                 bank that was searched and the offsets that the answer reflects.",
                &[], Some(body::<Ask>(&mut of)), &ok::<Evidence>(&mut of, "The evidence."),
                &["400", "404", "408", "409", "413", "421", "429", "503", "504"],
            ),
        },
        "/v1/banks": {
            "get": operation("banks", "The banks that hold something.", &[], None,
                             &ok::<Banks>(&mut of, "Their names."), &[]),
        },
        "/v1/digest": {
            "get": operation(
                "digest", "Counts of units and edges, with a hash that depends only on the set.",
                &[
                    ("bank", false, "One bank; without it, all of them.", json!({ "type": "string" })),
                    ("after", false, "The `after` of turns that it must reflect.", json!({ "type": "string" })),
                    ("wait_ms", false, "Most milliseconds to wait for them; 10,000 without it.",
                     json!({ "type": "integer", "minimum": 0, "maximum": 600_000 })),
                ],
                None, &ok::<Digest>(&mut of, "The counts."), &["400", "404", "421", "503", "504"],
            ),
        },
        "/v1/status": {
            "get": operation("status", "How the memory is.", &[], None,
                             &ok::<Status>(&mut of, "How it is."), &[]),
        },
    });
    let problem = of.subschema_for::<Problem>();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "RippleMem", "version": "1",
            "description": format!(
                "Long-term memory for LLM agents. Where tokens are set, every request shows one. The Host header names \
                 the service, and no page of another origin may ask. A body has at most {MAX_BYTES} bytes."
            ),
        },
        "security": [{ "token": [] }, {}],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": of.take_definitions(true),
            "responses": {
                "Problem": {
                    "description": "Why there is no answer (RFC 9457).",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
        },
    });
    without_unsigned(&mut document);
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Name, whether it is required, description, schema.
type Parameter = (&'static str, bool, &'static str, Value);

fn operation(
    id: &str,
    about: &str,
    parameters: &[Parameter],
    body: Option<Value>,
    ok: &Value,
    problems: &[&str],
) -> Value {
    let mut operation = json!({ "operationId": id, "description": about, "responses": { "200": ok } });
    if !parameters.is_empty() {
        let parameter = |(name, required, description, schema): &Parameter| json!({ "name": name, "in": "query", "required": required, "description": description, "schema": schema });
        operation["parameters"] = parameters.iter().map(parameter).collect();
    }
    if let Some(body) = body {
        operation["requestBody"] = body;
    }
    for status in problems.iter().chain(&["401", "403", "429", "500"]) {
        operation["responses"][*status] = json!({ "$ref": "#/components/responses/Problem" });
    }
    operation
}

fn body<T: JsonSchema>(of: &mut SchemaGenerator) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": of.subschema_for::<T>() } } })
}

fn ok<T: JsonSchema>(of: &mut SchemaGenerator, about: &str) -> Value {
    json!({ "description": about, "content": { "application/json": { "schema": of.subschema_for::<T>() } } })
}

/// Removes formats that no client knows, such as `uint64`: the minimum says the same.
fn without_unsigned(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
                object.remove("format");
            }
            object.values_mut().for_each(without_unsigned);
        }
        Value::Array(array) => array.iter_mut().for_each(without_unsigned),
        _ => {}
    }
}
