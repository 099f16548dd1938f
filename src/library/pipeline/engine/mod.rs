//! A memory that stays open: turns in at any time, extracted in the background, questions answered.
//!
//! In: a pipeline with an embedded log, turns, questions. Out: evidence. A turn is durable when `put`
//! returns; what the background has not done when the process ends is done by the next one. One process
//! at a time has a directory open.
//!
//! - `memory`: the surface, which this library's users and every server call.
//! - `status`: how it is, and what happens behind it.
//! - `turn_places`: where they lie, for pages of them and for single ones.
//! - `turns`: the turns of a bank, for those who list them.
//! - `upkeep`: the threads behind it: extraction, and snapshots by the interval.

mod memory;
mod status;
#[cfg(test)]
mod tests;
mod turn_places;
mod turns;
mod upkeep;

use super::{
    ArrivingOrders, Asked, ExtractionEvent, ExtractionOrders, ExtractionStatus, Front, Ingested, LiveEvent, LiveRun,
    PipelineError, Progress, follow_source, replica::Replica, service::Service, write_snapshots,
};

pub use memory::{Memory, MemoryOptions};
pub use status::{MemoryEvent, MemoryStatus};
pub use turn_places::{PageOf, TurnPage, TurnSpan};
pub use turns::{HeldTurn, TurnVersion, delete_turns, held_turns, selected_turns};
