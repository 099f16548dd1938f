//! Limits of one piece of work, and of the work for one bank before another bank has its turn.

/// Bytes of texts that are embedded before another bank has its turn.
pub(super) const PIECE_BYTES: usize = 8 << 10;
/// Bytes of turns that are planned before another bank has its turn.
pub(super) const PLANNED_BYTES: usize = 64 << 10;
/// A bank with at most this many bytes of events shares a transaction with others.
pub(super) const LITTLE_BYTES: usize = 16 << 10;
/// Shared work with this many bytes of events takes no further bank.
pub(super) const SHARED_BYTES: usize = 64 << 10;
/// Most shared transactions in progress at once.
pub(super) const MAX_SHARED: usize = 4;
/// Bytes of events of a transaction for one bank alone; one event may have more.
pub(super) const OWN_BYTES: usize = 256 << 10;
/// While this many bytes of events are in progress, no further transaction for one bank alone begins.
pub(super) const BEGUN_BYTES: usize = 8 << 20;
/// Most banks for which a transaction writes changes that an earlier process left unfinished.
pub(super) const UNFINISHED_BANKS: usize = 64;
/// Bytes that are embedded between two reads of a log that has more records.
pub(super) const READ_AGAIN_BYTES: usize = 64 << 10;
/// The maximum number of turns in the windows that close in one step, for each event of a full read. A steady stream
/// closes fewer, so none of its events is read twice.
pub(super) const MAX_CLOSING: usize = 4;

/// Windows that are extracted again in one transaction, so that new turns wait for only a few of them.
pub(super) const EXTRACTED_AGAIN: usize = 4;
