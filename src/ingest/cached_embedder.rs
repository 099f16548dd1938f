//! Turns drafts into units, with the model and its cache, which are opened when the first text needs them.
//!
//! In: drafts of units by bank and window. Out: units with ids and vectors. The vectors of a text that a window used
//! before come from the cache. A vector stays cached only while its window will ask for it again; all others are
//! evicted.

use crate::log_events;
use std::collections::{HashMap, HashSet, VecDeque};

use logs::{ReadProgress, partition_of};
use memory::extract::{DraftPart, DraftUnit};
use models::embed::{self, EmbeddedText, Embedder, SpanVectors, VectorCache};
use types::{
    config::{EmbedSettings, ModelSettings, Pipeline, VectorPrecision},
    model::{Bank, ModelRef, SpannedText, Unit, UnitId, UnitPart, Vector, WindowId},
};

use super::{
    PipelineError, UnreadLanguageReporter,
    embedding_layout::{EmbeddingLayout, UnitVectors},
};

/// The directory of the cache of a re-embedding, in that of the log.
const SEPARATE_CACHE: &str = "reembed-cache";

/// An embedding model with its cache.
pub struct CachedEmbedder {
    settings: EmbedSettings,
    model: ModelSettings,
    cache_directory: std::path::PathBuf,
    open: Option<OpenEmbedder>,
    unread: UnreadLanguageReporter,
}

struct OpenEmbedder {
    embedder: Box<dyn Embedder>,
    cache: VectorCache,
}

/// The drafts of one window, or of one turn of an open one.
pub struct WindowDrafts {
    /// The bank.
    pub bank: Bank,
    /// The window.
    pub window: WindowId,
    /// The drafts.
    pub drafts: Vec<DraftUnit>,
    /// Whether the window will ask for the same texts again, even if no one edits it: because it is open, or because a
    /// model is yet to read it.
    pub asked_again: bool,
}

/// Vectors that are made piece by piece, before the units of their drafts are made.
#[derive(Default)]
pub struct PrecomputedVectors {
    /// The texts that are left to embed, each with its window.
    left: VecDeque<(usize, SpannedText)>,
    /// The windows whose vectors are cached at once, because losing them with this process would cost much.
    cached: HashSet<usize>,
    found: HashMap<SpannedText, EmbeddedText>,
}

impl PrecomputedVectors {
    /// Whether nothing is left to embed.
    pub fn is_done(&self) -> bool {
        self.left.is_empty()
    }
}

/// The units made from drafts.
pub struct EmbeddedDrafts {
    /// The model of the vectors.
    pub model: ModelRef,
    /// The units of each window's drafts.
    pub units: Vec<Vec<Unit>>,
    /// For each window, what the model declined, one entry per unit.
    pub declined: Vec<Vec<DeclinedText>>,
}

/// What the model declined of a unit, even after shortening.
pub struct DeclinedText {
    /// The model's message, or that of its endpoint.
    pub problem: String,
    /// Whether the unit was left out, because it has no vector at all.
    pub left_out: bool,
    /// The turns that lack a vector of their own, by their ids.
    pub turns: Vec<String>,
    /// The texts that lack vectors.
    pub text: String,
}

impl CachedEmbedder {
    /// Creates it closed: the model and the cache are opened at the first text.
    pub fn new(pipeline: &Pipeline) -> Self {
        Self {
            settings: pipeline.embed.clone(),
            model: pipeline.model(),
            cache_directory: pipeline.log.directory.join("cache"),
            open: None,
            unread: UnreadLanguageReporter::default(),
        }
    }

    /// Makes the attempts to reach an unavailable endpoint short, because the caller tries again. Has no effect once
    /// the model is open.
    pub fn shorten_attempts(&mut self) {
        const RETRIES: u32 = 1;
        if let Some(served) = &mut self.model.served {
            served.retries = served.retries.min(RETRIES);
        }
    }

    /// Creates it with a separate cache, which no running service has open.
    pub fn with_separate_cache(pipeline: &Pipeline) -> Self {
        let mut separate = Self::new(pipeline);
        separate.cache_directory = pipeline.log.directory.join(SEPARATE_CACHE);
        separate
    }

    /// Removes the separate cache that an unfinished re-embedding left.
    pub fn erase_separate_cache(pipeline: &Pipeline) -> Result<(), PipelineError> {
        Ok(embed::remove_cache(&pipeline.log.directory.join(SEPARATE_CACHE))?)
    }

    /// Closes the model and removes the cache.
    pub fn discard(mut self) {
        self.open = None;
        // A directory that cannot be removed only takes up space.
        drop(std::fs::remove_dir_all(&self.cache_directory));
    }

    /// Empties the cache and its files; vectors that are needed again are made again.
    pub fn erase_cache(&mut self) -> Result<(), PipelineError> {
        if let Some(OpenEmbedder { embedder, cache }) = self.open.take() {
            self.open = Some(OpenEmbedder { embedder, cache: cache.emptied()? });
            return Ok(());
        }
        Ok(embed::remove_cache(&self.cache_directory)?)
    }

    /// The model, opened at the first call.
    pub fn embedder(&mut self) -> Result<&mut dyn Embedder, PipelineError> {
        Ok(&mut *self.open()?.embedder)
    }

    /// The model, if it was opened.
    pub fn model(&self) -> Option<&ModelRef> {
        self.open.as_ref().map(|o| o.embedder.model())
    }

    /// One list of units for each list of drafts, in order. All texts go to the model in one call. A draft becomes no
    /// unit if the model declines all its texts.
    pub fn units(&mut self, drafted: &[WindowDrafts]) -> Result<EmbeddedDrafts, PipelineError> {
        self.units_with(drafted, &PrecomputedVectors::default())
    }

    /// The texts to embed piece by piece for drafts; empty if they are no more than one piece.
    pub fn precompute(
        &mut self,
        drafted: &[WindowDrafts],
        piece_bytes: usize,
    ) -> Result<PrecomputedVectors, PipelineError> {
        let layouts: Vec<EmbeddingLayout> = drafted.iter().map(|d| self.layout(&d.drafts)).collect();
        let bytes_of = |texts: &[SpannedText]| texts.iter().map(|text| text.text.len()).sum::<usize>();
        let mut ahead = PrecomputedVectors::default();
        if layouts.iter().map(|layout| bytes_of(&layout.texts)).sum::<usize>() <= piece_bytes {
            return Ok(ahead);
        }
        let stored = self.stored();
        let OpenEmbedder { embedder, cache } = self.open()?;
        let cached_as = cached_as(embedder.model(), stored);
        let mut seen = HashSet::new();
        for (window, (d, layout)) in drafted.iter().zip(layouts).enumerate() {
            let known = cache.lookup(&d.bank, &cached_as, &layout.texts);
            let mut unknown_bytes = 0;
            for (text, known) in layout.texts.into_iter().zip(known) {
                match known {
                    Some(vectors) => {
                        ahead.found.insert(text, EmbeddedText { vectors: Some(vectors), declined: None });
                    }
                    None if seen.insert(text.clone()) => {
                        unknown_bytes += text.text.len();
                        ahead.left.push_back((window, text));
                    }
                    None => {}
                }
            }
            if unknown_bytes > piece_bytes {
                ahead.cached.insert(window);
            }
        }
        Ok(ahead)
    }

    /// Embeds some of the texts that are left. The vectors of a window with many texts are cached, so that they outlive
    /// this process. Returns the bytes of the embedded texts.
    pub fn embed_piece(
        &mut self,
        drafted: &[WindowDrafts],
        ahead: &mut PrecomputedVectors,
        piece_bytes: usize,
    ) -> Result<usize, PipelineError> {
        let stored = self.stored();
        let OpenEmbedder { embedder, cache } = self.open()?;
        let cached_as = cached_as(embedder.model(), stored);
        let (mut windows, mut texts, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < piece_bytes
            && let Some((window, text)) = ahead.left.pop_front()
        {
            if ahead.found.contains_key(&text) {
                continue;
            }
            bytes += text.text.len();
            windows.push(window);
            texts.push(text);
        }
        let made = embed_each(embedder.as_mut(), &texts, stored)?;
        for (window, d) in drafted.iter().enumerate().filter(|(window, _)| ahead.cached.contains(window)) {
            // A partly declined text is not cached: when its window closes, it is embedded again, and reported.
            let of_window = windows.iter().zip(texts.iter().zip(&made)).filter(|(of, _)| **of == window);
            let whole = of_window.filter(|(_, (_, made))| made.declined.is_none());
            let whole: Vec<(&SpannedText, &SpanVectors)> =
                whole.filter_map(|(_, (text, made))| Some((text, made.vectors.as_ref()?))).collect();
            if !whole.is_empty() {
                cache.store(&d.bank, &cached_as, &d.window, &whole)?;
            }
        }
        ahead.found.extend(texts.into_iter().zip(made));
        Ok(bytes)
    }

    /// As [`Self::units`], with vectors that were made before.
    pub fn units_with(
        &mut self,
        drafted: &[WindowDrafts],
        ahead: &PrecomputedVectors,
    ) -> Result<EmbeddedDrafts, PipelineError> {
        let parts = drafted.iter().flat_map(|d| &d.drafts).flat_map(|draft| &draft.parts);
        let languages = parts.map(|part| part.marks.language);
        if let Some(notice) = self.unread.add(languages, &self.settings, &self.model) {
            log_events::languages_unread(&notice);
        }
        let layouts: Vec<EmbeddingLayout> = drafted.iter().map(|d| self.layout(&d.drafts)).collect();
        let (pairs, stored) = (self.settings.pairs, self.stored());
        let OpenEmbedder { embedder, cache } = self.open()?;
        let model = embedder.model().clone();
        let cached_as = cached_as(&model, stored);
        let known = |(d, layout): (&WindowDrafts, &EmbeddingLayout)| {
            let known: Vec<_> = layout.texts.iter().map(|text| ahead.found.get(text)?.vectors.clone()).collect();
            if known.iter().all(Option::is_some) {
                return known;
            }
            let cached = cache.lookup(&d.bank, &cached_as, &layout.texts);
            known.into_iter().zip(cached).map(|(known, cached)| known.or(cached)).collect()
        };
        let mut vectors: Vec<Vec<Option<SpanVectors>>> = drafted.iter().zip(&layouts).map(known).collect();
        // A text that two windows share is embedded once.
        let mut wanted: HashMap<&SpannedText, usize> = HashMap::new();
        let mut unknown: Vec<SpannedText> = Vec::new();
        for (layout, vectors) in layouts.iter().zip(&vectors) {
            let is_unknown = |(text, vectors): &(&SpannedText, &Option<SpanVectors>)| {
                vectors.is_none() && !ahead.found.contains_key(*text)
            };
            for (text, _) in layout.texts.iter().zip(vectors).filter(is_unknown) {
                wanted.entry(text).or_insert_with(|| {
                    unknown.push(text.clone());
                    unknown.len() - 1
                });
            }
        }
        let made = embed_each(embedder.as_mut(), &unknown, stored)?;
        let of_text = |text: &SpannedText| ahead.found.get(text).or_else(|| made.get(*wanted.get(text)?));
        for (layout, vectors) in layouts.iter().zip(&mut vectors) {
            for (text, vector) in layout.texts.iter().zip(vectors).filter(|(_, v)| v.is_none()) {
                *vector = of_text(text).and_then(|text| text.vectors.clone());
            }
        }
        let (mut units, mut declined) = (Vec::with_capacity(drafted.len()), Vec::with_capacity(drafted.len()));
        for ((d, layout), vectors) in drafted.iter().zip(&layouts).zip(&vectors) {
            let pieces = |at: usize| of_text(layout.texts.get(at)?)?.declined.as_ref();
            let found = layout.assemble(vectors, pairs);
            if d.asked_again {
                // A partly declined text is not cached: when its window closes, it is embedded again, and reported.
                let is_whole = |text: &SpannedText| of_text(text).is_none_or(|text| text.declined.is_none());
                let used = layout.texts.iter().zip(vectors).filter(|(text, _)| is_whole(text));
                let used: Vec<(&SpannedText, &SpanVectors)> =
                    used.filter_map(|(text, vectors)| Some((text, vectors.as_ref()?))).collect();
                cache.store(&d.bank, &cached_as, &d.window, &used)?;
            }
            let of_drafts = d.drafts.iter().zip(&found).enumerate();
            declined.push(
                of_drafts
                    .filter_map(|(at, (draft, made))| {
                        let (parts, problem) = layout.declined(at, pieces)?;
                        Some(declined_text(draft, &parts, problem, made.is_none()))
                    })
                    .collect(),
            );
            let made = d.drafts.iter().zip(found).filter_map(|(draft, made)| Some((draft, made?)));
            units.push(made.map(|(draft, made)| unit(&d.bank, &d.window, draft, made, stored)).collect());
        }
        Ok(EmbeddedDrafts { model, units, declined })
    }

    /// Evicts the texts that a window will not ask for again.
    pub fn evict(&mut self, drafted: &WindowDrafts) -> Result<(), PipelineError> {
        let keep = if drafted.asked_again { self.layout(&drafted.drafts).texts } else { Vec::new() };
        Ok(self.open()?.cache.evict_window(&drafted.bank, &drafted.window, &keep)?)
    }

    fn stored(&self) -> StoredVectorForm {
        match self.settings.stored {
            VectorPrecision::Int8 => StoredVectorForm::Bytes { factor: self.model.byte_factor },
            VectorPrecision::F32 => StoredVectorForm::Floats,
        }
    }

    fn layout(&self, drafts: &[DraftUnit]) -> EmbeddingLayout {
        EmbeddingLayout::of(&self.settings, &self.model.turn_template, drafts)
    }

    fn open(&mut self) -> Result<&mut OpenEmbedder, PipelineError> {
        if self.open.is_none() {
            let embedder = embed::open(&self.settings, &self.model)?;
            let (cache, warning) = VectorCache::open(&self.cache_directory)?;
            warning.iter().for_each(|problem| log_events::vector_cache_warned(problem));
            self.open = Some(OpenEmbedder { embedder, cache });
        }
        // Unreachable: it has just been opened.
        self.open.as_mut().ok_or_else(|| {
            PipelineError::Embed(embed::EmbedError::Model { model: String::new(), problem: "not open".to_owned() })
        })
    }
}

/// For processes among which a group divides the partitions.
impl CachedEmbedder {
    /// Evicts what is cached for partitions that this process does not own: only a partition's owner learns what is
    /// deleted there.
    pub(super) fn keep_partitions(&mut self, ours: impl Fn(u32) -> bool, partitions: u32) -> Result<(), PipelineError> {
        let cache = &mut self.open()?.cache;
        Ok(cache.retain_banks(|bank| ours(partition_of(bank, partitions)))?)
    }

    /// Evicts what is cached for a partition that was just taken over at `progress`, unless no other process has read
    /// its turns since this cache followed them.
    pub(super) fn take_over(
        &mut self,
        partition: u32,
        progress: &ReadProgress,
        partitions: u32,
    ) -> Result<(), PipelineError> {
        let cache = &mut self.open()?.cache;
        if cache.position(partition) != Some(progress.number()) {
            cache.retain_banks(|bank| partition_of(bank, partitions) != partition)?;
        }
        Ok(cache.set_position(partition, Some(progress.number()))?)
    }

    /// Notes that everything deleted up to a progress is evicted.
    pub(super) fn note_evicted(&mut self, partition: u32, progress: &ReadProgress) -> Result<(), PipelineError> {
        Ok(self.open()?.cache.set_position(partition, Some(progress.number()))?)
    }
}

impl Drop for CachedEmbedder {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            open.cache.close();
        }
    }
}

/// The form in which vectors are stored.
#[derive(Debug, Clone, Copy)]
enum StoredVectorForm {
    /// As bytes, each a number of steps of this size.
    Bytes {
        factor: f64,
    },
    Floats,
}

/// The model as the cache knows it: vectors that are stored in another form count as another model's.
fn cached_as(model: &ModelRef, stored: StoredVectorForm) -> ModelRef {
    let form = match stored {
        StoredVectorForm::Bytes { factor: 1.0 } => "int8".to_owned(),
        StoredVectorForm::Bytes { factor } => format!("int8*{factor}"),
        StoredVectorForm::Floats => "f32".to_owned(),
    };
    ModelRef { name: model.name.clone(), hash: format!("{}/{form}", model.hash) }
}

/// What a model declined of a draft.
fn declined_text(draft: &DraftUnit, parts: &[usize], problem: &str, left_out: bool) -> DeclinedText {
    // If the unit is left out, all its parts lack vectors.
    let lacks = |(at, _): &(usize, &DraftPart)| left_out || parts.contains(at);
    let parts: Vec<&DraftPart> = draft.parts.iter().enumerate().filter(lacks).map(|(_, part)| part).collect();
    let mut turns: Vec<String> = parts.iter().map(|part| part.turn.clone()).collect();
    turns.dedup();
    let text = parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n");
    DeclinedText { problem: problem.to_owned(), left_out, turns, text }
}

/// One result for each text, with vectors as they are stored: they are rounded before they are pooled, as cached
/// vectors are, so that units are the same either way.
fn embed_each(
    embedder: &mut dyn Embedder,
    texts: &[SpannedText],
    stored: StoredVectorForm,
) -> Result<Vec<EmbeddedText>, PipelineError> {
    let mut made = embedder.embed_each(texts)?;
    if made.len() != texts.len() {
        let problem = format!("{} results for {} texts", made.len(), texts.len());
        return Err(embed::EmbedError::Model { model: embedder.model().name.clone(), problem }.into());
    }
    if let StoredVectorForm::Bytes { factor } = stored {
        for vectors in made.iter_mut().filter_map(|text| text.vectors.as_mut()) {
            *vectors = vectors.in_steps_times(factor);
        }
    }
    Ok(made)
}

fn unit(bank: &Bank, window: &WindowId, draft: &DraftUnit, vectors: UnitVectors, stored: StoredVectorForm) -> Unit {
    let kept = |vector: Vector| match stored {
        StoredVectorForm::Bytes { factor } => vector.in_steps_times(factor),
        StoredVectorForm::Floats => vector,
    };
    let parts = draft.parts.iter().zip(vectors.parts).map(|(part, vectors)| UnitPart {
        turn: part.turn.clone(),
        ordinal: part.ordinal,
        speaker: part.speaker.clone(),
        kind: part.kind,
        said_at: part.said_at,
        text: part.text.clone(),
        range: part.range,
        marks: part.marks,
        vectors: vectors.own.into_iter().map(kept).collect(),
        pair: vectors.pair.map(kept),
    });
    Unit {
        id: UnitId::of(bank, window, &draft.sources, &draft.restatement, &draft.cues),
        restatement: draft.restatement.clone(),
        vector: kept(vectors.whole),
        cues: draft.cues.clone(),
        said_at: draft.said_at,
        sources: draft.sources.clone(),
        ordinal: draft.ordinal,
        parts: parts.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Cues, EventTime, SessionId, TextFeatures};

    /// Two turns of a window; the second one has two sentences.
    fn drafted() -> WindowDrafts {
        let part = |turn: &str, text: &str| DraftPart {
            turn: turn.to_owned(),
            ordinal: 0,
            speaker: "Ana".to_owned(),
            kind: None,
            said_at: EventTime::parse("2024-01-01T00:00:00Z").expect("a time"),
            text: text.to_owned(),
            range: None,
            marks: TextFeatures::default(),
        };
        let (before, said) =
            (part("1", "Where do you sing?"), part("2", "I sing in a choir. We meet on Mondays in Oslo."));
        let draft = DraftUnit {
            restatement: said.text.clone(),
            cues: Cues::default(),
            said_at: said.said_at,
            sources: vec!["2".to_owned()],
            ordinal: 0,
            before: Some(before),
            parts: vec![said],
            restated: false,
        };
        let window = WindowId { session: SessionId("s".to_owned()), start: 0 };
        WindowDrafts { bank: Bank::parse("a").expect("a valid name"), window, drafts: vec![draft], asked_again: true }
    }

    fn units(directory: &std::path::Path, stored: &str) -> Vec<Vec<Unit>> {
        let text = format!(
            "version = 1\nembed.model = \"fixed\"\nembed.{stored}\nlog.directory = {:?}",
            directory.display().to_string()
        );
        let pipeline = Pipeline::parse(&text).expect("a pipeline");
        CachedEmbedder::new(&pipeline).units(&[drafted()]).expect("no model to fail").units
    }

    #[test]
    fn a_cache_of_another_precision_does_not_change_the_units() {
        let fresh = |stored: &str| units(tempfile::tempdir().expect("a directory").path(), stored);
        let shared = tempfile::tempdir().expect("a directory");
        let forms = ["stored = \"f32\"", "stored = \"int8\"", "models.fixed.byte_factor = 0.5"];
        assert!(fresh(forms[0]) != fresh(forms[1]) && fresh(forms[1]) != fresh(forms[2]));
        for stored in forms.into_iter().chain(forms) {
            assert_eq!(units(shared.path(), stored), fresh(stored), "{stored}");
        }
    }
}
