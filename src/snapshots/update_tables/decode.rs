//! Decodes Arrow batches of the update tables.
//!
//! In: the bytes of a Parquet file. Out: record keys, turns, units and choices, or what is wrong with
//! the file. The content of a row with diff -1 is null: only its key, names and offsets are read.

use std::sync::Arc;

use arrow_array::{
    Array, BooleanArray, FixedSizeListArray, Float32Array, Int8Array, Int32Array, ListArray, RecordBatch, StringArray,
    StructArray, TimestampMillisecondArray, UInt8Array, UInt32Array, UInt64Array, cast::AsArray,
};
use bytes::Bytes;
use parquet::arrow::{ProjectionMask, arrow_reader::ParquetRecordBatchReaderBuilder};

use memory::index::GraphChoice;
use types::model::{
    Attachment, Bank, Channel, Cues, EventTime, Interval, Language, MemoryKey, Metadata, Score, SessionId, SpeakerKind,
    Statement, TextFeatures, TextRange, Turn, Unit, UnitId, UnitPart, Vector, WindowId, WindowState, WindowTurn,
};

/// How many rows a decoded batch with vectors has: 256 of them took 11 MB while they were copied. A batch of 16 stays
/// below the size from which the allocator returns freed memory to the system, so its pages need not be cleared again.
const BATCH_ROWS_OF_VECTORS: usize = 16;
/// How many rows any other batch has.
const BATCH_ROWS: usize = 256;

/// The batches of a file, with the named columns, or with all columns if `columns` is empty.
pub(in super::super) fn batches(
    bytes: Bytes,
    columns: &[&str],
) -> Result<impl Iterator<Item = Result<RecordBatch, String>>, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| text(&e))?;
    let mask = match columns {
        [] => ProjectionMask::all(),
        names => ProjectionMask::columns(builder.parquet_schema(), names.iter().copied()),
    };
    let has_vectors = columns.is_empty() && builder.schema().column_with_name("vector").is_some();
    let rows = if has_vectors { BATCH_ROWS_OF_VECTORS } else { BATCH_ROWS };
    let reader = builder.with_projection(mask).with_batch_size(rows).build().map_err(|e| text(&e))?;
    Ok(reader.map(|batch| batch.map_err(|e| e.to_string())))
}

fn column<'b, A: Array + 'static>(batch: &'b RecordBatch, name: &str) -> Result<&'b A, String> {
    let found = batch.column_by_name(name).ok_or_else(|| format!("the column {name} is missing"))?;
    found.as_any().downcast_ref().ok_or_else(|| format!("the column {name} has type {}", found.data_type()))
}

fn field<'b, A: Array + 'static>(of: &'b StructArray, name: &str) -> Result<&'b A, String> {
    let found = of.column_by_name(name).ok_or_else(|| format!("the field {name} is missing"))?;
    found.as_any().downcast_ref().ok_or_else(|| format!("the field {name} has type {}", found.data_type()))
}

fn text(of: &StringArray, row: usize) -> Option<String> {
    of.is_valid(row).then(|| of.value(row).to_owned())
}

/// The first columns of a batch of turns or units.
pub(in super::super) struct HeadColumns<'b> {
    bank: &'b StringArray,
    session: &'b StringArray,
    start: &'b UInt32Array,
    open_turn: &'b StringArray,
    part: &'b UInt32Array,
    offset: &'b UInt64Array,
    since: &'b UInt64Array,
    diff: &'b Int8Array,
}

impl<'b> HeadColumns<'b> {
    /// The columns that [`HeadColumns::of`] reads.
    pub(in super::super) const COLUMNS: [&'static str; 8] =
        ["bank", "session", "start", "open_turn", "part", "offset", "since", "diff"];

    pub(in super::super) fn of(batch: &'b RecordBatch) -> Result<Self, String> {
        Ok(Self {
            bank: column(batch, "bank")?,
            session: column(batch, "session")?,
            start: column(batch, "start")?,
            open_turn: column(batch, "open_turn")?,
            part: column(batch, "part")?,
            offset: column(batch, "offset")?,
            since: column(batch, "since")?,
            diff: column(batch, "diff")?,
        })
    }

    pub(in super::super) fn bank(&self, row: usize) -> &'b str {
        self.bank.value(row)
    }

    pub(in super::super) fn offset(&self, row: usize) -> u64 {
        self.offset.value(row)
    }

    pub(in super::super) fn since(&self, row: usize) -> u64 {
        self.since.value(row)
    }

    pub(in super::super) fn added(&self, row: usize) -> bool {
        self.diff.value(row) > 0
    }

    /// When the record at its offset was appended, in milliseconds since 1970.
    pub(in super::super) fn append_ms(batch: &RecordBatch, row: usize) -> Result<i64, String> {
        Ok(column::<TimestampMillisecondArray>(batch, "append_time")?.value(row))
    }

    /// Whether a row belongs to the same version of a record, with the same sign, as the row before.
    pub(in super::super) fn continues(&self, row: usize) -> bool {
        row > 0
            && self.since.value(row) == self.since.value(row - 1)
            && self.diff.value(row) == self.diff.value(row - 1)
            && self.start.value(row) == self.start.value(row - 1)
            && self.part.value(row) == self.part.value(row - 1)
            && self.bank.value(row) == self.bank.value(row - 1)
            && self.session.value(row) == self.session.value(row - 1)
            && self.open_turn.is_valid(row) == self.open_turn.is_valid(row - 1)
            && self.open_turn.value(row) == self.open_turn.value(row - 1)
    }

    pub(in super::super) fn key(&self, row: usize) -> Result<MemoryKey, String> {
        Ok(MemoryKey {
            bank: Bank::parse(self.bank.value(row)).map_err(|e| e.to_string())?,
            window: WindowId { session: SessionId(self.session.value(row).to_owned()), start: self.start.value(row) },
            turn: text(self.open_turn, row),
            part: self.part.value(row),
        })
    }
}

/// The turns of a batch.
pub(in super::super) struct TurnColumns<'b> {
    batch: &'b RecordBatch,
    turn: &'b StringArray,
    state: &'b StringArray,
}

impl<'b> TurnColumns<'b> {
    /// The columns of names: with them, and those of [`HeadColumns`], only names can be read.
    pub(in super::super) const NAMES: [&'static str; 7] =
        ["append_time", "turn", "state", "deleted", "version", "source_offset", "extractor"];

    pub(in super::super) fn of(batch: &'b RecordBatch) -> Result<Self, String> {
        Ok(Self { batch, turn: column(batch, "turn")?, state: column(batch, "state")? })
    }

    pub(in super::super) fn name(&self, row: usize) -> &'b str {
        self.turn.value(row)
    }

    pub(in super::super) fn state(&self, row: usize) -> Result<WindowState, String> {
        match self.state.value(row) {
            "open" => Ok(WindowState::Open),
            "final" => Ok(WindowState::Final),
            other => Err(format!("the state {other:?} is not known")),
        }
    }

    /// Whether the turn of an added row is deleted.
    pub(in super::super) fn deleted(&self, row: usize) -> Result<bool, String> {
        Ok(column::<BooleanArray>(self.batch, "deleted")?.value(row))
    }

    /// The version of the turn of an added row, and its offset in the turns topic. What replaces it has a greater pair.
    pub(in super::super) fn version(&self, row: usize) -> Result<(u64, u64), String> {
        let number = |name| Ok::<_, String>(column::<UInt64Array>(self.batch, name)?.value(row));
        Ok((number("version")?, number("source_offset")?))
    }

    /// The extractor of the record of an added row.
    pub(in super::super) fn extractor(&self, row: usize) -> Result<&'b str, String> {
        Ok(column::<StringArray>(self.batch, "extractor")?.value(row))
    }

    /// What the turn of an added row states; nothing in a file from before statements were kept.
    pub(in super::super) fn statements(&self, row: usize) -> Result<Vec<Statement>, String> {
        let Ok(of_turns) = column::<StringArray>(self.batch, "statements") else { return Ok(Vec::new()) };
        let json = of_turns.is_valid(row).then(|| of_turns.value(row));
        json.map_or(Ok(Vec::new()), |json| serde_json::from_str(json).map_err(|e| format!("statements: {e}")))
    }

    /// The metadata of an added row's turn. Files of earlier builds lack the column.
    fn metadata(&self, row: usize) -> Result<Option<Metadata>, String> {
        if self.batch.column_by_name("metadata").is_none() {
            return Ok(None);
        }
        let json = text(column::<StringArray>(self.batch, "metadata")?, row);
        json.map(|json| Metadata::from_json(&json).ok_or_else(|| "metadata is not a JSON object".to_owned()))
            .transpose()
    }

    /// Whether an added row's turn can be recalled. Files of earlier builds lack the column.
    fn recall(&self, row: usize) -> Result<bool, String> {
        if self.batch.column_by_name("recall").is_none() {
            return Ok(true);
        }
        let recall = column::<BooleanArray>(self.batch, "recall")?;
        Ok(!recall.is_valid(row) || recall.value(row))
    }

    /// The turn of an added row.
    pub(in super::super) fn turn(&self, bank: &Bank, row: usize) -> Result<WindowTurn, String> {
        let strings = |name| column::<StringArray>(self.batch, name);
        let numbers = |name| column::<UInt64Array>(self.batch, name);
        let shared = column::<ListArray>(self.batch, "attachments")?.value(row);
        let shared = shared.as_struct_opt().ok_or("attachments are not structs")?;
        let mut attachments = Vec::with_capacity(shared.len());
        for at in 0..shared.len() {
            let of = |name| Ok::<_, String>(text(field::<StringArray>(shared, name)?, at));
            attachments.push(Attachment { kind: of("kind")?, caption: of("caption")?, url: of("url")? });
        }
        Ok(WindowTurn {
            turn: Arc::new(Turn {
                bank: bank.clone(),
                turn: self.turn.value(row).to_owned(),
                version: numbers("version")?.value(row),
                speaker: strings("speaker")?.value(row).to_owned(),
                kind: kind(strings("kind")?, row),
                text: strings("text")?.value(row).to_owned(),
                time: time(self.batch, "time", "utc_offset_seconds", row)?,
                session: text(strings("turn_session")?, row),
                thread: text(strings("thread")?, row),
                reply_to: text(strings("reply_to")?, row),
                attachments,
                metadata: self.metadata(row)?,
                recall: self.recall(row)?,
            }),
            ordinal: column::<UInt32Array>(self.batch, "ordinal")?.value(row),
            context: column::<BooleanArray>(self.batch, "context")?.value(row),
            deleted: self.deleted(row)?,
            source_offset: numbers("source_offset")?.value(row),
            stored: None,
        })
    }
}

fn time(batch: &RecordBatch, name: &str, offset: &str, row: usize) -> Result<EventTime, String> {
    let unix_ms = column::<TimestampMillisecondArray>(batch, name)?.value(row);
    let offset_seconds = column::<Int32Array>(batch, offset)?.value(row);
    EventTime::new(unix_ms, offset_seconds).map_err(|e| format!("{name}: {e}"))
}

/// The units of a batch.
pub(in super::super) struct UnitColumns<'b> {
    batch: &'b RecordBatch,
    unit: &'b UInt64Array,
    restatement: &'b StringArray,
    participants: &'b ListArray,
    locations: &'b ListArray,
    sources: &'b ListArray,
    vector: &'b FixedSizeListArray,
    parts: &'b ListArray,
}

impl<'b> UnitColumns<'b> {
    /// The columns of names: with them, and those of [`HeadColumns`], only [`Self::ids`] can be read.
    pub(in super::super) const NAMES: [&'static str; 2] = ["append_time", "unit"];

    /// The ids of the units of a batch.
    pub(in super::super) fn ids(batch: &'b RecordBatch) -> Result<&'b [u64], String> {
        Ok(column::<UInt64Array>(batch, "unit")?.values())
    }

    pub(in super::super) fn of(batch: &'b RecordBatch) -> Result<Self, String> {
        Ok(Self {
            batch,
            unit: column(batch, "unit")?,
            restatement: column(batch, "restatement")?,
            participants: column(batch, "participants")?,
            locations: column(batch, "locations")?,
            sources: column(batch, "sources")?,
            vector: column(batch, "vector")?,
            parts: column(batch, "parts")?,
        })
    }

    pub(in super::super) fn id(&self, row: usize) -> UnitId {
        UnitId(self.unit.value(row))
    }

    /// The source turns of an added row's unit.
    pub(in super::super) fn sources(&self, row: usize) -> Result<Vec<String>, String> {
        strings(self.sources, row)
    }

    /// The ordinals of the source turns of the parts of an added row's unit.
    pub(in super::super) fn ordinals(&self, row: usize) -> Result<Vec<u32>, String> {
        let parts = self.parts.value(row);
        let parts = parts.as_struct_opt().ok_or("parts are not structs")?;
        Ok(field::<UInt32Array>(parts, "ordinal")?.values().to_vec())
    }

    /// The unit of an added row.
    pub(in super::super) fn unit(&self, row: usize) -> Result<Unit, String> {
        let start = column::<TimestampMillisecondArray>(self.batch, "event_start")?;
        let end = column::<TimestampMillisecondArray>(self.batch, "event_end")?;
        let offset = column::<Int32Array>(self.batch, "event_utc_offset_seconds")?;
        let time = start.is_valid(row).then(|| Interval {
            start_ms: start.value(row),
            end_ms: end.value(row),
            offset_seconds: offset.value(row),
        });
        let participants = strings(self.participants, row)?;
        let locations = strings(self.locations, row)?;
        let parts = self.parts.value(row);
        let parts = parts.as_struct_opt().ok_or("parts are not structs")?;
        Ok(Unit {
            id: self.id(row),
            restatement: self.restatement.value(row).to_owned(),
            vector: vector(self.vector, row)?.ok_or("a unit without a vector")?,
            cues: Cues { participants, locations, time },
            said_at: self::time(self.batch, "said_at", "utc_offset_seconds", row)?,
            sources: self.sources(row)?,
            ordinal: column::<UInt32Array>(self.batch, "ordinal")?.value(row),
            parts: (0..parts.len()).map(|at| part(parts, at)).collect::<Result<_, _>>()?,
        })
    }
}

fn part(of: &StructArray, at: usize) -> Result<UnitPart, String> {
    let own = field::<ListArray>(of, "vectors")?.value(at);
    let own = own.as_fixed_size_list_opt().ok_or("vectors of a part are not vectors")?;
    let unix_ms = field::<TimestampMillisecondArray>(of, "said_at")?.value(at);
    let offset_seconds = field::<Int32Array>(of, "utc_offset_seconds")?.value(at);
    Ok(UnitPart {
        turn: field::<StringArray>(of, "turn")?.value(at).to_owned(),
        ordinal: field::<UInt32Array>(of, "ordinal")?.value(at),
        speaker: field::<StringArray>(of, "speaker")?.value(at).to_owned(),
        kind: kind(field::<StringArray>(of, "kind")?, at),
        said_at: EventTime::new(unix_ms, offset_seconds).map_err(|e| format!("said_at: {e}"))?,
        text: field::<StringArray>(of, "text")?.value(at).to_owned(),
        range: range(of, at)?,
        marks: TextFeatures {
            times: field::<UInt8Array>(of, "times")?.value(at),
            asks: field::<BooleanArray>(of, "asks")?.value(at),
            quotes: field::<BooleanArray>(of, "quotes")?.value(at),
            language: language(of, at),
        },
        vectors: (0..own.len()).filter_map(|n| vector(own, n).transpose()).collect::<Result<_, _>>()?,
        pair: vector(field(of, "pair")?, at)?,
    })
}

/// The kind of a speaker.
fn kind(kinds: &StringArray, row: usize) -> Option<SpeakerKind> {
    kinds.is_valid(row).then(|| SpeakerKind::of_role(kinds.value(row))).flatten()
}

/// The language of a part; English if none is stated, as in all snapshots from before parts had a language.
fn language(of: &StructArray, at: usize) -> Language {
    let codes = field::<StringArray>(of, "language").ok().filter(|codes| codes.is_valid(at));
    codes.and_then(|codes| Language::of_code(codes.value(at))).unwrap_or_default()
}

/// The range of a passage in its turn; `None` if the part is a whole turn.
fn range(of: &StructArray, at: usize) -> Result<Option<TextRange>, String> {
    if field::<UInt32Array>(of, "start")?.is_null(at) {
        return Ok(None);
    }
    let number = |name| field::<UInt32Array>(of, name).map(|numbers| numbers.value(at));
    Ok(Some(TextRange { start: number("start")?, end: number("end")?, total: number("total")? }))
}

fn strings(of: &ListArray, row: usize) -> Result<Vec<String>, String> {
    let list = of.value(row);
    let list = list.as_string_opt::<i32>().ok_or("a list does not hold strings")?;
    Ok(list.iter().flatten().map(str::to_owned).collect())
}

fn vector(of: &FixedSizeListArray, row: usize) -> Result<Option<Vector>, String> {
    if of.is_null(row) {
        return Ok(None);
    }
    let width = of.value_length() as usize;
    let values = of.values().as_any().downcast_ref::<Float32Array>().ok_or("a vector does not hold 32-bit floats")?;
    let start = (of.offset() + row) * width;
    let floats = values.values().get(start..start + width).ok_or("a vector is truncated")?;
    Ok(Some(Vector::from(floats)))
}

/// The choices of a batch.
pub(in super::super) struct ChoiceColumns<'b> {
    bank: &'b StringArray,
    offset: &'b UInt64Array,
    diff: &'b Int8Array,
    channel: &'b StringArray,
    from: &'b UInt64Array,
    to: &'b UInt64Array,
    weight: &'b Int32Array,
}

impl<'b> ChoiceColumns<'b> {
    pub(in super::super) fn of(batch: &'b RecordBatch) -> Result<Self, String> {
        Ok(Self {
            bank: column(batch, "bank")?,
            offset: column(batch, "offset")?,
            diff: column(batch, "diff")?,
            channel: column(batch, "channel")?,
            from: column(batch, "from")?,
            to: column(batch, "to")?,
            weight: column(batch, "weight")?,
        })
    }

    pub(in super::super) fn bank(&self, row: usize) -> &'b str {
        self.bank.value(row)
    }

    pub(in super::super) fn offset(&self, row: usize) -> u64 {
        self.offset.value(row)
    }

    pub(in super::super) fn added(&self, row: usize) -> bool {
        self.diff.value(row) > 0
    }

    pub(in super::super) fn choice(&self, row: usize) -> Result<GraphChoice, String> {
        let name = self.channel.value(row);
        let channel = Channel::of_edges(name).ok_or_else(|| format!("channel {name:?} is not known"))?;
        let (from, to) = (UnitId(self.from.value(row)), UnitId(self.to.value(row)));
        Ok(GraphChoice { channel, from, to, weight: Score(self.weight.value(row)) })
    }
}
