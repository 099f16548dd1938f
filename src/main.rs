//! The command line: the only place that prints and exits.
//!
//! In: arguments. Out: results on stdout, messages and progress on stderr, and an exit
//! code: 0 done; 1 failed; 2 wrong usage; 3 done, but some input was rejected; 78 the
//! pipeline file is not valid.

use std::process::ExitCode;

use clap::Parser;
use nouns::config::ConfigError;

mod cli;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Long-term memory for LLM agents as a live dataflow.
#[derive(Parser)]
#[command(
    version,
    about,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some input was \
rejected (see the dead letters), 78 the pipeline file is not valid."
)]
struct Arguments {
    #[command(subcommand)]
    command: cli::Command,
}

fn main() -> ExitCode {
    cli::begin_process();
    let Arguments { command } = Arguments::parse();
    cli::begin_logs(is_service(&command));
    let ended = command.run();
    cli::end_logs();
    match ended {
        Ok(code) => code,
        Err(error) => {
            if !is_closed_pipe(&error) {
                cli::say(&format!("{error:#}"));
            }
            ExitCode::from(if error.is::<ConfigError>() { cli::INVALID_PIPELINE } else { 1 })
        }
    }
}

/// Whether a command runs until it is stopped.
fn is_service(command: &cli::Command) -> bool {
    matches!(command, cli::Command::Run(_) | cli::Command::Serve(_) | cli::Command::Mcp(_))
}

/// Whether the reader of stdout closed it, as `head` does: a failure that needs no message.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
