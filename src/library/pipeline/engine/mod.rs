//! A memory that stays open: it takes turns and answers questions at any time, and extracts in the background.
//!
//! In: a pipeline with an embedded log, turns, questions. Out: evidence. A turn is durable when `put`
//! returns. Turns that are not extracted when a process ends are extracted by the next process. Only one
//! process at a time can have a directory open.
//!
//! - `explaining`: why a turn is quoted or not.
//! - `memory`: the methods that this library's users and every server call.
//! - `status`: the state of a memory, and the events of its background threads.
//! - `forgets`: operations and receipts of a memory, and erasing on request; `eraser`: its passes.
//! - `turn_places`: finds pages of turns and single turns without reading every record.
//! - `turns`: reads and deletes the turns of a bank.
//! - `upkeep`: the background threads: extraction, snapshots at an interval, erasing in time, and retention.

mod eraser;
mod explaining;
mod forgets;
mod memory;
mod status;
#[cfg(test)]
mod tests;
mod turn_places;
mod turns;
mod upkeep;

use super::{
    ArrivingOrders, Asked, Cancellation, Deleted, Erased, ExtractionEvent, ExtractionOrders, ExtractionStatus, Front,
    Ingested, LiveEvent, LiveRun, PipelineError, Progress, Receipt,
    explaining::complete,
    follow_source,
    forgetting::{
        Forgets, LetterSelector, Places, Retention, RetentionStatus, Settled, check_forgetting, compare_points,
        each_record, erase_in_time, receipts, settled, unreadable_entries,
    },
    replica::Replica,
    service::Service,
    write_snapshots,
};

pub use forgets::ForgetOperations;
pub use memory::{Memory, MemoryOptions};
pub use status::{MemoryEvent, MemoryStatus};
pub use turn_places::{PageOf, TurnPage, TurnSpan};
pub use turns::{
    HeldTurn, TurnVersion, empty_letters, forget_turns, held_turns, letters_with, plain_ids, selected_turns,
    wait_until_listed,
};
