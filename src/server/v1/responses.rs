//! Descriptions of responses that are more than one type in JSON.
//!
//! In: a generator of schemas, and what a response is about. Out: its entry in the OpenAPI document.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::route::json_of;
use crate::{
    api::{AnsweredEvidence, Problem, Words},
    subscriptions::{
        AddedUnit, ArrivedTurn, BankProgress, ChangedEdges, ClosedWindow, Delta, Polled, Progress, RejectedRecord,
        RemovedUnit, Skipped, Snapshot, Told,
    },
};
use models::llm;
use nouns::model::Evidence;

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
