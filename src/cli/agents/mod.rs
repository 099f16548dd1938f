//! `ripplemem agents`: the memory of coding agents.
//!
//! In: programs and what to do about them. Out: entries in their settings, a service that follows their transcripts,
//! answers to their hooks, and what became of all that.
//!
//! - `command`: the arguments. `pauses`: reading is paused and goes on.
//! - `install`, `remove`, `status`: our entries in a program's settings; `changes` shows and writes them, `receipts`
//!   keeps what a file was before.
//! - `hook`: the small mode that a program calls; `memory_request` asks the service, `hook_runs` keeps what became of
//!   each, and `given_files` what a session was given.
//! - `service`: the one service behind all of them, which `systemd_unit` or `service_start` starts; `service_file` says
//!   how it is reached. `mcp`: its tools. `places`: where all these files are.

mod changes;
mod command;
mod given_files;
mod hook;
mod hook_runs;
mod install;
mod mcp;
mod memory_request;
mod pauses;
mod places;
mod receipts;
mod remove;
mod service;
mod service_file;
mod service_start;
mod status;
mod systemd_unit;

pub(crate) use command::AgentOrderArgs;
pub(crate) use hook::run_if_hook;
pub(super) use status::{AgentsHealth, health};
