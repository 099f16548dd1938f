//! Question to evidence: adaptive associative recollection (paper, sections 3.4 and 3.5).
//!
//! In: a question, a memory that answers probes, and a function that embeds a text. Out:
//! evidence with the whole way to it. Evidence is a function of the memory's log, the
//! question's vector, its cues and the plan, and the trace records all four (decision 16).
//! Reads no clock, opens nothing; only `memory` and `embed` can fail.
//!
//! A question's way: `recollect` (the loop), `cues`, `first_hop` with `cutoff` or `shares`, then each round a
//! plan (`planner`: `rules_planner` or `unplanned`, with `target`; `models` has the one by a language model) and
//! `expand`; then `agreement`, `assemble`, `abstain`, `budget` and `context`. `trace` turns evidence into a page.

mod abstain;
mod agreement;
mod assemble;
mod budget;
mod candidate;
mod context;
mod cues;
mod cutoff;
mod error;
mod every_part;
mod expand;
mod first_hop;
mod impressions;
mod memory;
mod planner;
mod quotation;
mod recollect;
mod rules_planner;
mod shares;
mod stems;
mod target;
mod trace;
mod unplanned;

#[cfg(test)]
mod tests;

pub use assemble::{RankedCandidate, assemble, consolidate, rho};
pub use candidate::Candidate;
pub use context::{Context, Quoted, context, day_name};
pub use cues::{cues, read};
pub use cutoff::{HEADING_TOKENS, cutoff, raised};
pub use error::{Failure, RecallError};
pub use every_part::every_part;
pub use expand::{ExpansionHit, Support};
pub use impressions::Impressions;
pub use memory::Memory;
pub use planner::{COVERED, Planner};
pub use quotation::{lines_shown, one_line, quote, shown, visible, with_ids};
pub use recollect::{EmbedTexts, recollect};
pub use rules_planner::RulesPlanner;
pub use shares::{QuotablePart, is_standing, is_with_assistants, line_tokens, share_tokens, task_bonus};
pub use trace::{cue_text, trace, way};
pub use unplanned::Unplanned;
