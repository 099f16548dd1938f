//! Smaller reads of a memory: how far it reflects the turns, units by id, all units and edges of a bank, when it was
//! written, the points of its past, and the changes between two points; for measurements, what the score of every part is
//! made of.
//!
//! In: banks that are held here. Out: what they hold, as of one epoch; for the past, what the snapshots say.

use std::sync::Arc;

use super::{PipelineError, replica::Replica};
use logs::{Log, ReadProgress};
use memory::{
    index::{
        CensusProbe, DataflowAnswer, FamiliarityResult, GraphCensus, ProfileLine, ProfileProbe, UnitBody, person_key,
    },
    recall,
};
use snapshots::{AsOf, BankDiff, HistoryPoint, SnapshotError};
use types::{
    config::RecallSettings,
    model::{Bank, Question, UnitId},
    sync,
};

impl Replica {
    /// The first offset of a turns partition that the memory does not reflect, for any bank; `None` if unknown.
    #[must_use]
    pub fn position(&self, partition: u32) -> Option<u64> {
        self.reached.of(partition, None)
    }

    /// As [`Self::position`], for the turns of one bank.
    #[must_use]
    pub fn position_of(&self, partition: u32, bank: &Bank) -> Option<u64> {
        self.reached.of(partition, Some(bank))
    }

    /// How far the memory reflects a turns partition, if known.
    #[must_use]
    pub fn progress(&self, partition: u32) -> Option<ReadProgress> {
        self.reached.progress(partition)
    }

    /// Counts offsets without turns as reflected, if every turn before them is: a question may wait for such an offset,
    /// and no turn is missing because of it.
    ///
    /// # Errors
    /// [`PipelineError::Log`].
    pub fn pass_markers(&self, log: &dyn Log, partition: u32) -> Result<(), PipelineError> {
        if let Some(from) = self.progress(partition).map(|progress| progress.through) {
            let to = log.after_markers(partition, from)?;
            if to > from {
                self.reached.skip_markers(partition, from, to);
            }
        }
        Ok(())
    }

    /// Units of a bank as of one epoch, by id; those that are not in the bank are left out.
    ///
    /// # Errors
    /// As [`Self::unit`].
    pub fn units(&self, bank: &Bank, ids: Vec<UnitId>) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, PipelineError> {
        Ok(self.shard_to_show(bank)?.memory.units(bank.key(), ids)?)
    }

    /// What holds of the persons of a bank, or of one of them, and what was superseded.
    ///
    /// # Errors
    /// As [`Self::unit`].
    pub fn profile(
        &self,
        bank: &Bank,
        person: Option<&str>,
    ) -> Result<DataflowAnswer<Vec<Arc<ProfileLine>>>, PipelineError> {
        let probe = ProfileProbe { bank: bank.key(), person: person.map(person_key) };
        Ok(self.shard_to_show(bank)?.memory.profile(probe)?)
    }

    /// The units and edges of a bank, counted and listed, as of one epoch. Walks all of them.
    ///
    /// # Errors
    /// As [`Self::unit`].
    pub fn listing(&self, bank: &Bank) -> Result<DataflowAnswer<GraphCensus>, PipelineError> {
        let probe = CensusProbe { bank: Some(bank.key()), hashing: false, listing: true };
        Ok(self.shard_to_show(bank)?.memory.census(probe)?)
    }

    /// When the last record of a bank was appended, in milliseconds since 1970; `None` if it is not held here.
    #[must_use]
    pub fn last_append_ms(&self, bank: &Bank) -> Option<i64> {
        let shard = self.shards.of(bank).ok()?;
        sync::read(&shard.held).last_append_ms(bank)
    }

    /// Whether windows of a bank lack units until they are extracted again; `false` if the bank is not held here.
    #[must_use]
    pub fn is_in_part(&self, bank: &Bank) -> bool {
        self.shards.of(bank).is_ok_and(|shard| sync::read(&shard.held).is_in_part(bank))
    }

    /// How many turns that the bank of a memory of the past held were forgotten since: `count` counts them from the
    /// time of its point, in milliseconds since 1970. `None` if there are none, and for a memory of the present.
    ///
    /// # Errors
    /// Those of `count`.
    pub fn count_forgotten_since<E>(&self, count: impl FnOnce(i64) -> Result<u64, E>) -> Result<Option<u64>, E> {
        let Some(since) = &self.since else { return Ok(None) };
        Ok(Some(since.count_once(count)?).filter(|forgotten| *forgotten > 0))
    }

    /// The points of a bank's past that [`Self::past`] can be asked for, oldest first. Writes a snapshot if the newest
    /// one lacks something.
    ///
    /// # Errors
    /// As [`Self::past`]; an unknown bank.
    pub fn history(&self, bank: &Bank) -> Result<Vec<HistoryPoint>, PipelineError> {
        let points = match self.recording.newest_history(&self.shards, bank) {
            Ok((snapshots, partition)) => snapshots.points(bank, partition)?,
            Err(PipelineError::Snapshot(SnapshotError::None)) => Vec::new(),
            Err(error) => return Err(error),
        };
        if points.is_empty() {
            self.check_bank(bank)?;
        }
        Ok(points)
    }

    /// What was added to a bank and removed from it between two points of its past.
    ///
    /// # Errors
    /// As [`Self::past`]; [`PipelineError::Quarantined`], since a point may lack what could not be read;
    /// [`PipelineError::UnknownBank`] if the bank holds nothing now and did not at either point.
    pub fn diff(&self, bank: &Bank, from: AsOf, to: AsOf) -> Result<BankDiff, PipelineError> {
        let held = self.check_bank(bank);
        if let Err(error @ PipelineError::Quarantined { .. }) = held {
            return Err(error);
        }
        let compare = || {
            let (snapshots, partition, _) = self.recording.history(&self.shards, bank, &[from, to])?;
            let (from, to) = (snapshots.point(partition, from)?, snapshots.point(partition, to)?);
            Ok(snapshots.diff(bank, partition, from, to)?)
        };
        let compared: Result<BankDiff, PipelineError> = compare();
        if compared.as_ref().map_or(true, BankDiff::is_empty) {
            held?;
        }
        compared
    }

    /// Every part of the question's bank, scored once for each of the settings: for measurements.
    ///
    /// # Errors
    /// [`PipelineError`] for a bank of another instance, or when recall or the memory fails.
    pub fn every_part(
        &self,
        question: &Question,
        embed: &mut recall::EmbedFunction<'_>,
        settings: &[RecallSettings],
    ) -> Result<Vec<FamiliarityResult>, PipelineError> {
        let shard = self.awake(self.shards.of(&question.bank)?, &question.bank, None)?;
        Ok(recall::every_part(&shard.memory, embed, question, settings)?)
    }

    /// Where the person who asks states preferences, for measurements. `familiar` is of the question's bank.
    ///
    /// # Errors
    /// As for [`Self::every_part`].
    pub fn stated_preferences(
        &self,
        question: &Question,
        familiar: &FamiliarityResult,
        settings: &RecallSettings,
    ) -> Result<recall::StatedPreferences, PipelineError> {
        let shard = self.awake(self.shards.of(&question.bank)?, &question.bank, None)?;
        let failed = |source| recall::RecallError::Memory {
            bank: question.bank.to_string(),
            what: "profile".to_owned(),
            source,
        };
        Ok(recall::stated_preferences(&shard.memory, question, familiar, settings).map_err(failed)?)
    }
}
