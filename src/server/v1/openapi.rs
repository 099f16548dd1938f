//! The OpenAPI document of `/v1`, from the rows of `route_table`.
//!
//! In: nothing. Out: the text of `schemas/openapi.v1.json`. A test fails if the file differs from it.

use std::{collections::BTreeSet, sync::LazyLock};

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    api_route::{ApiRoute, RouteDescription},
    query_parameter::QueryParameter,
    request_body::MAX_BYTES,
    route_table,
};
use crate::api::ApiProblem;

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
    describe(&mut paths, &mut of, &route_table::memory_routes());
    describe(&mut paths, &mut of, &route_table::service_routes(openapi));
    let problem = of.subschema_for::<ApiProblem>();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "RippleMem", "version": "1",
            "description": format!(
                "Long-term memory for LLM agents. Where tokens are set, every request shows one. The Host header names \
                 the service, and no page of another origin may ask. A body has at most {MAX_BYTES} bytes."
            ),
        },
        "servers": [{ "url": "http://127.0.0.1:8321", "description": "Where `ripplemem serve` listens." }],
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
    open_answers(&mut document);
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Adds the routes that the document has, by their paths.
fn describe<C>(paths: &mut Map<String, Value>, of: &mut SchemaGenerator, routes: &[ApiRoute<C>]) {
    for route in routes {
        let Some(described) = &route.entry.described else { continue };
        let at = paths.entry(route.entry.path).or_insert_with(|| json!({}));
        at[route.method.name().to_ascii_lowercase()] = operation(of, route, described);
    }
}

fn operation<C>(of: &mut SchemaGenerator, route: &ApiRoute<C>, described: &RouteDescription) -> Value {
    let RouteDescription { id, about, answer, problems } = *described;
    let body = route.body.map(|body| body(of));
    let responses = (route.responses)(of, answer);
    let mut operation = json!({ "operationId": id, "description": about, "responses": { "200": responses } });
    if !route.parameters.is_empty() {
        operation["parameters"] = route.parameters.iter().map(QueryParameter::described).collect();
    }
    if let Some(body) = body {
        operation["requestBody"] = body;
    }
    for status in problems.iter().chain(&["401", "403", "429", "500"]) {
        operation["responses"][*status] = json!({ "$ref": "#/components/responses/Problem" });
    }
    operation
}

/// Lets what only answers hold have further fields, so that a checker made of this document takes the answers of a later
/// service.
fn open_answers(document: &mut Value) {
    let (mut sent, mut found) = (BTreeSet::new(), BTreeSet::new());
    for operation in
        document["paths"].as_object().into_iter().flatten().flat_map(|(_, path)| path.as_object()).flatten()
    {
        names_in(&operation.1["requestBody"], &mut found);
    }
    while let Some(name) = found.pop_first() {
        names_in(&document["components"]["schemas"][&name], &mut found);
        sent.insert(name);
        found = found.difference(&sent).cloned().collect();
    }
    let schemas = document["components"]["schemas"].as_object_mut().into_iter().flatten();
    for (_, schema) in schemas.filter(|(name, _)| !sent.contains(*name)) {
        if let Some(fields) =
            schema.as_object_mut().filter(|fields| fields.get("additionalProperties") == Some(&false.into()))
        {
            fields.remove("additionalProperties");
        }
    }
}

/// Adds the names of the schemas to which a part of the document refers.
fn names_in(part: &Value, names: &mut BTreeSet<String>) {
    match part {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str);
            names.extend(name.and_then(|name| name.strip_prefix("#/components/schemas/")).map(str::to_owned));
            fields.values().for_each(|field| names_in(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| names_in(item, names)),
        _ => {}
    }
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
