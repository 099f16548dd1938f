//! The OpenAPI document of `/v1`, from the types of the calls.
//!
//! In: nothing. Out: the text of `schemas/openapi.v1.json`. A test fails if the file differs from it.

use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};

use super::body::MAX_BYTES;
use crate::{
    api::{
        AnsweredEvidence, Ask, BankStatus, Banks, DeadLetters, Diff, Digest, Explain, ForgetTurns, Forgets, Forgotten,
        ForgottenTurns, Graph, History, Problem, Put, Records, Reextract, Reextracted, SelectLetters, ShowUnits,
        SnapshotList, Stats, Status, TokenView, Turns, UnitView, Units, Words, WrittenTurns,
    },
    subscriptions::{
        AddedUnit, ArrivedTurn, BankProgress, ChangedEdges, ClosedWindow, Delta, Polled, Progress, RejectedRecord,
        RemovedUnit, Skipped, Snapshot, Subscribe, Told,
    },
};
use models::llm;
use nouns::model::{Evidence, Explanation};
use ripplemem::pipeline::Erased;

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
            "get": operation(
                "turns", "The turns of a bank, the latest first, each as last edited.",
                &[
                    ("bank", true, "The bank.", json!({ "type": "string" })),
                    ("turn", false, "Only those that this id, or short id, means.", json!({ "type": "string" })),
                    ("speaker", false, "Only those of this speaker.", json!({ "type": "string" })),
                    ("mentions", false, "Only those whose words hold this name; with speaker, those that fit either.",
                     json!({ "type": "string" })),
                    ("since", false, "Only those said at this time (RFC 3339) or later.", json!({ "type": "string" })),
                    ("until", false, "Only those said before this time (RFC 3339).", json!({ "type": "string" })),
                    ("session", false, "Only those of this session.", json!({ "type": "string" })),
                    ("thread", false, "Only those of this thread.", json!({ "type": "string" })),
                    ("before", false, "Where the list goes on: the `next` of an earlier one.",
                     json!({ "type": "string" })),
                    ("limit", false, "Most turns; 20 without it.",
                     json!({ "type": "integer", "minimum": 1, "maximum": 1_000 })),
                ],
                None, &ok::<Turns>(&mut of, "The turns."), &["400", "421"],
            ),
            "delete": operation(
                "forget", "Delete a turn, whether it was sent already or comes later. Answered when the deletion is \
                 durable and, within wait_ms, no answer reflects the turn any more.",
                &[
                    ("bank", true, "The bank.", json!({ "type": "string" })),
                    ("turn", true, "The id of the turn, or its short id.", json!({ "type": "string" })),
                    ("wait_ms", false, "Most milliseconds to wait until no answer reflects it; 10,000 without it.",
                     json!({ "type": "integer", "minimum": 0, "maximum": 600_000 })),
                ],
                None, &ok::<Forgotten>(&mut of, "The deletion is durable."), &["400", "421"],
            ),
        },
        "/v1/forget": {
            "post": operation(
                "forget_turns", "Delete the turns of a bank that a selector names: by id, by speaker, by time, of a \
                 session or a thread, those that mention somebody, or all. With dry_run they are counted, and some are \
                 shown.",
                &[], Some(body::<ForgetTurns>(&mut of)), &ok::<ForgottenTurns>(&mut of, "The deletions are durable."),
                &["400", "408", "413", "421", "503", "504"],
            ),
        },
        "/v1/forgets": {
            "get": operation(
                "forgets", "What became of the operations that forgot turns, in the banks where the token may forget, \
                 the latest first.",
                &[("bank", false, "Only those of this bank.", json!({ "type": "string" }))],
                None, &ok::<Forgets>(&mut of, "The receipts."), &["400"],
            ),
        },
        "/v1/ask": {
            "post": operation(
                "ask", "Recollect evidence for a question: units with their source turns, how each was reached, the \
                 bank that was searched and the offsets that the answer reflects.",
                &[], Some(body::<Ask>(&mut of)), &asked(&mut of),
                &["400", "404", "408", "409", "413", "421", "422", "429", "503", "504"],
            ),
        },
        "/v1/explain": {
            "post": operation(
                "explain", "Why a turn, or a unit, is quoted in the answer to a question, or why not: twelve steps from \
                 the stored turn to its line in the context, the first that failed, and what would have changed it.",
                &[], Some(body::<Explain>(&mut of)), &ok::<Explanation>(&mut of, "The explanation."),
                &["400", "404", "408", "409", "413", "421", "429", "503", "504"],
            ),
        },
        "/v1/subscribe": {
            "get": operation(
                "subscribe", SUBSCRIBE,
                &[
                    ("bank", true, "The bank that is asked.", json!({ "type": "string" })),
                    ("text", true, "The question, at most 8,192 bytes.", json!({ "type": "string" })),
                    ("asked_at", false, "When it is asked, in RFC 3339.", json!({ "type": "string" })),
                    ("asker", false, "Who asks: a speaker of the bank, to whom \"I\" and \"my\" refer.", json!({ "type": "string" })),
                    ("most_tokens", false, "Most tokens (o200k) of the context.", json!({ "type": "integer", "minimum": 1 })),
                    ("last_event_id", false, "The id of the last progress that was received; the header \
                     Last-Event-ID says the same.", json!({ "type": "string" })),
                    ("wait_ms", false, "One answer in JSON instead of a stream: once something changed, or after \
                     this many milliseconds.", json!({ "type": "integer", "minimum": 0, "maximum": 600_000 })),
                ],
                None, &followed(&mut of), &["400", "404", "409", "421", "429", "503", "504"],
            ),
            "post": operation(
                "subscribe_with_body", SUBSCRIBE,
                &[], Some(body::<Subscribe>(&mut of)), &followed(&mut of),
                &["400", "404", "408", "409", "413", "421", "429", "503", "504"],
            ),
        },
        "/v1/events": {
            "get": operation(
                "events", "Follow a bank: server-sent events with what happens in it. Only a progress has an id; all \
                 events between two of them are what happened between their offsets.",
                &[
                    ("bank", true, "The bank.", json!({ "type": "string" })),
                    ("last_event_id", false, "The id of the last progress that was received: what happened since is \
                     sent, where it is still known. The header Last-Event-ID says the same.",
                     json!({ "type": "string" })),
                ],
                None, &happening(&mut of), &["400", "409", "421", "429", "503", "504"],
            ),
        },
        "/v1/graph": {
            "get": operation(
                "graph", "A part of a bank's graph: units with labels, and the edges between them.",
                &[
                    ("bank", true, "The bank.", json!({ "type": "string" })),
                    ("around", false, "The unit in the middle, as an answer names it; without it, the units that were \
                     said last are shown.", json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })),
                    ("limit", false, "Most units; 2,000 without it.",
                     json!({ "type": "integer", "minimum": 1, "maximum": 2_000 })),
                ],
                None, &ok::<Graph>(&mut of, "The units and edges."), &["400", "404", "409", "421", "503"],
            ),
        },
        "/v1/units": {
            "get": operation(
                "unit", "A unit with its parts and its edges of both kinds, each with its reasons.",
                &[
                    ("bank", true, "The bank.", json!({ "type": "string" })),
                    ("id", true, "The unit, as an answer names it.",
                     json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })),
                ],
                None, &ok::<UnitView>(&mut of, "The unit."), &["400", "404", "409", "421", "503"],
            ),
            "post": operation(
                "units", "Units with their parts, as of one moment, without their edges; at most 200.",
                &[], Some(body::<ShowUnits>(&mut of)), &ok::<Units>(&mut of, "The units."),
                &["400", "404", "408", "409", "413", "421", "503"],
            ),
        },
        "/v1/banks": {
            "get": operation(
                "banks", "The banks that hold something, as far as the token reaches, in order.",
                &[
                    ("counts", false, "Whether they are counted, too.",
                     json!({ "type": "string", "enum": ["true", "false", "1", "0"] })),
                    ("prefix", false, "Only those whose names begin with this.", json!({ "type": "string" })),
                    ("from", false, "Where the list goes on: the `next` of an earlier one.", json!({ "type": "string" })),
                    ("limit", false, "Most banks; without it 100 where they are counted, else all. With counts at \
                     most 100.", json!({ "type": "integer", "minimum": 1, "maximum": 1_000 })),
                ],
                None, &ok::<Banks>(&mut of, "Their names."), &["400"],
            ),
        },
        "/v1/bank": {
            "get": operation(
                "bank", "Counts of a bank, and the offsets up to which its turns are reflected.",
                &[("bank", true, "The bank.", json!({ "type": "string" }))],
                None, &ok::<BankStatus>(&mut of, "The bank."), &["400", "404", "409", "421", "503"],
            ),
        },
        "/v1/history": {
            "get": operation(
                "history", "The points of a bank's past that `as_of` answers for: the ends of the reads after which the \
                 bank differs. Empty where no snapshots are kept.",
                &[
                    ("bank", true, "The bank.", json!({ "type": "string" })),
                    ("before", false, "Only those before this offset.", json!({ "type": "integer", "minimum": 0 })),
                    ("limit", false, "Most points, the latest; 200 without it.",
                     json!({ "type": "integer", "minimum": 1, "maximum": 1_000 })),
                ],
                None, &ok::<History>(&mut of, "The points."), &["400", "404", "409", "421", "503"],
            ),
        },
        "/v1/diff": {
            "get": operation(
                "diff", "What changed in a bank between two points of its past: the units and edges that came and \
                 went, at most 1,000 of each. A point lies at an offset or a time, as `as_of` of a question; `history` \
                 lists them.",
                &[
                    ("bank", true, "The bank.", json!({ "type": "string" })),
                    ("from", true, "The earlier point: an offset of the bank's partition of the memory log, or a time \
                     of appending in RFC 3339.", json!({ "type": "string" })),
                    ("to", false, "The later point, in the same form; without it, now.", json!({ "type": "string" })),
                ],
                None, &ok::<Diff>(&mut of, "The changes."), &["400", "404", "409", "421", "503"],
            ),
        },
        "/v1/token": {
            "get": operation("token", "Who asks: what the token gives. Needs no right.", &[], None,
                             &ok::<TokenView>(&mut of, "The rights and the banks."), &["400"]),
        },
        "/v1/admin/snapshots": {
            "get": operation("snapshots", "The newest snapshot of each shard. Needs the right admin in every bank.",
                             &[], None, &ok::<SnapshotList>(&mut of, "The snapshots."), &["400"]),
            "post": operation("take_snapshot", "Write a snapshot now; answered when it is written. Needs the right \
                              admin in every bank.", &[], None,
                              &ok::<SnapshotList>(&mut of, "What was written."), &["400"]),
        },
        "/v1/admin/erase": {
            "post": operation("erase", "Erase the words of all turns that were deleted from every stored byte, now; \
                              answered when it is done. Needs the right admin in every bank, and a log in a directory.",
                              &[], None, &ok::<Erased>(&mut of, "What that took."), &["400"]),
        },
        "/v1/admin/dead-letters": {
            "post": operation("dead_letters", "The records that were rejected (dead letters) and hold some words, state \
                              a sender, or have a reason, a source or a bank in common: how many there are and the \
                              latest. With remove, in a log in a directory, they are removed from every stored byte. \
                              Needs the right admin in every bank.", &[], Some(body::<SelectLetters>(&mut of)),
                              &ok::<DeadLetters>(&mut of, "The letters."), &["400", "408", "413"]),
        },
        "/v1/admin/records": {
            "get": operation(
                "records", "A page of the records of a topic, byte by byte as the log stores them. Needs the right \
                 admin in every bank, and a log in a directory.",
                &[
                    ("topic", true, "turns, memory or dead-letters.", json!({ "type": "string" })),
                    ("partition", false, "The partition; 0 without it.", json!({ "type": "integer", "minimum": 0 })),
                    ("from", false, "The first offset; 0 without it.", json!({ "type": "integer", "minimum": 0 })),
                    ("since_ms", false, "In place of `from`: the first record that was appended then or later, in \
                     milliseconds since 1970.", json!({ "type": "integer" })),
                    ("limit", false, "Most records; 64 without it. 0 asks for the offsets alone.",
                     json!({ "type": "integer", "minimum": 0, "maximum": 1_024 })),
                    ("bank", false, "Of the topic memory: the bank whose live records are listed, too.",
                     json!({ "type": "string" })),
                ],
                None, &ok::<Records>(&mut of, "The records."), &["400", "404"],
            ),
        },
        "/v1/admin/reextract": {
            "post": operation("reextract", "Have the language model read a bank's closed windows again, in the \
                              background. Needs the right admin in every bank.", &[],
                              Some(body::<Reextract>(&mut of)),
                              &ok::<Reextracted>(&mut of, "What is read again."), &["400", "404", "422", "503"]),
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
        "/v1/stats": {
            "get": operation(
                "stats", "How many bytes units take in memory, by part.",
                &[
                    ("bank", false, "One bank; without it, all of them.", json!({ "type": "string" })),
                    ("ids", false, "Whether to count turns whose ids hold a phone number or a mail address, too, which \
                     reads every turn.", json!({ "type": "boolean" })),
                ],
                None, &ok::<Stats>(&mut of, "The bytes."), &["400", "404", "421", "503"],
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

const SUBSCRIBE: &str = "Follow a question: server-sent events with the evidence now and every change of it. At every \
progress, which alone has an id, what was received is what asking afresh gives as of its offsets.";

/// A parameter's name, whether it is required, its description and its schema.
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

/// The responses to a question: evidence; with `answer` also an answer in words, as JSON or as events.
fn asked(of: &mut SchemaGenerator) -> Value {
    let mut asked = ok::<Evidence>(of, "The evidence; where `answer` is sent, with an answer in words.");
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
fn followed(of: &mut SchemaGenerator) -> Value {
    let mut followed = ok::<Polled>(of, "Events; one answer in JSON where wait_ms is sent.");
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
fn happening(of: &mut SchemaGenerator) -> Value {
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
    json!({ "description": "Events.", "content": { "text/event-stream": events(data) } })
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
