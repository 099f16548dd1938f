//! Why a turn is quoted in the answer to a question, or why not.
//!
//! In: a memory that answers probes, a question, and the turn or unit that is asked about. Out: nine steps from its
//! unit to its line in the context, each with what it did to the turn; [`RecallExplanation::complete`] adds the three
//! steps before them, which the log knows. The question is recollected by the same functions as without an explanation,
//! and its evidence is the same; more of what it was chosen from is read. Reads no clock, opens nothing.
//!
//! `explained_part` finds the parts of the turn; `part_explainer` goes through the steps, with `first_hop_steps` for
//! the first hop, `walk_step` for the walks and `cutoff_change` for what would have changed them; `sentence` sums them
//! up.

mod cutoff_change;
mod explain;
mod explained_part;
mod first_hop_recorder;
mod first_hop_steps;
mod part_explainer;
mod sentence;
mod walk_step;

#[cfg(test)]
mod tests;

pub use explain::{RecallExplanation, explain};
