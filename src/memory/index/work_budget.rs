//! How much the memory does at once, counted in work and never in time.
//!
//! In: the costs of steps. Out: whether another step may follow. No clock: the same input is divided
//! in the same way on every machine. One point of work is about a nanosecond of one core.

/// Work after which a load or a long scan gives way to questions: about 2 ms.
pub(super) const SLICE: u64 = 2_000_000;

/// Indexing one unit: tokenising its parts, ordering its cues, arranging its edges.
pub(super) const INDEXED_UNIT: u64 = 60_000;
/// Comparing a new or deleted unit with one that is already there.
pub(super) const COMPARED_UNIT: u64 = 5;
/// Taking out one unit, with its parts and its edges.
pub(super) const REMOVED_UNIT: u64 = 20_000;
/// Looking for removed units in the pool of one unit.
pub(super) const READ_POOL: u64 = 50;
/// Listing the units that may have chosen a removed one by its cues.
pub(super) const LISTED_NEIGHBOURS: u64 = 5_000;
/// Choosing again for one unit by its cues.
pub(super) const RECHOSEN_UNIT: u64 = 10_000;
/// Taking the words of one unit out of the lexical index.
pub(super) const UNLISTED_WORDS: u64 = 10_000;
/// Adding a part to the candidate index, or taking it out.
pub(super) const CHANGED_CANDIDATE: u64 = 20_000;
/// Adding one unit whose choices are known.
pub(super) const PLACED_UNIT: u64 = 40_000;
/// Adding one known choice.
pub(super) const KNOWN_CHOICE: u64 = 3_000;
/// Multiplying a question's vector by one vector of a part.
pub(super) const SCANNED_VECTOR: u64 = 40;
/// Comparing one part with a selector.
pub(super) const MATCHED_PART: u64 = 100;
/// One pass over one part or unit of a long scan.
pub(super) const PASSED_PART: u64 = 250;

/// Counting a word's posting in its part and in the parts around it.
pub(super) const COUNTED_POSTING: u64 = 30;
/// Reading a posting.
pub(super) const READ_POSTING: u64 = 2;
/// Multiplying a question's vector by a block of 64 codes.
pub(super) const SCANNED_BLOCK: u64 = 250;
/// Making the first estimates for a block of 64 parts, including the scan of their codes.
pub(super) const ESTIMATED_BLOCK: u64 = 650;
/// Choosing a candidate, and listing the parts around it.
pub(super) const CHOSEN_PART: u64 = 400;

/// Work that is left of a slice.
#[derive(Debug)]
pub(super) struct WorkBudget(u64);

impl WorkBudget {
    /// An allowance of this much work.
    pub(super) fn new(work: u64) -> Self {
        Self(work)
    }

    /// Counts a step that was done.
    pub(super) fn spend(&mut self, work: u64) {
        self.0 = self.0.saturating_sub(work);
    }

    /// What is left.
    pub(super) fn left(&self) -> u64 {
        self.0
    }

    /// Whether nothing is left.
    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}
