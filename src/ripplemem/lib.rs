//! RippleMem: long-term memory for LLM agents as a live dataflow.
//!
//! [`Memory`] is for programs that keep a memory in their own process:
//!
//! ```no_run
//! use ripplemem::{Memory, QueryRequest, config::Pipeline, model::{Bank, EventTime, Question, Turn}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let memory = Memory::open(&Pipeline::parse("version = 1")?)?; // in ./ripplemem-data
//! let (bank, said_at) = (Bank::parse("acme/support")?, EventTime::parse("2024-05-06T09:00:00Z")?);
//! // Durable on return; extraction and embedding follow in the background.
//! let written = memory.put([Turn::new(bank.clone(), "1", "Ann", "I moved to Lisbon.", said_at)])?;
//! let question = Question::new(bank, "Where does Ann live?");
//! // `after` waits until the answer reflects what was written.
//! let evidence = memory.ask_and_wait(QueryRequest::now(question).after(&written))?;
//! println!("{}", evidence.context);
//! memory.close()?;
//! # Ok(())
//! # }
//! ```
//! `examples/remember_and_ask.rs` does more: a deletion, and the changes of the graph.
//!
//! What a memory holds is a pure function of its memory log: clocks, files and models only act before that log.
//!
//! - `memory`: a memory that stays open; `background_tasks`: its threads; `status`: its state.
//! - `erasing`, `explaining`: what an open memory forgets for good, and explains.
//! - `profile`: what persons said that lasts, with `latest_sessions`.
//! - `turn_locator`: pages of a bank's turns; `metadata_reader`: the metadata of quoted turns;
//!   `verdict_reader`: verdicts that other instances write.
//! - `pipeline_driver`: the same, call by call, for single commands, the evaluation and the tests.
//! - `maintenance`: work on a whole log: export, import, reembed, replay, estimate, snapshots.

mod background_tasks;
#[cfg(test)]
mod erase_tests;
mod erasing;
mod explaining;
mod latest_sessions;
mod log_events;
mod maintenance;
mod memory;
#[cfg(test)]
mod memory_tests;
mod metadata_reader;
mod pipeline_driver;
mod profile;
#[cfg(test)]
mod shard_tests;
#[cfg(test)]
mod sleep_tests;
mod status;
mod turn_locator;
mod verdict_reader;

pub use crate::memory::{Memory, MemoryOptions};
pub use maintenance::{
    BankReader, ExportReport, ExtractionEstimate, ImportReport, ReembedReport, ReplayError, ReplayRequest,
    RestateReport, TopicReplay, TransferError, UnreadableTopicRecord, check_model, check_reranker, diff, estimate,
    export, export_online, import, reembed, restate, take_snapshot,
};
#[cfg(feature = "kafka")]
pub use maintenance::{replace_record, unreadable_records};
pub use metadata_reader::MetadataReader;
pub use pipeline::PipelineError;
pub use pipeline_driver::PipelineDriver;
pub use profile::{ProfileQuery, profile_of};
pub use replica::QueryRequest;
pub use status::{MemoryEvent, MemoryStatus};
pub use turn_locator::{SessionSpan, TurnPage, TurnPageRequest, TurnSpan};
pub use types::{config, model};
