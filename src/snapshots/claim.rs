//! Claims: which process writes the snapshots of a shard.
//!
//! In: the claims of a shard's directory. Out: a new one with the next epoch, or the process that has the newest. A
//! claim is created only if none with its epoch exists, so that each epoch has one writer. A writer that finds a newer
//! claim stops writing, unless that claim was given up unused. A claim has no expiry time: it is old when its writer
//! has not renewed it for a while, and free when its writer gave it up.

use serde::{Deserialize, Serialize};

use super::{Manifest, SnapshotError, manifest::shard_directory, store::SnapshotStore};

/// When a process may claim a shard's snapshots that another process has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimRule {
    /// At once: the log, the consumer group or a person says that this process writes them.
    AtOnce,
    /// Once the other has given up its claim, or has not renewed it for this many milliseconds.
    WhenOld(i64),
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotClaim {
    /// The epoch.
    pub epoch: u64,
    /// The run that has it: its process, then a dot and the number of the writer within the process.
    pub by: String,
    /// When it was last renewed, in milliseconds since 1970; 0: it was given up.
    pub renewed_ms: i64,
}

impl SnapshotClaim {
    /// The directory of a shard's claims.
    pub(super) fn directory(partition: u32) -> String {
        format!("{}/claims", shard_directory(partition))
    }

    /// The epochs that are claimed, newest first.
    pub(super) fn epochs(store: &SnapshotStore, partition: u32) -> Result<Vec<u64>, SnapshotError> {
        let directory = Self::directory(partition);
        let epoch =
            |path: String| path.strip_prefix(&directory)?.strip_prefix('/')?.strip_suffix(".json")?.parse().ok();
        let mut epochs: Vec<u64> = store.list(&directory)?.into_iter().filter_map(epoch).collect();
        epochs.sort_unstable_by(|a, b| b.cmp(a));
        Ok(epochs)
    }

    /// Whether the run may claim the shard's snapshots now.
    pub(super) fn allows(
        store: &SnapshotStore,
        partition: u32,
        run: &str,
        rule: ClaimRule,
        now_ms: i64,
    ) -> Result<bool, SnapshotError> {
        let ClaimRule::WhenOld(old_ms) = rule else { return Ok(true) };
        let Some(newest) = Self::epochs(store, partition)?.first().copied() else { return Ok(true) };
        let Some(bytes) = store.get(&Self::path(partition, newest))? else { return Ok(true) };
        // A claim that cannot be read does not count.
        let Ok(claim) = serde_json::from_slice::<Self>(&bytes) else { return Ok(true) };
        let process = |run: &str| run.split('.').next().map(str::to_owned);
        Ok(process(&claim.by) == process(run) || now_ms.saturating_sub(claim.renewed_ms) > old_ms)
    }

    /// Claims the next epoch; `None` if another process claims it at the same moment.
    pub(super) fn make(
        store: &SnapshotStore,
        partition: u32,
        run: &str,
        now_ms: i64,
    ) -> Result<Option<Self>, SnapshotError> {
        let claimed = Self::epochs(store, partition)?.first().copied().unwrap_or_default();
        let written = Manifest::ids(store, partition)?.first().map_or(0, |id| id.epoch);
        let claim = Self { epoch: claimed.max(written) + 1, by: run.to_owned(), renewed_ms: now_ms };
        if store.put_fresh(&Self::path(partition, claim.epoch), claim.json())? {
            return Ok(Some(claim));
        }
        // A store may have repeated a request whose response was lost.
        let found = store.get(&Self::path(partition, claim.epoch))?;
        let own = found.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok()).is_some_and(|of| of == claim);
        Ok(own.then_some(claim))
    }

    /// Whether every newer claim was given up unused.
    pub(super) fn holds(&self, store: &SnapshotStore, partition: u32) -> Result<bool, SnapshotError> {
        let newer: Vec<u64> = Self::epochs(store, partition)?.into_iter().filter(|epoch| *epoch > self.epoch).collect();
        for epoch in &newer {
            let found = store.get(&Self::path(partition, *epoch))?;
            let claim = found.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
            if claim.is_none_or(|claim| claim.renewed_ms != 0) {
                return Ok(false);
            }
        }
        Ok(newer.is_empty() || Manifest::ids(store, partition)?.first().is_none_or(|id| id.epoch <= self.epoch))
    }

    /// Records that the writer is alive, or, with `now_ms` 0, that it has given the claim up.
    pub(super) fn renew(&mut self, store: &SnapshotStore, partition: u32, now_ms: i64) -> Result<(), SnapshotError> {
        self.renewed_ms = now_ms;
        store.put(&Self::path(partition, self.epoch), self.json())
    }

    /// The path of a claim.
    pub(super) fn path(partition: u32, epoch: u64) -> String {
        format!("{}/{epoch:08}.json", Self::directory(partition))
    }

    fn json(&self) -> bytes::Bytes {
        serde_json::to_vec_pretty(self).unwrap_or_default().into()
    }
}
