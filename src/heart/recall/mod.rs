//! Question to evidence: adaptive associative recollection (paper, sections 3.4 and 3.5).
//!
//! In: a question, a memory that answers probes, and a function that embeds texts. Out: evidence, with a trace of how
//! each unit was found. The evidence is a function of its recorded inputs; decision 16 lists them. It reads no
//! clock and opens nothing. It fails if the question cannot be asked, or if `memory` or `embed` fails; without its
//! reranker it goes on.
//!
//! A question passes through `recollect` (the loop), `cues`, and `first_hop` with `rerank`, and `cutoff` or `shares`.
//! Each round then makes a plan and runs `expand`. Plans come from a `planner`: `rules_planner` or `unplanned`, with
//! `target`, or the language model's planner in `models`. `agreement`, `assemble`, `abstain`, `budget` and `context`
//! follow. `trace` renders evidence as text; `scale` and `walk` are what a trace shows on request, and `explanation`
//! says why a turn is quoted or not. `flat` ranks without the graph, for comparison.

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
mod explanation;
mod first_hop;
mod flat;
mod impressions;
mod memory;
mod nothing;
mod planner;
mod quotation;
mod recollect;
mod recollection;
mod rerank;
mod rules_planner;
mod scale;
mod shares;
mod stems;
mod target;
mod trace;
mod unknown_asker;
mod unplanned;
mod walk;

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
pub use explanation::{Explained, explain};
pub use impressions::Impressions;
pub use memory::Memory;
pub use nothing::nothing;
pub use planner::{COVERED, Planner};
pub use quotation::{CONTINUES, lines_shown, one_line, quote, shown, visible, with_ids};
pub use recollect::{AskedModels, EmbedTexts, recollect};
pub use rerank::Rerank;
pub use rules_planner::RulesPlanner;
pub use shares::{QuotablePart, is_standing, is_with_assistants, line_tokens, share_tokens, task_bonus};
pub use trace::{cue_text, trace, way};
pub use unplanned::Unplanned;
