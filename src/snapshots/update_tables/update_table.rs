//! The columns of the update tables, for their schema and their description.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use crate::table_description::{ColumnDescription, table_description};
use types::model::MemoryKey;

/// An update table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateTable {
    /// The turns of memory records.
    Turns,
    /// The units of memory records, with their vectors.
    Units,
    /// Choices: a unit that chose another as its neighbour in the graph.
    Edges,
}

/// The first columns of a row of turns or units: its record, its position in the log, its sign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowHead<'h> {
    /// The key of the memory record.
    pub key: &'h MemoryKey,
    /// The partition of the memory topic.
    pub partition: u32,
    /// The offset of the last record of the read that added or removed the row's record.
    pub offset: u64,
    /// When that record was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// The offset of the read that added the record; equals `offset` when `diff` is 1.
    pub since: u64,
    /// 1 when the record was added, −1 when it was removed.
    pub diff: i8,
}

const TIME: DataType = DataType::Timestamp(TimeUnit::Millisecond, None);

/// Columns: name, type, whether nullable, and description.
type ColumnSpecs = Vec<(&'static str, DataType, bool, &'static str)>;

impl UpdateTable {
    /// Every table.
    pub const ALL: [Self; 3] = [Self::Turns, Self::Units, Self::Edges];

    /// Its name, which is also its directory's.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Units => "units",
            Self::Edges => "edges",
        }
    }

    /// Its description in `schemas/tables/snapshot-NAME.v1.json`.
    #[must_use]
    pub fn statement(self) -> String {
        let what = match self {
            Self::Turns => "Turns of memory records; a row with diff -1 names a turn without its text.",
            Self::Units => "Memory units; a row with diff -1 names a unit without its content.",
            Self::Edges => "Choices: an edge joins two units when at least one of them chose the other.",
        };
        let sum = "Rows up to an offset of a partition, summed by diff, are the memory as of that offset.";
        let columns = self
            .columns(384)
            .into_iter()
            .map(|(name, kind, nullable, about)| ColumnDescription::new(name, &zoned(kind), nullable, about));
        table_description(&format!("snapshot-{}", self.name()), &format!("{what} {sum}"), columns.collect())
    }

    /// Its schema for vectors of `width` components.
    pub(crate) fn schema(self, width: usize) -> SchemaRef {
        let field = |(name, kind, nullable, _)| Field::new(name, zoned(kind), nullable);
        Arc::new(Schema::new(self.columns(width).into_iter().map(field).collect::<Vec<_>>()))
    }

    fn columns(self, width: usize) -> ColumnSpecs {
        let mut columns: ColumnSpecs = vec![("bank", DataType::Utf8, false, "The bank.")];
        if self != Self::Edges {
            columns.extend([
                ("session", DataType::Utf8, false, "The session of the window."),
                ("start", DataType::UInt32, false, "Ordinal of the window's first turn."),
                ("open_turn", DataType::Utf8, true, "The turn, for a record of an open window."),
                ("part", DataType::UInt32, false, "The part, of a window past 4 MiB."),
            ]);
        }
        columns.extend([
            ("partition", DataType::UInt32, false, "The bank's partition of the memory topic."),
            (
                "offset",
                DataType::UInt64,
                false,
                "The last offset of the read of the log that added or removed the row.",
            ),
            ("append_time", TIME, false, "When the record there was appended."),
        ]);
        if self != Self::Edges {
            columns.push(("since", DataType::UInt64, false, "The offset of the read that added the row."));
        }
        columns.push(("diff", DataType::Int8, false, "1 when the row was added, -1 when it was removed."));
        columns.extend(match self {
            Self::Turns => turn_columns(),
            Self::Units => unit_columns(width),
            Self::Edges => vec![
                ("channel", DataType::Utf8, false, "semantic or structural."),
                ("from", DataType::UInt64, false, "The unit that chose; the API writes it in hexadecimal."),
                ("to", DataType::UInt64, false, "The unit that was chosen; the same."),
                ("weight", DataType::Int32, false, "The cosine or structural score, times 1,073,676,289."),
            ],
        });
        columns
    }
}

fn turn_columns() -> ColumnSpecs {
    let text = DataType::Utf8;
    vec![
        ("turn", text.clone(), false, "The id of the turn."),
        ("state", text.clone(), true, "open or final: the record's."),
        ("extractor", text.clone(), true, "The extractor of the record's units."),
        ("version", DataType::UInt64, true, "The turn's version."),
        ("speaker", text.clone(), true, "Who said it."),
        ("kind", text.clone(), true, "What the speaker is: person, assistant, tool or bot."),
        ("text", text.clone(), true, "What was said; empty for a deleted turn."),
        ("time", TIME, true, "When it was said."),
        ("utc_offset_seconds", DataType::Int32, true, "How far its clock was east of UTC."),
        ("turn_session", text.clone(), true, "The conversation, where the platform named one."),
        ("thread", text.clone(), true, "The thread."),
        ("reply_to", text.clone(), true, "The id of the turn that it answers."),
        ("attachments", list(DataType::Struct(attachment_fields())), true, "What was shared with it."),
        ("ordinal", DataType::UInt32, true, "Its position in the session."),
        ("context", DataType::Boolean, true, "Whether it is context only."),
        ("deleted", DataType::Boolean, true, "Whether the turn was deleted."),
        ("source_offset", DataType::UInt64, true, "Its offset in the turns topic."),
        (
            "metadata",
            text.clone(),
            true,
            "What a program keeps beside the words: a JSON object. Older files lack the column.",
        ),
        ("recall", DataType::Boolean, true, "Whether it can be recalled. Older files lack the column: it can."),
        ("statements", text, true, "What it states that lasts, as a JSON array; absent if nothing was found."),
    ]
}

fn unit_columns(width: usize) -> ColumnSpecs {
    let texts = list(DataType::Utf8);
    vec![
        ("unit", DataType::UInt64, false, "The unit's id; the API writes it in hexadecimal: printf('%016x', unit)."),
        ("restatement", DataType::Utf8, true, "What it says."),
        ("participants", texts.clone(), true, "People that it can be cued by."),
        ("locations", texts.clone(), true, "Places that it can be cued by."),
        ("event_start", TIME, true, "Start of the event, where it is grounded."),
        ("event_end", TIME, true, "Its end."),
        ("event_utc_offset_seconds", DataType::Int32, true, "The offset at which it was meant."),
        ("said_at", TIME, true, "When it was said."),
        ("utc_offset_seconds", DataType::Int32, true, "How far its clock was east of UTC."),
        ("ordinal", DataType::UInt32, true, "Position in the session of its first turn."),
        ("sources", texts, true, "The turns that it was made from."),
        ("vector", vector(width), true, "Its vector, as long as the model's are (384 here)."),
        ("parts", list(DataType::Struct(part_fields(width))), true, "Its parts, each with its own vectors."),
    ]
}

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", of, true)))
}

fn vector(width: usize) -> DataType {
    let width = i32::try_from(width).unwrap_or(i32::MAX);
    DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), width)
}

pub(super) fn attachment_fields() -> Fields {
    ["kind", "caption", "url"].map(|name| Field::new(name, DataType::Utf8, true)).to_vec().into()
}

pub(super) fn part_fields(width: usize) -> Fields {
    Fields::from(vec![
        Field::new("turn", DataType::Utf8, true),
        Field::new("ordinal", DataType::UInt32, true),
        Field::new("speaker", DataType::Utf8, true),
        Field::new("said_at", TIME, true),
        Field::new("utc_offset_seconds", DataType::Int32, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("start", DataType::UInt32, true),
        Field::new("end", DataType::UInt32, true),
        Field::new("total", DataType::UInt32, true),
        Field::new("times", DataType::UInt8, true),
        Field::new("asks", DataType::Boolean, true),
        Field::new("quotes", DataType::Boolean, true),
        Field::new("vectors", list(vector(width)), true),
        Field::new("pair", vector(width), true),
        Field::new("kind", DataType::Utf8, true),
        Field::new("language", DataType::Utf8, true),
    ])
}

/// Times in a table are UTC.
fn zoned(kind: DataType) -> DataType {
    if kind == TIME { DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())) } else { kind }
}
