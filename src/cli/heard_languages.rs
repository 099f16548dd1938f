//! Counts the languages of a source's turns as it is read.
//!
//! In: a source. Out: the same source, and for each bank whose turns are mostly in a language that the embedding model
//! does not read, a notice with the line to write. Keeps no text.

use std::collections::BTreeMap;

use heart::language::languages::{Told, told};
use nouns::{config::Pipeline, model::TurnEvent};
use ripplemem::pipeline::{LanguageCounts, unread_notice};
use sources::{Source, SourceBatch, SourceCounts, SourceError, SourceProgress};

/// The maximum number of banks for which a notice is printed.
const MOST_BANKS: usize = 5;

/// A source whose turns are counted by language.
pub(super) struct HeardLanguages<'s> {
    source: &'s mut dyn Source,
    banks: BTreeMap<String, LanguageCounts>,
}

impl<'s> HeardLanguages<'s> {
    /// Wraps a source of which nothing was read yet.
    pub(super) fn of(source: &'s mut dyn Source) -> Self {
        Self { source, banks: BTreeMap::new() }
    }

    /// The notices about banks in languages that the pipeline's model does not read.
    pub(super) fn notices(&self, pipeline: &Pipeline) -> Vec<String> {
        let model = pipeline.model();
        let unread = self.banks.iter().filter_map(|(bank, counts)| Some((bank, counts.unread_by(&model)?)));
        unread
            .take(MOST_BANKS)
            .map(|(bank, found)| unread_notice(&format!("the turns of bank {bank}"), found, &pipeline.embed))
            .collect()
    }
}

impl Source for HeardLanguages<'_> {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        let batch = self.source.next(limit)?;
        for event in batch.iter().flat_map(|batch| &batch.events) {
            let TurnEvent::Turn(turn) = event else { continue };
            if let Told::Surely(language) | Told::Likely(language) = told(&turn.text) {
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
