//! Descriptions of responses that are more than one type in JSON.
//!
//! In: a generator of schemas, and what a response is about. Out: its entry in the OpenAPI document.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::api_route::json_response_schema;
use crate::{
    api::{AnswerText, ApiProblem, EvidenceWithAnswer},
    subscriptions::{
        AddedUnit, ArrivedTurn, BankProgress, ClosedWindow, EdgeChangeCounts, EvidenceDelta, EvidenceProgress,
        EvidenceSnapshot, PollResponse, RejectedRecord, RemovedUnit, SkippedEvents, StreamNotice,
    },
};
use models::llm;
use types::model::{Evidence, Profile};

/// The responses to a question: evidence; with `answer` also an answer in words, as JSON or as events.
pub(super) fn ask_responses(of: &mut SchemaGenerator, about: &str) -> Value {
    let mut asked = json_response_schema::<Evidence>(of, about);
    let (evidence, answered) = (of.subschema_for::<Evidence>(), of.subschema_for::<EvidenceWithAnswer>());
    asked["content"]["application/json"]["schema"] = json!({ "anyOf": [&evidence, answered] });
    asked["headers"] = json!({
        "Server-Timing": {
            "description": "Of an answer in JSON: the milliseconds of its stages.", "schema": { "type": "string" },
        },
    });
    let data = [
        ("evidence", evidence),
        ("text", of.subschema_for::<AnswerText>()),
        ("restart", json_schema!({ "type": "object" })),
        ("answer", of.subschema_for::<llm::LlmAnswer>()),
        ("problem", of.subschema_for::<ApiProblem>()),
    ];
    // Beside the JSON it would make the type of every answer a union with a string.
    asked["x-event-stream"] = events(data);
    asked
}

/// The responses to a subscription: events, or one answer in JSON if the request has `wait_ms`.
pub(super) fn subscription_responses(of: &mut SchemaGenerator, about: &str) -> Value {
    let mut followed = json_response_schema::<PollResponse>(of, about);
    let data = [
        ("snapshot", of.subschema_for::<EvidenceSnapshot>()),
        ("delta", of.subschema_for::<EvidenceDelta>()),
        ("progress", of.subschema_for::<EvidenceProgress>()),
        ("reset", of.subschema_for::<StreamNotice>()),
        ("lagged", of.subschema_for::<StreamNotice>()),
        ("problem", of.subschema_for::<ApiProblem>()),
    ];
    followed["content"]["text/event-stream"] = events(data);
    followed
}

/// The response of a profile: JSON, or events if the request accepts them.
pub(super) fn profile_responses(of: &mut SchemaGenerator, about: &str) -> Value {
    let mut shown = json_response_schema::<Profile>(of, about);
    // As for answers in words, an extension, so that the type of a profile stays its own.
    shown["x-event-stream"] =
        events([("profile", of.subschema_for::<Profile>()), ("problem", of.subschema_for::<ApiProblem>())]);
    shown
}

/// The response to a follower of a bank.
pub(super) fn bank_event_responses(of: &mut SchemaGenerator, about: &str) -> Value {
    let data = [
        ("turn", of.subschema_for::<ArrivedTurn>()),
        ("window", of.subschema_for::<ClosedWindow>()),
        ("unit_added", of.subschema_for::<AddedUnit>()),
        ("unit_removed", of.subschema_for::<RemovedUnit>()),
        ("edges", of.subschema_for::<EdgeChangeCounts>()),
        ("rejected", of.subschema_for::<RejectedRecord>()),
        ("skipped", of.subschema_for::<SkippedEvents>()),
        ("progress", of.subschema_for::<BankProgress>()),
        ("reset", of.subschema_for::<StreamNotice>()),
        ("problem", of.subschema_for::<ApiProblem>()),
    ];
    json!({ "description": about, "content": { "text/event-stream": events(data) } })
}

/// Events, each with the schema of its data. They are in an extension, as OpenAPI 3.1 cannot describe them.
fn events(data: impl IntoIterator<Item = (&'static str, Schema)>) -> Value {
    let data: Map<String, Value> =
        data.into_iter().map(|(name, schema)| (name.to_owned(), schema.to_value())).collect();
    json!({ "schema": { "type": "string" }, "x-events": data })
}
