//! Complete forgetting: from a request to the last stored byte.
//!
//! In: a bank and ids of turns. Out: one operation of any size, which survives a crash; its deletions in the turns log;
//! receipts that say which stage it has reached; and, on a log in a directory, a disk without the words. No operation,
//! ledger line or receipt holds words of a turn.
//!
//! - `operation`: an operation, kept in the log beside its deletions, and finished by the next start.
//! - `ledger`: the file outside the log's directory that makes a restored backup forget again.
//! - `receipt`: what an operation has reached, signed where a key is configured.
//! - `erase`: erases words from the turns log, the dead letters, the snapshots, the caches and the files under them.
//! - `dead_letter_erasure`: empties those that hold words of a turn, or name one; `turn_word_set`: whether a text holds
//!   words of turns; `dead_letter_selection`: selects letters; `imported_turns`: turns that only the memory's records
//!   hold.
//! - `text_normal_form`: characters of any bytes, in the normal form of words.
//! - `operator_key`: the operator's key; `word_runs`: runs of words in any bytes; `fingerprints`: of forgotten turns.
//! - `vector_forms`: the vectors of stored bytes in one form.
//! - `word_pattern`: the words to search for; `storage_search`: where they or fingerprints are in stored bytes;
//!   `verify`: whether they may be there.
//! - `settings_check`: the conditions for forgetting anything.
//! - `unreadable_operations`: entries of operations that cannot be read.
//! - `erasure_schedule`: erases on schedule, while a memory stays open.
//! - `retention`: forgets turns that rules no longer keep; `retention_rule`: the rule that an operation follows.
//! - `requests`: deletions on request; `forget_operation_tracker`: what became of operations; `eraser`: passes of an open
//!   memory.
//! - `log_events`: what this crate writes to the log.

mod dead_letter_erasure;
mod dead_letter_selection;
mod erase;
mod eraser;
mod erasure_schedule;
mod fingerprints;
mod forget_operation_tracker;
mod imported_turns;
mod ledger;
mod log_events;
mod operation;
mod operator_key;
mod receipt;
mod requests;
mod retention;
mod retention_rule;
mod settings_check;
mod storage_search;
mod text_normal_form;
mod turn_word_set;
mod unreadable_operations;
mod vector_forms;
mod verify;
mod word_pattern;
mod word_runs;

use ingest::ExtractionOrderSender;
use pipeline::{Cancellation, PipelineError, redacted_error};
use replica::Replica;

pub use dead_letter_selection::{DeadLetterList, LetterSelector, StoredDeadLetter, stored_dead_letters};
pub use erase::ErasureTargets;
pub use eraser::Eraser;
pub use erasure_schedule::erase_in_time;
pub use forget_operation_tracker::ForgetOperationTracker;
pub use operation::{DurableDeletion, ErasureReport, ForgetOperation};
pub use operation::{ForgetOperationStore, MemoryProgress, with_memory_progress};
pub use receipt::receipts;
pub use receipt::{ForgetStage, Receipt, stored_receipts};
pub use requests::{check_holds, empty_letters, forget_turns, letters_with};
pub use retention::{ExpiredTurns, RetentionEvent, RetentionRunner, RetentionScan, RetentionStatus};
pub use retention_rule::RetentionRule;
pub use settings_check::check_places;
pub use settings_check::{check_forgetting, check_key};
pub use storage_search::{StorageMatch, StorageSearchReport};
pub use unreadable_operations::{UnreadableOperation, unreadable_entry};
pub use verify::{
    ErasureVerdict, OperationVerification, VerificationReport, WordVerification, verify, verify_operations,
};
