//! Counts the languages of a source's turns as it is read.
//!
//! In: a source. Out: the same source, and for each bank whose turns are mostly in a language that the embedding model
//! does not read, a notice with the line to write. Keeps no text.

use std::collections::BTreeMap;

use memory::language::multilingual::{LanguageDetection, told};
use models::{LanguageCounts, unread_notice};
use sources::{SourceBatch, SourceCounts, SourceError, SourceProgress, TurnSource};
use types::{config::Pipeline, model::TurnEvent};

/// The maximum number of banks for which a notice is printed.
const MAX_BANKS: usize = 5;

/// A source whose turns are counted by language.
pub(super) struct LanguageCountingSource<'s> {
    source: &'s mut dyn TurnSource,
    banks: BTreeMap<String, LanguageCounts>,
}

impl<'s> LanguageCountingSource<'s> {
    /// Wraps a source of which nothing was read yet.
    pub(super) fn of(source: &'s mut dyn TurnSource) -> Self {
        Self { source, banks: BTreeMap::new() }
    }

    /// The notices about banks in languages that the pipeline's model does not read.
    pub(super) fn notices(&self, pipeline: &Pipeline) -> Vec<String> {
        let model = pipeline.model();
        let unread = self.banks.iter().filter_map(|(bank, counts)| Some((bank, counts.unread_by(&model)?)));
        unread
            .take(MAX_BANKS)
            .map(|(bank, found)| unread_notice(&format!("the turns of bank {bank}"), found, &pipeline.embed))
            .collect()
    }
}

impl TurnSource for LanguageCountingSource<'_> {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        let batch = self.source.next(limit)?;
        for event in batch.iter().flat_map(|batch| &batch.events) {
            let TurnEvent::Turn(turn) = event else { continue };
            if let LanguageDetection::Surely(language) | LanguageDetection::Likely(language) = told(&turn.text) {
                self.banks.entry(turn.bank.as_str().to_owned()).or_default().add(language);
            }
        }
        Ok(batch)
    }

    fn describe(&self) -> String {
        self.source.describe()
    }

    fn counts(&self) -> SourceCounts {
        self.source.counts()
    }

    fn progress(&self) -> SourceProgress {
        self.source.progress()
    }

    fn notice(&self) -> Option<String> {
        self.source.notice()
    }
}
