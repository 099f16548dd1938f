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
struct CliArgs {
    #[command(subcommand)]
    command: cli::CliCommand,
}

fn main() -> ExitCode {
    terminal::begin_process();
    if cli::run_if_hook() {
        // At once: a thread of the hook may still wait for something.
        std::process::exit(0);
    }
    if let Some(place) = std::env::args().nth(1).and_then(|command| cli::missing_command_hint(&command)) {
        terminal::say(&place);
        return ExitCode::from(2);
    }
    let CliArgs { command } = CliArgs::parse();
    #[cfg(feature = "otlp")]
    let spans = cli::spans();
    #[cfg(not(feature = "otlp"))]
    let spans = Ok(None);
    terminal::begin_logs(is_service(&command), spans);
    let ended = command.run();
    #[cfg(feature = "otlp")]
    cli::end_spans();
    terminal::exit_code(ended)
}

/// Whether a command runs until it is stopped.
fn is_service(command: &cli::CliCommand) -> bool {
    match command {
        cli::CliCommand::Run(_) | cli::CliCommand::Serve(_) | cli::CliCommand::Mcp(_) => true,
        cli::CliCommand::Agents(agents) => agents.is_service(),
        _ => false,
    }
}
