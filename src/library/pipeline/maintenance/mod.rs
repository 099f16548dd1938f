//! Work on a whole log or a whole source, run by a person and then over.
//!
//! In: a log, a source, or an exported file. Out: another log, a file, tables or counts. Serves no
//! question and joins no consumer group.
//!
//! - `transfer`: one bank to a file, and back into a log.
//! - `reembed`: the memory once more, with another model's vectors.
//! - `replay`: a topic to Parquet.
//! - `snapshots`: a snapshot now, or what changed between two points of the past.
//! - `estimate`: the tokens that a language model would be sent for a source.
//! - `check_model`: whether the embedding model can be loaded.
//! - `unreadable`: the records that such work could not read.

mod check_model;
mod estimate;
mod reembed;
mod replay;
mod snapshots;
mod transfer;
mod unreadable;

use super::{PipelineError, Progress, Replica, ReplicaOptions, WrittenSnapshots};

pub use check_model::check_model;
pub use estimate::{Estimate, estimate};
pub use reembed::{ReembedReport, reembed};
pub use replay::{Replay, ReplayError, ReplayRequest};
pub use snapshots::{diff, take_snapshot};
pub use transfer::{ExportReport, ImportReport, TransferError, export, import};
pub use unreadable::UnreadableAt;
