//! Explanations with what the log knows of a turn.
//!
//! In: what recollection did to a turn, the log. Out: the whole explanation. `complete` puts the steps together, `log_steps`
//! reads those in front: stored, reflected, window.

mod complete;
mod log_steps;

use super::{PipelineError, Replica};

pub use complete::complete_explanation;
