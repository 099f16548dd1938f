//! How much is done at once, and how much of one bank before another has its turn.

/// The bytes of the texts that are embedded before another bank has its turn.
pub(super) const PIECE_BYTES: usize = 8 << 10;
/// The bytes of turns that are planned before another bank has its turn.
pub(super) const PLANNED_BYTES: usize = 64 << 10;
/// Up to how many bytes of events a bank shares a transaction with others.
pub(super) const LITTLE_BYTES: usize = 16 << 10;
/// The bytes of events from which on shared work takes no further bank.
pub(super) const SHARED_BYTES: usize = 64 << 10;
/// Most shared work that is begun at once.
pub(super) const MAX_SHARED: usize = 4;
/// The bytes of events of a bank that has its own transaction; one event may have more.
pub(super) const OWN_BYTES: usize = 256 << 10;
/// The bytes of events from which on no other bank's own transaction is begun.
pub(super) const BEGUN_BYTES: usize = 8 << 20;
/// Most banks of which a transaction writes what an earlier process left unfinished.
pub(super) const UNFINISHED_BANKS: usize = 64;
/// The bytes that are embedded between two reads of a log that has more.
pub(super) const READ_AGAIN_BYTES: usize = 64 << 10;
/// The maximum number of turns in the windows that close in one step, for each event of a full read. A steady stream
/// closes fewer, so it is never read twice.
pub(super) const MAX_CLOSING: usize = 4;

/// How many windows are extracted again in one transaction, so that new turns wait for no longer than for a few others.
pub(super) const EXTRACTED_AGAIN: usize = 4;
