//! Forgetting that is complete: from a request to the last stored byte.
//!
//! In: a bank and ids of turns. Out: one operation of any size, which survives a crash; its deletions in the turns log;
//! receipts that say which stage it has reached; and, on a log in a directory, a disk without the words. No operation,
//! ledger line or receipt holds a word of what was said.
//!
//! - `operation`: an operation, kept in the log beside its deletions, and finished by the next start.
//! - `ledger`: the file outside the log's directory that makes a restored backup forget again.
//! - `receipt`: what an operation has reached, signed where a key is configured.
//! - `erase`: words out of the turns log, the dead letters, the snapshots, the caches and the files under them.
//! - `dead_letters`: those that hold words of a turn, or name one, emptied; `shared_words`: whether a text holds words
//!   of another one; `letters`: those that somebody asks for; `imported`: turns that the memory's records alone hold.
//! - `normal_bytes`: text in any bytes, in the normal form of words.
//! - `key`: the operator's key; `word_runs`: runs of words in any bytes; `fingerprints`: those of what is forgotten.
//! - `vector_forms`: the vectors of stored bytes in one form.
//! - `words`: words that are looked for; `search`: where they or fingerprints lie in stored bytes;
//!   `verify`: whether they may.
//! - `check`: what must hold before anything is forgotten; `import_time`: when banks were imported.
//! - `since`: what was forgotten since a point of the past; `bank_turns`: a bank's records in the turns log.
//! - `unreadable`: entries of operations that cannot be read.
//! - `due`: erasing in time, while a memory stays open.
//! - `retention`: forgetting what rules no longer keep; `rule`: which of them an operation follows.

mod bank_turns;
mod check;
mod dead_letters;
mod due;
mod erase;
#[cfg(test)]
mod erase_tests;
mod fingerprints;
mod import_time;
mod imported;
mod key;
mod ledger;
mod letters;
mod normal_bytes;
mod operation;
mod receipt;
mod retention;
mod rule;
mod search;
mod shared_words;
mod since;
mod unreadable;
mod vector_forms;
mod verify;
mod word_runs;
mod words;

use super::{Cancellation, PipelineError, Replica, engine, logged};

pub(super) use bank_turns::each_record;
pub use check::check_forgetting;
pub(super) use check::check_places;
pub(super) use due::erase_in_time;
pub(super) use erase::Places;
pub(super) use import_time::note_import;
pub use letters::{HeldLetter, HeldLetters, LetterSelector, held_letters};
pub use operation::{Deleted, Erased, ForgetOperation};
pub(super) use operation::{Forgets, Settled, settled};
pub(super) use receipt::receipts;
pub use receipt::{ForgetStage, Receipt, stored_receipts};
pub use retention::{Outlived, Retention, RetentionLook, RetentionNews, RetentionStatus};
pub use rule::RetentionRule;
pub use search::{Found, Search};
pub(super) use since::{compare_points, forgotten_since};
pub(super) use unreadable::unreadable_entries;
#[cfg(feature = "kafka")]
pub(super) use unreadable::unreadable_entry;
pub use verify::{Verdict, Verified, VerifiedOperation, VerifiedOperations, verify, verify_operations};
