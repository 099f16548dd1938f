//! Counts and digests of banks, and how much memory they take.
//!
//! In: a bank, or all of them. Out: what it holds as of one epoch of its shard. A bank that sleeps is woken for its
//! digest, and not for its counts.

use memory::index::{CensusProbe, DataflowAnswer, GraphCensus, MemoryFootprint, ShardError, ShardHandle};
use types::model::Bank;

use super::{LanguageCounts, PipelineError, replica::Replica, unread_notice};

impl Replica {
    /// Counts of units and edges and a hash that depends only on the set.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank, or when the memory has stopped.
    pub fn digest(&self, bank: Option<&Bank>) -> Result<DataflowAnswer<GraphCensus>, PipelineError> {
        let probe = CensusProbe { bank: bank.map(Bank::key), hashing: true, listing: false };
        if let Some(bank) = bank {
            return Ok(self.readable(self.shards.of(bank)?, bank, None)?.memory.census(probe)?);
        }
        let mut whole = self.of_all(|memory| memory.census(probe.clone()), GraphCensus::add)?;
        // What sleeps is counted bank by bank, and each sleeps again with the next occasion.
        for bank in self.sleeping() {
            match self.digest(Some(&bank)) {
                Ok(of) => whole.value.add(of.value),
                // All of its turns were deleted.
                Err(PipelineError::UnknownBank { .. }) => {}
                Err(error) => return Err(error),
            }
            self.request_sleep(&bank);
        }
        Ok(whole)
    }

    /// The notice for a bank whose units, by its census, are mostly in languages that the embedding model does not
    /// read. It holds the line to write.
    #[must_use]
    pub fn unread_notice(&self, bank: &Bank, census: &GraphCensus) -> Option<String> {
        let found = LanguageCounts::from(census.languages.clone()).unread_by(&self.pipeline.model())?;
        Some(unread_notice(&format!("the units of bank {bank}"), found, &self.pipeline.embed))
    }

    /// How much memory one bank takes, or all of them.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank, or when the memory has stopped.
    pub fn footprint(&self, bank: Option<&Bank>) -> Result<DataflowAnswer<MemoryFootprint>, PipelineError> {
        if let Some(bank) = bank {
            let shard = self.readable(self.shards.of(bank)?, bank, None)?;
            return Ok(shard.memory.footprint(Some(bank.key()))?);
        }
        self.of_all(|memory| memory.footprint(None), |whole, part| whole.add(&part))
    }

    /// The sum over the answers of all shards.
    fn of_all<T: Default>(
        &self,
        ask: impl Fn(&ShardHandle) -> Result<DataflowAnswer<T>, ShardError>,
        add: impl Fn(&mut T, T),
    ) -> Result<DataflowAnswer<T>, PipelineError> {
        let mut whole = DataflowAnswer { value: T::default(), epoch: 0, reflects: Vec::new() };
        for shard in self.shards.all() {
            let DataflowAnswer { value, epoch, reflects } = ask(&shard.memory)?;
            add(&mut whole.value, value);
            whole.epoch = whole.epoch.max(epoch);
            whole.reflects.extend(reflects);
        }
        whole.reflects.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        Ok(whole)
    }

    /// Whether the counts of a bank that sleeps are kept: not after a start, until it has been awake.
    #[must_use]
    pub fn has_counts(&self, bank: &Bank) -> bool {
        let shard = self.shards.get(self.shards.partition_of(bank));
        let kept = shard.and_then(|shard| shard.sleep.as_ref()?.kept_counts(bank.key()));
        kept.is_some()
    }

    /// Counts of the units and edges of a bank, without their hash; those of a bank that sleeps are kept.
    ///
    /// # Errors
    /// As [`Self::digest`].
    pub fn counts(&self, bank: &Bank) -> Result<DataflowAnswer<GraphCensus>, PipelineError> {
        let shard = self.shards.of(bank)?;
        self.shards.check_bank(&shard, bank)?;
        if let Some(value) = shard.sleep.as_ref().and_then(|sleep| sleep.kept_counts(bank.key())) {
            return Ok(DataflowAnswer { value, epoch: 0, reflects: self.read_to(bank) });
        }
        let shard = self.readable(shard, bank, None)?;
        Ok(shard.memory.census(CensusProbe { bank: Some(bank.key()), hashing: false, listing: false })?)
    }
}
