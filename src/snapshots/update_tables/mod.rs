//! The update tables of a snapshot: what each read of the log added and removed (decision 33).
//!
//! In: memory records and choices, each with +1 or -1. Out: Arrow batches, and back. A row has the
//! `offset` and `append_time` of the last record of its read of the log, so the rows up to an
//! offset, summed by `diff`, are the memory as of that offset.
//!
//! - `update_table`: the tables, their columns and schemas
//! - `encode`: rows to batches; `decode`: batches to rows

mod decode;
mod encode;
mod update_table;

pub(super) use decode::{ChoiceColumns, HeadColumns, TurnColumns, UnitColumns, batches};
pub(super) use encode::{ChoiceRows, TurnRows, UnitRows};
pub(super) use update_table::RowHead;
pub use update_table::UpdateTable;
