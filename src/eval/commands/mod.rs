//! The commands of `ripplemem-eval`, one file each.
//!
//! In: arguments. Out: results on stdout, messages and progress on stderr, and an exit code. Without a command,
//! `benchmark` scores the memory on a file.

mod agents;
mod benchmark;
mod calibrate;
mod console;
mod conversations;
mod fit;
mod hooks;
mod mixed;
mod pairs;
mod pipeline_args;
mod schema;

pub(crate) use benchmark::EvalArgs;
