//! What the stages of a pipeline share: their error, until when a caller waits, and how they read a log.
//!
//! In: a log. Out: its live records, the turns of a bank. Writes nothing but the time of an import.
//!
//! | module | question |
//! |---|---|
//! | `error` | Why did a pipeline stop? |
//! | `redacted_errors` | What does a log line say of an error? |
//! | `cancellation` | Does a caller still wait for an answer? |
//! | `progress` | How far is a long piece of work? |
//! | `live_records` | Which records of the memory topic count? |
//! | `bank_records` | Which records of the turns topic are a bank's? |
//! | `stored_turns` | Which turns does the memory hold? |
//! | `import_time` | When was a bank imported? |

mod bank_records;
mod cancellation;
mod error;
mod import_time;
mod live_records;
mod progress;
mod redacted_errors;
mod stored_turns;

pub use bank_records::each_record;
pub use cancellation::{Cancellation, CancellationGuard, CancellationReason};
pub use error::PipelineError;
pub use import_time::{imported_ms, note_import};
pub use live_records::{LiveRecords, key_of, model_of, record_of};
pub use progress::Progress;
pub use redacted_errors::{redacted_error, redacted_llm_error};
pub use stored_turns::{
    StoredTurn, TurnVersion, append_ms, count_plain_ids, selected_turns, stored_turns, turns_of_record,
    turns_that_pass, versions, wait_until_listed,
};
