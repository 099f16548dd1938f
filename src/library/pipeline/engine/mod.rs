//! A memory that stays open: it takes turns and answers questions at any time, and extracts in the background.
//!
//! In: a pipeline with an embedded log, turns, questions. Out: evidence. A turn is durable when `put`
//! returns. Turns that are not extracted when a process ends are extracted by the next process. Only one
//! process at a time can have a directory open.
//!
//! - `memory`: the methods that this library's users and every server call.
//! - `status`: the state of a memory, and the events of its background threads.
//! - `turns`: reads and deletes the turns of a bank.
//! - `upkeep`: the background threads: extraction, and snapshots at an interval.

mod memory;
mod status;
#[cfg(test)]
mod tests;
mod turns;
mod upkeep;

use super::{
    ArrivingOrders, Asked, ExtractionEvent, ExtractionOrders, ExtractionStatus, Front, Ingested, LiveEvent, LiveRun,
    PipelineError, Progress, follow_source, replica::Replica, service::Service, write_snapshots,
};

pub use memory::{Memory, MemoryOptions};
pub use status::{MemoryEvent, MemoryStatus};
pub use turns::{HeldTurn, TurnVersion, delete_turns, held_turns, selected_turns};
