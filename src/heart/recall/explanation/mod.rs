//! Why a turn is quoted in the answer to a question, or why not.
//!
//! In: a memory that answers probes, a question, and the turn or unit that is asked about. Out: from its unit to its
//! line in the context nine steps, each with what it did to the turn; [`Explained::complete`] puts the three before
//! them, which the log knows, in front. The question is recollected by the same functions as without an explanation,
//! and its evidence is the same: only more of what it was chosen from is looked at. Reads no clock, opens nothing.
//!
//! `sought` finds the parts of the turn; `steps` goes through the steps, with `first_hop_steps` for the first hop,
//! `walk_step` for the walks and `change` for what would have changed them; `sentence` says the whole.

mod change;
mod explain;
mod first_hop_steps;
mod sentence;
mod sought;
mod steps;
mod walk_step;
mod whole_first_hop;

#[cfg(test)]
mod tests;

pub use explain::{Explained, explain};
