//! The program `ripplemem-eval`: how good a memory is.
//!
//! In: arguments. Out: results on stdout, messages and progress on stderr, and an exit code: 0 done; 1 failed; 2 wrong
//! usage; 3 done, but some input was rejected; 78 the pipeline file is not valid.

use std::process::ExitCode;

use clap::Parser;

mod commands;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    terminal::begin_process();
    let arguments = commands::EvalArgs::parse();
    terminal::begin_logs(false, Ok(None));
    terminal::exit_code(arguments.run())
}
