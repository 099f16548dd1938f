//! Completes explanations with what the log shows of a turn.
//!
//! In: what recollection did with a turn, and the log. Out: the whole explanation. `complete` joins the steps;
//! `log_steps` reads the first three: stored, reflected, window.

mod complete;
mod log_steps;

use super::{PipelineError, Replica};

pub use complete::complete_explanation;
