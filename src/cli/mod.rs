//! The commands, one file each, and what they share.
//!
//! In: arguments. Out: results on stdout, messages and progress on stderr, and an exit code.
//! Each file of a command holds its arguments with their help, and `run`. A new command needs a file (a folder if it
//! has several files), its `mod` line, and its line in the list below.
//!
//! Shared: `command` (the enum and its dispatch), `other_program` (commands that this program does not have), `otlp`
//! (spans), `memory_args`, `source_args`, `selector_args`, `as_of_argument`, `memory_access` (a memory opened here, or
//! in the process that serves it), `turn_ids` (whole ids from short ones), `reading_report` (what the language model
//! has read), `usage_table`, `service_request` (HTTP to a running service), `kilobyte_field` (memory as Linux states
//! it). What `ripplemem-eval` needs, too, is in the crate `terminal`.

mod as_of_argument;
mod command;
mod kilobyte_field;
mod memory_access;
mod memory_args;
mod other_program;
#[cfg(feature = "otlp")]
mod otlp;
mod reading_report;
mod selector_args;
mod service_request;
mod source_args;
mod turn_ids;
mod usage_table;

mod agents;
mod ask;
mod bench;
mod cost;
mod dead_letters;
mod demo;
#[cfg(feature = "console")]
mod demo_console;
mod diff;
mod digest;
mod doctor;
mod estimate;
mod explain;
mod export;
mod forget;
mod forget_receipts;
mod forget_verification;
mod health;
mod import;
mod ingest;
mod lag;
mod language_counting_source;
mod mcp;
mod profile;
mod reembed;
mod reextract;
#[cfg(feature = "kafka")]
mod repair;
mod replay;
mod restate;
mod retention;
mod run;
mod schema;
mod serve;
mod sessions;
mod setup;
mod snapshot;
mod stats;
mod tap;
mod token;
mod turns;
mod validate;

pub(crate) use agents::run_if_hook;
pub(crate) use other_program::missing_command_hint;
#[cfg(feature = "otlp")]
pub(crate) use otlp::{end as end_spans, layer as spans};

// In the order of the help.
command::commands! {
    setup::SetupArgs => Setup,
    demo::DemoArgs => Demo,
    run::RunArgs => Run,
    serve::ServeArgs => Serve,
    ingest::IngestArgs => Ingest,
    #[command(visible_alias = "agent")]
    agents::AgentOrderArgs => Agents,
    ask::AskArgs => Ask,
    explain::ExplainArgs => Explain,
    profile::ProfileArgs => Profile,
    turns::TurnsArgs => Turns,
    sessions::SessionsArgs => Sessions,
    forget::ForgetArgs => Forget,
    dead_letters::DeadLettersArgs => DeadLetters,
    retention::RetentionArgs => Retention,
    mcp::McpArgs => Mcp,
    snapshot::SnapshotArgs => Snapshot,
    diff::DiffArgs => Diff,
    reextract::ReextractArgs => Reextract,
    estimate::EstimateArgs => Estimate,
    cost::CostArgs => Cost,
    export::ExportArgs => Export,
    import::ImportArgs => Import,
    reembed::ReembedArgs => Reembed,
    restate::RestateArgs => Restate,
    #[cfg(feature = "kafka")]
    repair::RepairArgs => Repair,
    digest::DigestArgs => Digest,
    stats::StatsArgs => Stats,
    bench::BenchArgs => Bench,
    token::TokenArgs => Token,
    tap::TapArgs => Tap,
    replay::ReplayArgs => Replay,
    lag::LagArgs => Lag,
    health::HealthArgs => Health,
    doctor::DoctorArgs => Doctor,
    validate::ValidateArgs => Validate,
    schema::SchemaArgs => Schema,
}
