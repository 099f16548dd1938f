//! The metadata of turns that are quoted or reported.
//!
//! In: evidence. Out: the same, each excerpt with the metadata of its turn, as they are now; also those of one turn. Keeps no query queue, so an
//! answer may be completed where it is given.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::turn_locator::TurnLocator;
use logs::Log;
use pipeline::PipelineError;
use types::model::{Bank, Evidence, Metadata};

/// Reads metadata from a log.
#[derive(Clone)]
pub struct MetadataReader {
    log: Arc<dyn Log>,
    places: Arc<TurnLocator>,
}

impl MetadataReader {
    pub(super) fn of(log: Arc<dyn Log>, places: Arc<TurnLocator>) -> Self {
        Self { log, places }
    }

    /// A reader of its own.
    pub fn new(log: Arc<dyn Log>) -> Self {
        Self::of(log, Arc::default())
    }

    /// The metadata of a turn as they are now; `None` if it has none, or there is no such turn.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn of_turn(&self, bank: &Bank, turn: &str) -> Result<Option<Metadata>, PipelineError> {
        let held = self.places.by_ids(&*self.log, bank, &[turn.to_owned()])?;
        Ok(held.into_iter().next().and_then(|held| held.turn.metadata.clone()))
    }

    /// Adds to each excerpt of an answer the metadata of its turn, if its question asks for them. Reads what
    /// [`Memory::turns_by_ids`](super::Memory::turns_by_ids) does.
    ///
    /// # Errors
    /// As [`pipeline::stored_turns`].
    pub fn add(&self, evidence: &mut Evidence) -> Result<(), PipelineError> {
        if !evidence.question.metadata {
            return Ok(());
        }
        let excerpts = evidence.units.iter().flat_map(|unit| &unit.excerpts);
        let ids: BTreeSet<String> = excerpts.map(|excerpt| excerpt.turn.clone()).collect();
        let ids: Vec<String> = ids.into_iter().collect();
        let held = self.places.by_ids(&*self.log, &evidence.question.bank, &ids)?;
        let metadata: BTreeMap<&str, &Metadata> =
            held.iter().filter_map(|held| Some((held.turn.turn.as_str(), held.turn.metadata.as_ref()?))).collect();
        for excerpt in evidence.units.iter_mut().flat_map(|unit| &mut unit.excerpts) {
            excerpt.metadata = metadata.get(excerpt.turn.as_str()).map(|metadata| (*metadata).clone());
        }
        Ok(())
    }
}
