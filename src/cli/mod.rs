//! The commands, one file each, and what they share.
//!
//! In: arguments. Out: results on stdout, messages and progress on stderr, and an exit code.
//! Each file of a command holds its arguments with their help, and `run`. A new command needs a file (a folder if it
//! has several files), its `mod` line, and its line in the list below.
//!
//! Shared: `command` (the enum and its dispatch), `exit_code`, `logs` (log lines), `otlp` (spans), `output` (stdout and
//! stderr), `process` (settings of the process itself), `progress_bar`, `pipeline_file`, `memory_arguments`,
//! `source_arguments`, `selector_arguments`, `as_of_argument`, `open_memory`, `reached` (a memory opened here, or in
//! the process that serves it), `turn_ids` (whole ids from short ones), `model_reading` (what the language model has
//! read), `usage_table`, `service_request` (HTTP to a running service).

mod as_of_argument;
mod command;
mod exit_code;
mod logs;
mod memory_arguments;
mod model_reading;
mod open_memory;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod pipeline_file;
mod process;
mod progress_bar;
mod reached;
mod selector_arguments;
mod service_request;
mod source_arguments;
mod turn_ids;
mod usage_table;

#[cfg(feature = "lab")]
mod agents;
mod ask;
mod bench;
#[cfg(feature = "lab")]
mod calibrate;
#[cfg(feature = "console")]
mod console;
#[cfg(feature = "lab")]
mod conversations;
mod cost;
mod dead_letters;
mod demo;
mod diff;
mod digest;
mod doctor;
mod estimate;
#[cfg(feature = "lab")]
mod eval;
#[cfg(feature = "lab")]
mod evaluated_pipeline;
mod explain;
mod export;
#[cfg(feature = "lab")]
mod fit;
mod forget;
mod forgets;
mod health;
mod heard_languages;
mod import;
mod ingest;
mod lag;
mod mcp;
mod reembed;
mod reextract;
#[cfg(feature = "kafka")]
mod repair;
mod replay;
mod retention;
mod run;
mod schema;
mod serve;
#[cfg(feature = "console")]
mod served_samples;
mod setup;
mod snapshot;
mod stats;
mod tap;
mod token;
mod turns;
mod validate;
mod verify_forgotten;

pub(crate) use exit_code::INVALID_PIPELINE;
pub(crate) use logs::{begin as begin_logs, end as end_logs};
pub(crate) use output::say;
pub(crate) use process::begin as begin_process;

// In the order of the help.
command::commands! {
    setup::Setup,
    demo::Demo,
    run::Run,
    serve::Serve,
    ingest::Ingest,
    ask::Ask,
    explain::Explain,
    turns::Turns,
    forget::Forget,
    dead_letters::DeadLetters,
    retention::Retention,
    mcp::Mcp,
    snapshot::Snapshot,
    diff::Diff,
    reextract::Reextract,
    estimate::Estimate,
    cost::Cost,
    export::Export,
    import::Import,
    reembed::Reembed,
    #[cfg(feature = "kafka")]
    repair::Repair,
    #[cfg(feature = "lab")]
    calibrate::Calibrate,
    digest::Digest,
    stats::Stats,
    #[cfg(feature = "lab")]
    eval::Eval,
    #[cfg(feature = "console")]
    console::Console,
    bench::Bench,
    token::Token,
    tap::Tap,
    replay::Replay,
    lag::Lag,
    health::Health,
    doctor::Doctor,
    validate::Validate,
    schema::Schema,
}
