//! The OpenAPI document of `/v1`, from the rows of `table`.
//!
//! In: nothing. Out: the text of `schemas/openapi.v1.json`. A test fails if the file differs from it.

use std::sync::LazyLock;

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};

use super::{
    body::MAX_BYTES,
    parameter::Parameter,
    route::{Described, Route, json_of},
    table,
};
use crate::{
    api::{AnsweredEvidence, Problem, Words},
    subscriptions::{
        AddedUnit, ArrivedTurn, BankProgress, ChangedEdges, ClosedWindow, Delta, Polled, Progress, RejectedRecord,
        RemovedUnit, Skipped, Snapshot, Told,
    },
};
use models::llm;
use nouns::model::Evidence;

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
    let mut paths = Map::new();
    describe(&mut paths, &mut of, &table::of_memory());
    describe(&mut paths, &mut of, &table::of_service());
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

/// Adds the routes that the document has, by their paths.
fn describe<C>(paths: &mut Map<String, Value>, of: &mut SchemaGenerator, routes: &[Route<C>]) {
    for route in routes {
        let Some(described) = &route.entry.described else { continue };
        let at = paths.entry(route.entry.path).or_insert_with(|| json!({}));
        at[route.method.name().to_ascii_lowercase()] = operation(of, route, described);
    }
}

fn operation<C>(of: &mut SchemaGenerator, route: &Route<C>, described: &Described) -> Value {
    let Described { id, about, answer, problems } = *described;
    let body = route.body.map(|body| body(of));
    let responses = (route.responses)(of, answer);
    let mut operation = json!({ "operationId": id, "description": about, "responses": { "200": responses } });
    if !route.parameters.is_empty() {
        operation["parameters"] = route.parameters.iter().map(Parameter::described).collect();
    }
    if let Some(body) = body {
        operation["requestBody"] = body;
    }
    for status in problems.iter().chain(&["401", "403", "429", "500"]) {
        operation["responses"][*status] = json!({ "$ref": "#/components/responses/Problem" });
    }
    operation
}

/// The responses to a question: evidence; with `answer` also an answer in words, as JSON or as events.
pub(super) fn asked(of: &mut SchemaGenerator, about: &str) -> Value {
    let mut asked = json_of::<Evidence>(of, about);
    let (evidence, answered) = (of.subschema_for::<Evidence>(), of.subschema_for::<AnsweredEvidence>());
    asked["content"]["application/json"]["schema"] = json!({ "anyOf": [&evidence, answered] });
    asked["headers"] = json!({
        "Server-Timing": {
            "description": "Of an answer in JSON: the milliseconds of its stages.", "schema": { "type": "string" },
        },
    });
    let data = [
        ("evidence", evidence),
        ("text", of.subschema_for::<Words>()),
        ("restart", json_schema!({ "type": "object" })),
        ("answer", of.subschema_for::<llm::Answer>()),
        ("problem", of.subschema_for::<Problem>()),
    ];
    // Beside the JSON it would make the type of every answer a union with a string.
    asked["x-event-stream"] = events(data);
    asked
}

/// The responses to a subscription: events, or one answer in JSON if the request has `wait_ms`.
pub(super) fn followed(of: &mut SchemaGenerator, about: &str) -> Value {
    let mut followed = json_of::<Polled>(of, about);
    let data = [
        ("snapshot", of.subschema_for::<Snapshot>()),
        ("delta", of.subschema_for::<Delta>()),
        ("progress", of.subschema_for::<Progress>()),
        ("reset", of.subschema_for::<Told>()),
        ("lagged", of.subschema_for::<Told>()),
        ("problem", of.subschema_for::<Problem>()),
    ];
    followed["content"]["text/event-stream"] = events(data);
    followed
}

/// The response to who follows a bank.
pub(super) fn happening(of: &mut SchemaGenerator, about: &str) -> Value {
    let data = [
        ("turn", of.subschema_for::<ArrivedTurn>()),
        ("window", of.subschema_for::<ClosedWindow>()),
        ("unit_added", of.subschema_for::<AddedUnit>()),
        ("unit_removed", of.subschema_for::<RemovedUnit>()),
        ("edges", of.subschema_for::<ChangedEdges>()),
        ("rejected", of.subschema_for::<RejectedRecord>()),
        ("skipped", of.subschema_for::<Skipped>()),
        ("progress", of.subschema_for::<BankProgress>()),
        ("reset", of.subschema_for::<Told>()),
        ("problem", of.subschema_for::<Problem>()),
    ];
    json!({ "description": about, "content": { "text/event-stream": events(data) } })
}

/// Events, each with the schema of its data. They are in an extension, as OpenAPI 3.1 cannot describe them.
fn events(data: impl IntoIterator<Item = (&'static str, Schema)>) -> Value {
    let data: Map<String, Value> =
        data.into_iter().map(|(name, schema)| (name.to_owned(), schema.to_value())).collect();
    json!({ "schema": { "type": "string" }, "x-events": data })
}

/// Removes formats that clients do not know, such as `uint64`; the minimum in the schema says the same.
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
