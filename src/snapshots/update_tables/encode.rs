//! Encodes rows of the update tables as Arrow batches.
//!
//! In: turns, units and choices that were added or removed. Out: one batch of each table, and the
//! approximate size in bytes of each row, by which the writer bounds its memory.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, RecordBatch,
    builder::{
        ArrayBuilder, BooleanBuilder, FixedSizeListBuilder, Float32Builder, Int8Builder, Int32Builder, ListBuilder,
        StringBuilder, StructBuilder, TimestampMillisecondBuilder, UInt8Builder, UInt32Builder, UInt64Builder,
    },
};
use arrow_schema::ArrowError;

use super::update_table::{RowHead, UpdateTable, attachment_fields, part_fields};
use memory::index::GraphChoice;
use types::model::{
    Attachment, Language, MemoryRecord, Metadata, SpeakerKind, Statement, Unit, UnitId, UnitPart, Vector, WindowState,
    WindowTurn,
};

type VectorBuilder = FixedSizeListBuilder<Float32Builder>;

/// The first columns of turns and units.
#[derive(Default)]
struct HeadBuilders {
    bank: StringBuilder,
    session: StringBuilder,
    start: UInt32Builder,
    open_turn: StringBuilder,
    part: UInt32Builder,
    partition: UInt32Builder,
    offset: UInt64Builder,
    append_time: TimestampMillisecondBuilder,
    since: UInt64Builder,
    diff: Int8Builder,
}

impl HeadBuilders {
    fn push(&mut self, head: &RowHead<'_>) {
        self.bank.append_value(head.key.bank.as_str());
        self.session.append_value(&head.key.window.session.0);
        self.start.append_value(head.key.window.start);
        self.open_turn.append_option(head.key.turn.as_deref());
        self.part.append_value(head.key.part);
        self.partition.append_value(head.partition);
        self.offset.append_value(head.offset);
        self.append_time.append_value(head.append_ms);
        self.since.append_value(head.since);
        self.diff.append_value(head.diff);
    }

    fn finish(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.bank.finish()),
            Arc::new(self.session.finish()),
            Arc::new(self.start.finish()),
            Arc::new(self.open_turn.finish()),
            Arc::new(self.part.finish()),
            Arc::new(self.partition.finish()),
            Arc::new(self.offset.finish()),
            times(&mut self.append_time),
            Arc::new(self.since.finish()),
            Arc::new(self.diff.finish()),
        ]
    }
}

fn times(builder: &mut TimestampMillisecondBuilder) -> ArrayRef {
    Arc::new(builder.finish().with_timezone("UTC"))
}

/// Rows of `turns`.
pub(in super::super) struct TurnRows {
    head: HeadBuilders,
    turn: StringBuilder,
    state: StringBuilder,
    extractor: StringBuilder,
    version: UInt64Builder,
    speaker: StringBuilder,
    kind: StringBuilder,
    text: StringBuilder,
    time: TimestampMillisecondBuilder,
    utc_offset: Int32Builder,
    session: StringBuilder,
    thread: StringBuilder,
    reply_to: StringBuilder,
    attachments: ListBuilder<StructBuilder>,
    ordinal: UInt32Builder,
    context: BooleanBuilder,
    deleted: BooleanBuilder,
    source_offset: UInt64Builder,
    metadata: StringBuilder,
    recall: BooleanBuilder,
    statements: StringBuilder,
}

impl TurnRows {
    pub(in super::super) fn new() -> Self {
        Self {
            head: HeadBuilders::default(),
            turn: StringBuilder::new(),
            state: StringBuilder::new(),
            extractor: StringBuilder::new(),
            version: UInt64Builder::new(),
            speaker: StringBuilder::new(),
            kind: StringBuilder::new(),
            text: StringBuilder::new(),
            time: TimestampMillisecondBuilder::new(),
            utc_offset: Int32Builder::new(),
            session: StringBuilder::new(),
            thread: StringBuilder::new(),
            reply_to: StringBuilder::new(),
            attachments: ListBuilder::new(StructBuilder::from_fields(attachment_fields(), 0)),
            ordinal: UInt32Builder::new(),
            context: BooleanBuilder::new(),
            deleted: BooleanBuilder::new(),
            source_offset: UInt64Builder::new(),
            metadata: StringBuilder::new(),
            recall: BooleanBuilder::new(),
            statements: StringBuilder::new(),
        }
    }

    /// A turn of an added record; returns the row's approximate size in bytes.
    pub(in super::super) fn added(
        &mut self,
        head: &RowHead<'_>,
        record: &MemoryRecord,
        window_turn: &WindowTurn,
    ) -> usize {
        let turn = &window_turn.turn;
        self.head.push(head);
        self.turn.append_value(&turn.turn);
        self.state.append_value(match record.state {
            WindowState::Open => "open",
            WindowState::Final => "final",
        });
        self.extractor.append_value(&record.extractor);
        self.version.append_value(turn.version);
        self.speaker.append_value(&turn.speaker);
        self.kind.append_option(turn.kind.map(SpeakerKind::name));
        self.text.append_value(&turn.text);
        self.time.append_value(turn.time.unix_ms);
        self.utc_offset.append_value(turn.time.offset_seconds);
        self.session.append_option(turn.session.as_deref());
        self.thread.append_option(turn.thread.as_deref());
        self.reply_to.append_option(turn.reply_to.as_deref());
        for attachment in &turn.attachments {
            let Attachment { kind, caption, url } = attachment;
            let shared = self.attachments.values();
            for (at, text) in [kind, caption, url].into_iter().enumerate() {
                with(shared, at, |texts: &mut StringBuilder| texts.append_option(text.as_deref()));
            }
            shared.append(true);
        }
        self.attachments.append(true);
        self.ordinal.append_value(window_turn.ordinal);
        self.context.append_value(window_turn.context);
        self.deleted.append_value(window_turn.deleted);
        self.source_offset.append_value(window_turn.source_offset);
        let stated = record.statements.iter().flat_map(|of| &of.found).filter(|of| of.turn == turn.turn);
        let stated: Vec<&Statement> = stated.collect();
        // A statement always has a JSON form.
        let stated = serde_json::to_string(&stated).ok().filter(|_| !stated.is_empty());
        self.statements.append_option(stated.as_deref());
        let stated_bytes = stated.map_or(0, |json| json.len());
        let metadata = turn.metadata.as_ref().map(Metadata::to_json);
        self.metadata.append_option(metadata.as_deref());
        self.recall.append_value(turn.recall);
        turn.text.len() + metadata.map_or(0, |json| json.len()) + stated_bytes + 256
    }

    /// A turn of a removed record; returns the row's approximate size in bytes.
    pub(in super::super) fn removed(&mut self, head: &RowHead<'_>, turn: &str) -> usize {
        self.head.push(head);
        self.turn.append_value(turn);
        for texts in [
            &mut self.state,
            &mut self.extractor,
            &mut self.speaker,
            &mut self.kind,
            &mut self.text,
            &mut self.session,
            &mut self.thread,
            &mut self.reply_to,
            &mut self.metadata,
            &mut self.statements,
        ] {
            texts.append_null();
        }
        self.version.append_null();
        self.time.append_null();
        self.utc_offset.append_null();
        self.attachments.append(false);
        self.ordinal.append_null();
        self.context.append_null();
        self.deleted.append_null();
        self.source_offset.append_null();
        self.recall.append_null();
        256
    }

    pub(in super::super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns = self.head.finish();
        columns.extend([
            Arc::new(self.turn.finish()) as ArrayRef,
            Arc::new(self.state.finish()),
            Arc::new(self.extractor.finish()),
            Arc::new(self.version.finish()),
            Arc::new(self.speaker.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.text.finish()),
            times(&mut self.time),
            Arc::new(self.utc_offset.finish()),
            Arc::new(self.session.finish()),
            Arc::new(self.thread.finish()),
            Arc::new(self.reply_to.finish()),
            Arc::new(self.attachments.finish()),
            Arc::new(self.ordinal.finish()),
            Arc::new(self.context.finish()),
            Arc::new(self.deleted.finish()),
            Arc::new(self.source_offset.finish()),
            Arc::new(self.metadata.finish()),
            Arc::new(self.recall.finish()),
            Arc::new(self.statements.finish()),
        ]);
        RecordBatch::try_new(UpdateTable::Turns.schema(0), columns)
    }
}

/// Rows of `units`, with vectors of one width.
pub(in super::super) struct UnitRows {
    width: usize,
    head: HeadBuilders,
    unit: UInt64Builder,
    restatement: StringBuilder,
    participants: ListBuilder<StringBuilder>,
    locations: ListBuilder<StringBuilder>,
    event_start: TimestampMillisecondBuilder,
    event_end: TimestampMillisecondBuilder,
    event_utc_offset: Int32Builder,
    said_at: TimestampMillisecondBuilder,
    utc_offset: Int32Builder,
    ordinal: UInt32Builder,
    sources: ListBuilder<StringBuilder>,
    vector: VectorBuilder,
    parts: ListBuilder<StructBuilder>,
}

impl UnitRows {
    pub(in super::super) fn new(width: usize) -> Self {
        let vectors = || VectorBuilder::new(Float32Builder::new(), i32::try_from(width).unwrap_or(i32::MAX));
        let builders: Vec<Box<dyn ArrayBuilder>> = vec![
            Box::new(StringBuilder::new()),
            Box::new(UInt32Builder::new()),
            Box::new(StringBuilder::new()),
            Box::new(TimestampMillisecondBuilder::new()),
            Box::new(Int32Builder::new()),
            Box::new(StringBuilder::new()),
            Box::new(UInt32Builder::new()),
            Box::new(UInt32Builder::new()),
            Box::new(UInt32Builder::new()),
            Box::new(UInt8Builder::new()),
            Box::new(BooleanBuilder::new()),
            Box::new(BooleanBuilder::new()),
            Box::new(ListBuilder::new(vectors())),
            Box::new(vectors()),
            Box::new(StringBuilder::new()),
            Box::new(StringBuilder::new()),
        ];
        Self {
            width,
            head: HeadBuilders::default(),
            unit: UInt64Builder::new(),
            restatement: StringBuilder::new(),
            participants: ListBuilder::new(StringBuilder::new()),
            locations: ListBuilder::new(StringBuilder::new()),
            event_start: TimestampMillisecondBuilder::new(),
            event_end: TimestampMillisecondBuilder::new(),
            event_utc_offset: Int32Builder::new(),
            said_at: TimestampMillisecondBuilder::new(),
            utc_offset: Int32Builder::new(),
            ordinal: UInt32Builder::new(),
            sources: ListBuilder::new(StringBuilder::new()),
            vector: vectors(),
            parts: ListBuilder::new(StructBuilder::new(part_fields(width), builders)),
        }
    }

    /// A unit of an added record; returns the row's approximate size in bytes.
    pub(in super::super) fn added(&mut self, head: &RowHead<'_>, unit: &Unit) -> usize {
        self.head.push(head);
        self.unit.append_value(unit.id.0);
        self.restatement.append_value(&unit.restatement);
        texts(&mut self.participants, &unit.cues.participants);
        texts(&mut self.locations, &unit.cues.locations);
        self.event_start.append_option(unit.cues.time.map(|t| t.start_ms));
        self.event_end.append_option(unit.cues.time.map(|t| t.end_ms));
        self.event_utc_offset.append_option(unit.cues.time.map(|t| t.offset_seconds));
        self.said_at.append_value(unit.said_at.unix_ms);
        self.utc_offset.append_value(unit.said_at.offset_seconds);
        self.ordinal.append_value(unit.ordinal);
        texts(&mut self.sources, &unit.sources);
        floats(&mut self.vector, Some(&unit.vector), self.width);
        let mut vectors = 1;
        for part in &unit.parts {
            vectors += part.vectors.len() + usize::from(part.pair.is_some());
            push_part(self.parts.values(), part, self.width);
        }
        self.parts.append(true);
        vectors * self.width * size_of::<f32>() + 3 * unit.restatement.len() + 512
    }

    /// A unit of a removed record; returns the row's approximate size in bytes.
    pub(in super::super) fn removed(&mut self, head: &RowHead<'_>, unit: UnitId) -> usize {
        self.head.push(head);
        self.unit.append_value(unit.0);
        self.restatement.append_null();
        for texts in [&mut self.participants, &mut self.locations, &mut self.sources] {
            texts.append(false);
        }
        for time in [&mut self.event_start, &mut self.event_end, &mut self.said_at] {
            time.append_null();
        }
        self.event_utc_offset.append_null();
        self.utc_offset.append_null();
        self.ordinal.append_null();
        floats(&mut self.vector, None, self.width);
        self.parts.append(false);
        self.width * size_of::<f32>() + 256
    }

    pub(in super::super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns = self.head.finish();
        columns.extend([
            Arc::new(self.unit.finish()) as ArrayRef,
            Arc::new(self.restatement.finish()),
            Arc::new(self.participants.finish()),
            Arc::new(self.locations.finish()),
            times(&mut self.event_start),
            times(&mut self.event_end),
            Arc::new(self.event_utc_offset.finish()),
            times(&mut self.said_at),
            Arc::new(self.utc_offset.finish()),
            Arc::new(self.ordinal.finish()),
            Arc::new(self.sources.finish()),
            Arc::new(self.vector.finish()),
            Arc::new(self.parts.finish()),
        ]);
        RecordBatch::try_new(UpdateTable::Units.schema(self.width), columns)
    }
}

fn push_part(parts: &mut StructBuilder, part: &UnitPart, width: usize) {
    with(parts, 0, |b: &mut StringBuilder| b.append_value(&part.turn));
    with(parts, 1, |b: &mut UInt32Builder| b.append_value(part.ordinal));
    with(parts, 2, |b: &mut StringBuilder| b.append_value(&part.speaker));
    with(parts, 3, |b: &mut TimestampMillisecondBuilder| b.append_value(part.said_at.unix_ms));
    with(parts, 4, |b: &mut Int32Builder| b.append_value(part.said_at.offset_seconds));
    with(parts, 5, |b: &mut StringBuilder| b.append_value(&part.text));
    with(parts, 6, |b: &mut UInt32Builder| b.append_option(part.range.map(|range| range.start)));
    with(parts, 7, |b: &mut UInt32Builder| b.append_option(part.range.map(|range| range.end)));
    with(parts, 8, |b: &mut UInt32Builder| b.append_option(part.range.map(|range| range.total)));
    with(parts, 9, |b: &mut UInt8Builder| b.append_value(part.marks.times));
    with(parts, 10, |b: &mut BooleanBuilder| b.append_value(part.marks.asks));
    with(parts, 11, |b: &mut BooleanBuilder| b.append_value(part.marks.quotes));
    with(parts, 12, |b: &mut ListBuilder<VectorBuilder>| {
        part.vectors.iter().for_each(|vector| floats(b.values(), Some(vector), width));
        b.append(true);
    });
    with(parts, 13, |b: &mut VectorBuilder| floats(b, part.pair.as_ref(), width));
    with(parts, 14, |b: &mut StringBuilder| b.append_option(part.kind.map(SpeakerKind::name)));
    let language = Some(part.marks.language).filter(|language| !language.is_english());
    with(parts, 15, |b: &mut StringBuilder| b.append_option(language.map(Language::code)));
    parts.append(true);
}

/// The builders have the types of the fields, so `field_builder` never fails here.
fn with<B: ArrayBuilder>(parts: &mut StructBuilder, at: usize, push: impl FnOnce(&mut B)) {
    if let Some(builder) = parts.field_builder::<B>(at) {
        push(builder);
    }
}

fn texts(lists: &mut ListBuilder<StringBuilder>, of: &[String]) {
    of.iter().for_each(|text| lists.values().append_value(text));
    lists.append(true);
}

fn floats(vectors: &mut VectorBuilder, vector: Option<&Vector>, width: usize) {
    match vector {
        Some(vector) => vectors.values().append_slice(&vector.floats()),
        // A fixed-size list needs values for a null entry, too.
        None => vectors.values().append_nulls(width),
    }
    vectors.append(vector.is_some());
}

/// Rows of `edges`.
#[derive(Default)]
pub(in super::super) struct ChoiceRows {
    bank: StringBuilder,
    partition: UInt32Builder,
    offset: UInt64Builder,
    append_time: TimestampMillisecondBuilder,
    diff: Int8Builder,
    channel: StringBuilder,
    from: UInt64Builder,
    to: UInt64Builder,
    weight: Int32Builder,
}

impl ChoiceRows {
    /// A choice of a bank that was added or removed by a read; returns the row's approximate size in
    /// bytes.
    pub(in super::super) fn push(
        &mut self,
        bank: &str,
        (partition, offset, append_ms): (u32, u64, i64),
        choice: &GraphChoice,
        diff: i8,
    ) -> usize {
        self.bank.append_value(bank);
        self.partition.append_value(partition);
        self.offset.append_value(offset);
        self.append_time.append_value(append_ms);
        self.diff.append_value(diff);
        self.channel.append_value(choice.channel.name());
        self.from.append_value(choice.from.0);
        self.to.append_value(choice.to.0);
        self.weight.append_value(choice.weight.0);
        64 + bank.len()
    }

    pub(in super::super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.bank.finish()),
            Arc::new(self.partition.finish()),
            Arc::new(self.offset.finish()),
            times(&mut self.append_time),
            Arc::new(self.diff.finish()),
            Arc::new(self.channel.finish()),
            Arc::new(self.from.finish()),
            Arc::new(self.to.finish()),
            Arc::new(self.weight.finish()),
        ];
        RecordBatch::try_new(UpdateTable::Edges.schema(0), columns)
    }
}
