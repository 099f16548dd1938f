//! Work on a whole log or a whole source that a person starts and that ends by itself.
//!
//! In: a log, a source, or an exported file. Out: another log, a file, tables or counts. Serves no
//! question and joins no consumer group.
//!
//! - `transfer`: moves one bank to a file, and back into a log.
//! - `reembed`: writes the memory again, with another model's vectors.
//! - `restate`: finds what the turns of old records state that lasts.
//! - `replay`: writes a topic to Parquet.
//! - `take_snapshot`: writes a snapshot now, or compares two points of the past.
//! - `estimate`: counts the tokens that extraction of a source by a language model would use.
//! - `check_model`: checks that the embedding model and the reranker can be loaded.
//! - `unreadable_topic_record`: the records that such work could not read; `repair`: those on Kafka that no build can
//!   read.

mod check_model;
mod estimate;
mod reembed;
#[cfg(feature = "kafka")]
mod repair;
mod replay;
mod restate;
mod take_snapshot;
mod transfer;
mod unreadable_topic_record;

use pipeline::{PipelineError, Progress};
use replica::{Replica, ReplicaOptions, WrittenSnapshots, compare_points};

pub use check_model::{check_model, check_reranker};
pub use estimate::{ExtractionEstimate, estimate};
pub use reembed::{ReembedReport, reembed};
#[cfg(feature = "kafka")]
pub use repair::{replace_record, unreadable_records};
pub use replay::{ReplayError, ReplayRequest, TopicReplay};
pub use restate::{RestateReport, restate};
pub use take_snapshot::{diff, take_snapshot};
pub use transfer::{BankReader, ExportReport, ImportReport, TransferError, export, export_online, import};
pub use unreadable_topic_record::UnreadableTopicRecord;
