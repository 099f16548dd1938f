//! The columns of the archive's tables, defined once for their schema, rows and description.
//!
//! In: rows. Out: Arrow batches, and the description of each table in `schemas/tables`.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
    UInt64Array,
    builder::{BinaryBuilder, ListBuilder, StringBuilder, StructBuilder},
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use super::{
    ArchiveTable, TopicRow,
    topic_row::{RecordHead, RowContent},
};
use crate::table_description::{ColumnDescription, table_description};
use types::model::{DeadLetter, MemoryKey, Metadata, SpeakerKind, Turn, TurnEvent, WindowState};

/// The column that is left out if each bank has a directory, whose name is the bank's.
pub(crate) const BANK: &str = "bank";

/// A column of a table.
pub struct ArchiveColumn {
    /// Its name.
    pub name: &'static str,
    about: &'static str,
    /// Whether it is never null.
    always: bool,
    cells: CellReader,
}

/// How a column's values are taken from a row.
enum CellReader {
    Topic,
    Headers,
    Text(fn(&TopicRow) -> Option<&str>),
    Json(fn(&TopicRow) -> Option<String>),
    Bool(fn(&TopicRow) -> Option<bool>),
    Bytes(fn(&TopicRow) -> Option<&[u8]>),
    Millis(fn(&TopicRow) -> Option<i64>),
    I32(fn(&TopicRow) -> Option<i32>),
    I64(fn(&TopicRow) -> Option<i64>),
    U64(fn(&TopicRow) -> Option<u64>),
}

const fn always(name: &'static str, about: &'static str, cells: CellReader) -> ArchiveColumn {
    ArchiveColumn { name, about, always: true, cells }
}

const fn column(name: &'static str, about: &'static str, cells: CellReader) -> ArchiveColumn {
    ArchiveColumn { name, about, always: false, cells }
}

/// The first columns of every table.
static RECORD: [ArchiveColumn; 7] = [
    always(
        "topic",
        "The topic's name where it was read: on the cluster, or in the log's directory.",
        CellReader::Topic,
    ),
    always("partition", "The partition.", CellReader::I32(|r| i32::try_from(r.partition).ok())),
    always("offset", "The offset.", CellReader::I64(|r| i64::try_from(r.offset).ok())),
    always(
        "timestamp",
        "When it was appended, by the broker's clock or its producer's.",
        CellReader::Millis(|r| Some(r.append_ms)),
    ),
    column(
        "key",
        "The key, unchanged; null where it is empty.",
        CellReader::Bytes(|r| (!r.key.is_empty()).then_some(&r.key)),
    ),
    column("value", "The value, unchanged; null deletes the key.", CellReader::Bytes(|r| r.value.as_deref())),
    column("headers", "The headers, in order; an embedded log has none.", CellReader::Headers),
];

/// The last column of every table.
static PROBLEM: [ArchiveColumn; 1] = [column(
    "problem",
    "Why the columns between `headers` and this one are null: the value is not a valid record of the topic.",
    CellReader::Text(|r| match &r.content {
        RowContent::Unreadable(why) => Some(why),
        _ => None,
    }),
)];

static TURNS: [ArchiveColumn; 14] = [
    column(
        "type",
        "turn, deletion, session_end, idle, session_title, or conditional and its verdict.",
        CellReader::Text(|r| {
            Some(match event(r)? {
                TurnEvent::Turn(_) => "turn",
                TurnEvent::Deletion(_) => "deletion",
                TurnEvent::SessionEnd(_) => "session_end",
                TurnEvent::Idle(_) => "idle",
                TurnEvent::SessionTitle(_) => "session_title",
                TurnEvent::Conditional(_) => "conditional",
                TurnEvent::Verdict(_) => "verdict",
            })
        }),
    ),
    column(BANK, "The bank.", CellReader::Text(TopicRow::bank)),
    column(
        "turn",
        "The id of the turn, said or deleted.",
        CellReader::Text(|r| match event(r)? {
            TurnEvent::Turn(turn) => Some(&turn.turn),
            TurnEvent::Deletion(deletion) => Some(&deletion.turn),
            _ => None,
        }),
    ),
    column(
        "version",
        "The version; the greatest number for a deletion that no later version undoes.",
        CellReader::U64(|r| match event(r)? {
            TurnEvent::Turn(turn) => Some(turn.version),
            TurnEvent::Deletion(deletion) => Some(deletion.version),
            _ => None,
        }),
    ),
    column("speaker", "Who said it.", CellReader::Text(|r| Some(&turn(r)?.speaker))),
    column("text", "What was said.", CellReader::Text(|r| Some(&turn(r)?.text))),
    column(
        "time",
        "When it was said; for idle, until when the source was silent.",
        CellReader::Millis(|r| match event(r)? {
            TurnEvent::Turn(turn) => Some(turn.time.unix_ms),
            TurnEvent::Idle(idle) => Some(idle.time.unix_ms),
            _ => None,
        }),
    ),
    column(
        "utc_offset_seconds",
        "How far its clock was east of UTC.",
        CellReader::I32(|r| match event(r)? {
            TurnEvent::Turn(turn) => Some(turn.time.offset_seconds),
            TurnEvent::Idle(idle) => Some(idle.time.offset_seconds),
            _ => None,
        }),
    ),
    column(
        "session",
        "The conversation.",
        CellReader::Text(|r| match event(r)? {
            TurnEvent::Turn(turn) => turn.session.as_deref(),
            TurnEvent::SessionEnd(end) => Some(&end.session),
            TurnEvent::SessionTitle(title) => Some(&title.session),
            _ => None,
        }),
    ),
    column("thread", "The thread.", CellReader::Text(|r| turn(r)?.thread.as_deref())),
    column("reply_to", "The id of the turn that it answers.", CellReader::Text(|r| turn(r)?.reply_to.as_deref())),
    // Last, so that the columns of files of earlier versions keep their places.
    column(
        "kind",
        "What the speaker is: person, assistant, tool or bot, where that is known. Files of earlier versions lack it.",
        CellReader::Text(|r| turn(r)?.kind.map(SpeakerKind::name)),
    ),
    column(
        "metadata",
        "What a program keeps beside the words: a JSON object. Files of earlier versions lack it.",
        CellReader::Json(|r| turn(r)?.metadata.as_ref().map(Metadata::to_json)),
    ),
    column(
        "recall",
        "Whether it can be recalled. Files of earlier versions lack it.",
        CellReader::Bool(|r| Some(turn(r)?.recall)),
    ),
];

static MEMORY: [ArchiveColumn; 11] = [
    column(BANK, "The bank; null for a read position.", CellReader::Text(TopicRow::bank)),
    column("session", "The window's session.", CellReader::Text(|r| Some(&key(r)?.window.session.0))),
    column("start", "Ordinal of the window's first turn.", CellReader::I64(|r| Some(i64::from(key(r)?.window.start)))),
    column("turn", "The turn, for a record of an open window.", CellReader::Text(|r| key(r)?.turn.as_deref())),
    column("part", "The part, of a window past 4 MiB.", CellReader::I64(|r| Some(i64::from(key(r)?.part)))),
    column(
        "state",
        "open or final; null where the key is deleted.",
        CellReader::Text(|r| {
            Some(match head(r)?.state {
                WindowState::Open => "open",
                WindowState::Final => "final",
            })
        }),
    ),
    column("extractor", "The extractor of the units.", CellReader::Text(|r| Some(&head(r)?.extractor))),
    column("model", "The name of the vectors' model.", CellReader::Text(|r| Some(&head(r)?.model.name))),
    column("model_hash", "Its hash.", CellReader::Text(|r| Some(&head(r)?.model.hash))),
    column("turns", "How many turns it holds.", CellReader::I64(|r| i64::try_from(head(r)?.turns).ok())),
    column("units", "How many units it holds.", CellReader::I64(|r| i64::try_from(head(r)?.units).ok())),
];

static DEAD_LETTERS: [ArchiveColumn; 5] = [
    column(
        "origin",
        "The file or topic it came from, and its position there.",
        CellReader::Text(|r| Some(&letter(r)?.origin)),
    ),
    column("reason", "What was wrong, and what to do.", CellReader::Text(|r| Some(&letter(r)?.reason))),
    column("payload", "The record itself, truncated.", CellReader::Text(|r| Some(&letter(r)?.payload))),
    column(
        "turns_partition",
        "Its partition of the turns topic, if it came from there.",
        CellReader::I32(|r| i32::try_from(letter(r)?.position?.partition).ok()),
    ),
    column("turns_offset", "Its offset there.", CellReader::I64(|r| i64::try_from(letter(r)?.position?.offset).ok())),
];

fn event(row: &TopicRow) -> Option<&TurnEvent> {
    if let RowContent::Turn(event) = &row.content { Some(event) } else { None }
}

fn turn(row: &TopicRow) -> Option<&Turn> {
    if let TurnEvent::Turn(turn) = event(row)? { Some(turn) } else { None }
}

fn key(row: &TopicRow) -> Option<&MemoryKey> {
    if let RowContent::Memory(key, _) = &row.content { Some(key) } else { None }
}

fn head(row: &TopicRow) -> Option<&RecordHead> {
    if let RowContent::Memory(_, head) = &row.content { head.as_ref() } else { None }
}

fn letter(row: &TopicRow) -> Option<&DeadLetter> {
    if let RowContent::DeadLetter(letter) = &row.content { Some(letter) } else { None }
}

impl ArchiveTable {
    /// Its columns in order.
    pub fn columns(self) -> impl Iterator<Item = &'static ArchiveColumn> {
        let own = match self {
            Self::Turns => &TURNS[..],
            Self::Memory => &MEMORY[..],
            Self::DeadLetters => &DEAD_LETTERS[..],
        };
        RECORD.iter().chain(own).chain(&PROBLEM)
    }

    /// Its description in `schemas/tables`: pretty JSON with a newline at the end.
    #[must_use]
    pub fn statement(self) -> String {
        let columns = self.columns().map(|column| {
            let field = column.field();
            ColumnDescription::new(column.name, field.data_type(), field.is_nullable(), column.about)
        });
        let description =
            format!("One row for each record of the {} topic, as `ripplemem replay` writes it.", self.name());
        table_description(self.name(), &description, columns.collect())
    }

    /// Its Arrow schema.
    pub(crate) fn schema(self) -> SchemaRef {
        let fields: Vec<Field> = self.columns().map(ArchiveColumn::field).collect();
        Arc::new(Schema::new(fields))
    }

    /// Rows of `topic` as an Arrow batch.
    pub(crate) fn batch(self, topic: &str, rows: &[TopicRow]) -> Result<RecordBatch, ArrowError> {
        let arrays = self.columns().map(|column| column.array(topic, rows)).collect();
        RecordBatch::try_new(self.schema(), arrays)
    }
}

fn header_fields() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Binary, true)])
}

impl ArchiveColumn {
    fn field(&self) -> Field {
        let kind = match self.cells {
            CellReader::Topic | CellReader::Text(_) | CellReader::Json(_) => DataType::Utf8,
            CellReader::Bool(_) => DataType::Boolean,
            CellReader::Bytes(_) => DataType::Binary,
            CellReader::Millis(_) => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            CellReader::I32(_) => DataType::Int32,
            CellReader::I64(_) => DataType::Int64,
            CellReader::U64(_) => DataType::UInt64,
            CellReader::Headers => DataType::new_list(DataType::Struct(header_fields()), true),
        };
        Field::new(self.name, kind, !self.always)
    }

    fn array(&self, topic: &str, rows: &[TopicRow]) -> ArrayRef {
        match self.cells {
            CellReader::Topic => Arc::new(StringArray::from_iter_values(rows.iter().map(|_| topic))),
            CellReader::Text(of) => Arc::new(rows.iter().map(of).collect::<StringArray>()),
            CellReader::Json(of) => Arc::new(rows.iter().map(of).collect::<StringArray>()),
            CellReader::Bool(of) => Arc::new(rows.iter().map(of).collect::<BooleanArray>()),
            CellReader::Bytes(of) => Arc::new(rows.iter().map(of).collect::<BinaryArray>()),
            CellReader::Millis(of) => {
                Arc::new(rows.iter().map(of).collect::<TimestampMillisecondArray>().with_timezone("UTC"))
            }
            CellReader::I32(of) => Arc::new(rows.iter().map(of).collect::<Int32Array>()),
            CellReader::I64(of) => Arc::new(rows.iter().map(of).collect::<Int64Array>()),
            CellReader::U64(of) => Arc::new(rows.iter().map(of).collect::<UInt64Array>()),
            CellReader::Headers => {
                let mut lists = ListBuilder::new(StructBuilder::from_fields(header_fields(), rows.len()));
                for row in rows {
                    for (name, value) in &row.headers {
                        let header = lists.values();
                        if let Some(names) = header.field_builder::<StringBuilder>(0) {
                            names.append_value(name);
                        }
                        if let Some(values) = header.field_builder::<BinaryBuilder>(1) {
                            values.append_option(value.as_deref());
                        }
                        header.append(true);
                    }
                    lists.append(true);
                }
                Arc::new(lists.finish())
            }
        }
    }
}
