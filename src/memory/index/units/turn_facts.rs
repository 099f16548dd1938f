//! What a selector compares of a turn that the parts of its units do not say.
//!
//! In: the turns of a memory record. Out: for each turn its session, thread and metadata, where they do not follow from
//! the window's name; and what was said where its units do not hold it: the turns of a restated memory, and captions. A
//! turn without any of that, as most are, takes no memory here. Nothing is decided here.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::index::{memory_footprint::COUNTS_BYTES, vectors::kernel};
use types::model::{MemoryRecord, PackedMetadata, SpeakerKind, Turn, WindowTurn};

/// The names of extractors whose units hold what was said, in front of a version.
const BY_RULES: [&str; 2] = ["rules/", "plain/"];

/// What a selector compares of a turn besides its id and the parts of its units.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::index) struct TurnFacts {
    pub(super) session: Option<Box<str>>,
    pub(super) thread: Option<Box<str>>,
    pub(super) metadata: Option<PackedMetadata>,
    pub(super) said: Option<Box<SaidTurn>>,
}

/// What was said in a turn, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SaidTurn {
    pub(super) speaker: Box<str>,
    pub(super) kind: Option<SpeakerKind>,
    pub(super) unix_ms: i64,
    /// The text, and each caption.
    pub(super) texts: Box<[Box<str>]>,
}

impl SaidTurn {
    fn of(turn: &Turn) -> Self {
        let captions = turn.attachments.iter().filter_map(|attachment| attachment.caption.as_deref());
        Self {
            speaker: turn.speaker.as_str().into(),
            kind: turn.speaker_kind(),
            unix_ms: turn.time.unix_ms,
            texts: std::iter::once(turn.text.as_str()).chain(captions).map(Box::from).collect(),
        }
    }

    /// The texts that names are looked for in.
    pub(super) fn texts(&self) -> Vec<Cow<'_, str>> {
        self.texts.iter().map(|text| Cow::Borrowed(&**text)).collect()
    }
}

impl TurnFacts {
    /// The facts of a turn of a session; `None` if the session's name and the units say all of it.
    fn of(turn: &Turn, session: &str, is_restated: bool) -> Option<Self> {
        let of_window = named_session(session);
        let said = (is_restated || turn.captions().next().is_some()).then(|| Box::new(SaidTurn::of(turn)));
        let follows = of_window == [turn.session.as_deref(), turn.thread.as_deref()];
        if follows && said.is_none() && turn.metadata.is_none() {
            return None;
        }
        let name = |name: &Option<String>| name.as_deref().map(Box::from);
        let metadata = turn.metadata.as_ref().map(PackedMetadata::of);
        Some(Self { session: name(&turn.session), thread: name(&turn.thread), metadata, said })
    }

    /// Has the processor fetch the metadata ([`kernel::fetch_ahead`]).
    pub(in crate::index) fn fetch_metadata(&self) {
        kernel::fetch_ahead(self.metadata.as_ref().map(PackedMetadata::as_bytes).unwrap_or_default());
    }

    /// Its bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        let Self { session, thread, metadata, said } = self;
        let name = |name: &Option<Box<str>>| name.as_ref().map_or(0, |name| name.len());
        let texts = |said: &SaidTurn| {
            let texts = said.texts.iter().map(|text| size_of::<Box<str>>() + text.len()).sum::<usize>();
            size_of::<SaidTurn>() + said.speaker.len() + texts
        };
        let metadata = metadata.as_ref().map_or(0, PackedMetadata::bytes);
        COUNTS_BYTES + size_of::<Self>() + name(session) + name(thread) + metadata + said.as_deref().map_or(0, texts)
    }
}

/// The session and the thread of a turn whose window has this session, unless its facts name others.
pub(super) fn named_session(session: &str) -> [Option<&str>; 2] {
    [session.strip_prefix("caller:"), session.strip_prefix("thread:")]
}

/// The facts of turns, by id. Turns without any are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnFactTable(HashMap<Box<str>, Arc<TurnFacts>>);

impl TurnFactTable {
    /// The facts of a record's turns.
    #[must_use]
    pub fn of_record(record: &MemoryRecord) -> Self {
        let mut table = Self::default();
        record.turns.iter().for_each(|turn| table.add(turn, &record.window.session.0, &record.extractor));
        table
    }

    /// Adds a turn of a record of this session and extractor.
    pub fn add(&mut self, turn: &WindowTurn, session: &str, extractor: &str) {
        if !turn.is_recalled() {
            return;
        }
        let is_restated = !BY_RULES.iter().any(|rules| extractor.starts_with(rules));
        if let Some(facts) = TurnFacts::of(&turn.turn, session, is_restated) {
            self.0.insert(turn.turn.turn.as_str().into(), Arc::new(facts));
        }
    }

    /// The facts of a turn.
    pub(super) fn get(&self, turn: &str) -> Option<&Arc<TurnFacts>> {
        self.0.get(turn)
    }

    /// Its entries, by id.
    pub(super) fn into_sorted(self) -> Vec<(Box<str>, Arc<TurnFacts>)> {
        let mut entries: Vec<_> = self.0.into_iter().collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        entries
    }
}

impl FromIterator<(Box<str>, Arc<TurnFacts>)> for TurnFactTable {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Arc<TurnFacts>)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}
