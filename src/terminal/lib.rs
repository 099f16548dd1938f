//! What the programs `ripplemem` and `ripplemem-eval` share on a terminal.
//!
//! In: results, messages, progress, pipeline files and signals. Out: stdout, stderr, log lines and an exit code. Only
//! this crate and the programs print and exit.

mod exit_code;
mod logs;
mod open_memory;
mod output;
mod pipeline_file;
mod process;
mod progress_bar;

pub use exit_code::{INVALID_PIPELINE, REJECTED, exit_code};
pub use logs::{SpanLayer, begin as begin_logs, name_banks_of};
pub use open_memory::open_memory;
pub use output::{print, say, say_unreadable};
pub use pipeline_file::{format_help, pipeline_or_defaults, read_pipeline};
pub use process::{begin as begin_process, stop_by_signal};
pub use progress_bar::with_progress;

/// The address at which a memory is served if none is named.
pub const LISTEN: &str = "127.0.0.1:8321";
