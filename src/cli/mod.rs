//! The commands, one file each, and what they share.
//!
//! In: arguments. Out: results on stdout, messages and progress on stderr, and an exit code.
//! Each file of a command holds its arguments with their help, and `run`. A new command needs a file (a folder if it
//! has several files), its `mod` line, and its line in the list below.
//!
//! Shared: `command` (the enum and its dispatch), `other_program` (commands that this program does not have), `otlp`
//! (spans), `memory_arguments`, `source_arguments`, `selector_arguments`, `as_of_argument`, `reached` (a memory opened
//! here, or in the process that serves it), `turn_ids` (whole ids from short ones), `model_reading` (what the language model has read), `usage_table`,
//! `service_request` (HTTP to a running service). What `ripplemem-eval` needs, too, is the crate `terminal`.

mod as_of_argument;
mod command;
mod memory_arguments;
mod model_reading;
mod other_program;
#[cfg(feature = "otlp")]
mod otlp;
mod reached;
mod selector_arguments;
mod service_request;
mod source_arguments;
mod turn_ids;
mod usage_table;

mod ask;
mod bench;
mod cost;
mod dead_letters;
mod demo;
mod diff;
mod digest;
mod doctor;
mod estimate;
mod explain;
mod export;
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

pub(crate) use other_program::where_it_is;
#[cfg(feature = "otlp")]
pub(crate) use otlp::{end as end_spans, layer as spans};

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
    digest::Digest,
    stats::Stats,
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
