//! Explanations with what the log knows of a turn.
//!
//! In: what recollection did to a turn, the log. Out: the whole explanation. `complete` puts the steps together, `log_steps`
//! reads those in front: stored, reflected, window.

mod complete;
mod log_steps;

use super::{PipelineError, replica::Replica};

pub(super) use complete::complete;
