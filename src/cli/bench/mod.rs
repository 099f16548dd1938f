//! `ripplemem bench`: how much memory this machine can hold, and how fast it answers.
//!
//! In: a source, or the seed of a synthetic dialogue. Out: a table or JSON on stdout. The command starts itself once
//! for each step, so that the memory use of a step is that of a process that did nothing else. Everything is written
//! below a temporary directory, which is deleted at the end. Never opens a memory of the user, and never asks a
//! language model.
//!
//! - `command`: the arguments, and the sequence of the steps.
//! - `synthetic_dialogue`: the synthetic dialogue; `measured_source`: a source, limited and divided into banks, that
//!   remembers turns that can be asked as questions.
//! - `bench_step`: what each process does; `process_memory`: what the system says about its memory.
//! - `figures`: the results, and their table; `sleep_step`: a memory of many banks, with sleep and without it.

mod bench_step;
mod command;
mod figures;
mod measured_source;
mod process_memory;
mod sleep_step;
mod synthetic_dialogue;

pub(super) use command::BenchArgs;
