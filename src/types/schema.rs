//! The JSON Schema of every record of every topic, of an exported bank and of a pipeline file, from the Rust types.
//!
//! Out: (name, schema) pairs; `schemas/topics/NAME.v1.json`, `schemas/bank.v1.json` and `schemas/pipeline.v1.json` hold
//! the same text, and a test fails when they drift apart.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};

use crate::{
    config,
    model::{DeadLetter, EdgeRecord, Evidence, ExportLine, MemoryRecord, Question, QuestionRefusal, TurnEvent},
};

/// Every schema by the name of its topic.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        (
            "turns",
            titled_schema(TurnEvent::json_schema, "One record of the turns topic. A record without `type` is a turn."),
        ),
        (
            "memory",
            titled_schema(
                MemoryRecord::json_schema,
                "One value of the memory topic. The key is bank, session, start (4 bytes, big-endian) and, for one turn of an open window, the turn, or, for a part after the first of a window whose record would be larger than 4 MiB, nothing and the part (4 bytes, big-endian), each field behind its length in 2 bytes, big-endian; a null value removes it. A key that begins with two zero bytes is a read position, not a record: the turns partition in 4 bytes, big-endian; its value is `{\"schema\": 1, \"next_offset\": N}`. Two zero bytes and `moved` say that the memory is in the topic of a later generation: `{\"schema\": 1, \"generation\": 2, \"model\": {…}}` means topic `memory-2`.",
            ),
        ),
        (
            "edges",
            titled_schema(
                EdgeRecord::json_schema,
                "One value of the edges topic. The key is bank, channel, a (8 bytes, big-endian) and b, each field behind its length in 2 bytes, big-endian; a null value removes it.",
            ),
        ),
        ("refusals", titled_schema(QuestionRefusal::json_schema, "The reply to a question that gets no answer.")),
        ("dead-letters", titled_schema(DeadLetter::json_schema, "One rejected input record.")),
        ("questions", titled_schema(Question::json_schema, "One question.")),
        (
            "answers",
            titled_schema(
                Evidence::json_schema,
                "One answer: evidence, how each piece was reached, and the offsets that it reflects.",
            ),
        ),
    ]
}

/// The schema of a line of what `ripplemem export` writes (`schemas/bank.v1.json`).
#[must_use]
pub fn bank_schema() -> Schema {
    titled_schema(
        ExportLine::json_schema,
        "One line of an exported bank. The first is a header, the last a seal; between them stand the bank's live records of the memory topic, one a line.",
    )
}

/// The schema of a pipeline file (`schemas/pipeline.v1.json`).
#[must_use]
pub fn pipeline_schema() -> Schema {
    config::schema()
}

/// The schema that `schema` makes, as a document of its own that says what it is `about`.
pub fn titled_schema(schema: fn(&mut SchemaGenerator) -> Schema, about: &str) -> Schema {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut root = schema(&mut generator);
    let definitions = generator.take_definitions(true);
    root.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    root.insert("description".to_owned(), about.into());
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), definitions.into());
    }
    root
}

/// The text of a schema file: pretty JSON with a newline at the end.
#[must_use]
pub fn schema_text(schema: &Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default();
    text.push('\n');
    text
}
