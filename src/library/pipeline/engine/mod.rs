//! A memory that stays open: turns in at any time, extracted in the background, questions answered.
//!
//! In: a pipeline with an embedded log, turns, questions. Out: evidence. A turn is durable when `put`
//! returns; what the background has not done when the process ends is done by the next one. One process
//! at a time has a directory open.
//!
//! - `memory`: the surface, which this library's users and every server call.
//! - `status`: how it is, and what happens behind it.
//! - `forgets`: receipts of an open memory, and erasing on request; `eraser`: its passes.
//! - `turns`: the turns of a bank, for those who list them.
//! - `upkeep`: the threads behind it: extraction, and snapshots by the interval.

mod eraser;
mod forgets;
mod memory;
mod status;
#[cfg(test)]
mod tests;
mod turns;
mod upkeep;

use super::{
    ArrivingOrders, Asked, Deleted, Erased, ExtractionEvent, ExtractionOrders, ExtractionStatus, Front, Ingested,
    LiveEvent, LiveRun, PipelineError, Progress, Receipt, follow_source,
    forgetting::{Forgets, Places, Settled, erase_in_time, receipts, settled},
    replica::Replica,
    service::Service,
    write_snapshots,
};

pub use memory::{Memory, MemoryOptions};
pub use status::{MemoryEvent, MemoryStatus};
pub use turns::{HeldTurn, TurnVersion, forget_turns, held_turns, selected_turns};
