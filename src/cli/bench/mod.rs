//! `ripplemem bench`: what this machine holds, and how fast it answers.
//!
//! In: a source, or the seed of a synthetic dialogue. Out: a table or JSON on stdout. The command
//! starts itself once for each step, so that a step's memory is that of a process which did nothing
//! else. Everything is written below a temporary directory, which is deleted at the end. No memory of
//! the user is opened, and no language model is asked.
//!
//! - `command`: the arguments, and the steps one after the other.
//! - `dialogue`: the synthetic dialogue; `measured_source`: a source, limited and divided into banks,
//!   that remembers what may be asked.
//! - `step`: what each process does; `process_memory`: what the system says of its memory.
//! - `figures`: the results, and their table.

mod command;
mod dialogue;
mod figures;
mod measured_source;
mod process_memory;
mod step;

pub(super) use command::Bench;
