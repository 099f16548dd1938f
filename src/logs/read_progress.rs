//! How far the turns of a partition are covered by its memory.
//!
//! In: what the extraction stage has read, and which banks it has not finished. Out: for each bank, the first offset
//! that its memory does not cover. Banks are independent: one with much to do falls behind while others continue. A
//! build that does not know this continues from [`ReadProgress::low`], and reads some covered turns again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use types::model::Bank;

/// How far the turns of a partition are covered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadProgress {
    /// Every turn before this offset is covered, except those of the banks in `behind`.
    pub through: u64,
    /// The banks with turns before `through` that are not covered: for each, the offset of the first.
    pub behind: BTreeMap<Bank, u64>,
}

impl ReadProgress {
    /// The first offset that is not covered, of any bank.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.behind.values().copied().min().unwrap_or(self.through).min(self.through)
    }

    /// The first offset that is not covered, of the turns of one bank.
    #[must_use]
    pub fn of(&self, bank: &Bank) -> u64 {
        self.behind.get(bank).copied().unwrap_or(self.through).min(self.through)
    }

    /// Whether it differs from another one and reaches at least as far.
    #[must_use]
    pub fn covers_more(&self, other: &Self) -> bool {
        self != other && self.through >= other.through
    }

    /// A number that identifies this progress: the offset if no bank is behind, otherwise a hash.
    #[must_use]
    pub fn number(&self) -> u64 {
        if self.behind.is_empty() {
            return self.through;
        }
        let mut hash = blake3::Hasher::new();
        hash.update(&self.through.to_le_bytes());
        for (bank, from) in &self.behind {
            hash.update(&(bank.as_str().len() as u64).to_le_bytes()).update(bank.as_str().as_bytes());
            hash.update(&from.to_le_bytes());
        }
        let mut number = [0; 8];
        hash.finalize_xof().fill(&mut number);
        // No offset is this large.
        u64::from_le_bytes(number) | 1 << 63
    }

    /// The same progress, for a log that keeps nothing before an offset.
    #[must_use]
    pub fn from_offset(self, earliest: u64) -> Self {
        let through = self.through.max(earliest);
        let raised = self.behind.into_iter().map(|(bank, from)| (bank, from.max(earliest)));
        Self { through, behind: raised.filter(|(_, from)| *from < through).collect() }
    }
}

impl From<u64> for ReadProgress {
    fn from(through: u64) -> Self {
        Self { through, behind: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(name: &str) -> Bank {
        Bank::parse(name).expect("a name")
    }

    #[test]
    fn a_bank_that_is_behind_holds_up_no_other() {
        let progress = ReadProgress { through: 9, behind: [(bank("a"), 3), (bank("b"), 5)].into() };
        assert_eq!((progress.low(), progress.of(&bank("a")), progress.of(&bank("b"))), (3, 3, 5));
        assert_eq!(progress.of(&bank("c")), 9);
        let raised = progress.clone().from_offset(4);
        assert_eq!((raised.low(), raised.of(&bank("a")), raised.through), (4, 4, 9));
        assert_eq!(progress.clone().from_offset(12), ReadProgress::from(12));
        let ahead = ReadProgress { behind: [(bank("b"), 5)].into(), ..progress.clone() };
        assert!(ahead.covers_more(&progress) && !progress.covers_more(&progress));
        assert_ne!(ahead.number(), progress.number());
        assert_eq!(ReadProgress::from(7).number(), 7);
    }
}
