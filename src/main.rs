//! The command line.
//!
//! In: arguments. Out: results on stdout, messages and progress on stderr, and an exit
//! code: 0 done; 1 failed; 2 wrong usage; 3 done, but some input was rejected; 78 the
//! pipeline file is not valid.

use std::process::ExitCode;

use clap::Parser;

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
    terminal::begin_process();
    if let Some(place) = std::env::args().nth(1).and_then(|command| cli::where_it_is(&command)) {
        terminal::say(&place);
        return ExitCode::from(2);
    }
    let Arguments { command } = Arguments::parse();
    #[cfg(feature = "otlp")]
    let spans = cli::spans();
    #[cfg(not(feature = "otlp"))]
    let spans = Ok(None);
    terminal::begin_logs(is_service(&command), spans);
    let ended = command.run();
    #[cfg(feature = "otlp")]
    cli::end_spans();
    terminal::code_of(ended)
}

/// Whether a command runs until it is stopped.
fn is_service(command: &cli::Command) -> bool {
    matches!(command, cli::Command::Run(_) | cli::Command::Serve(_) | cli::Command::Mcp(_))
}
