//! Question to evidence: adaptive associative recollection (paper, sections 3.4 and 3.5).
//!
//! In: a question, a memory that answers probes, and a function that embeds texts. Out: evidence, with a trace of how
//! each unit was found. The evidence is a function of its recorded inputs; decision 16 lists them. Reads no clock and
//! opens nothing. Fails if the question cannot be asked, or if the memory or the embedder fails; if the reranker fails,
//! the evidence is chosen without it.
//!
//! A question passes through `recollect` (the loop), `question_cues`, and `first_hop` with `reranker`, and `cutoff` or
//! `speaker_shares`. Each round then makes a plan and runs `expand`. Plans come from a `planner`: `rules_planner` or
//! `exhaustive_planner`, with `target`, or the language model's planner in `models`. `agreement`, `assemble`,
//! `abstain`, `token_budget` and `context` follow. `trace_text` renders evidence as text; `familiarity_scale` and
//! `walk_trace` are what a trace shows on request, and `explanation` says why a turn is quoted or not. `flat_rankings`
//! ranks without the graph, for comparison. `asked_time` is how an answer follows the time of its question.
//! `standing_instructions` is the section of what the asker asked of the assistant, `later_words` what holds in place of
//! quoted words of that person; `profile_page` shows a profile.

mod abstain;
mod agreement;
mod asked_time;
mod assemble;
mod context;
mod cutoff;
mod empty_bank;
mod error;
mod every_part;
mod evidence_candidate;
mod exhaustive_planner;
mod expand;
mod explanation;
mod familiarity_scale;
mod first_hop;
mod flat_rankings;
mod later_words;
mod part_shares;
mod planner;
mod profile_page;
mod question_cues;
mod recall_memory;
mod recollect;
mod recollection;
mod reranker;
mod rules_planner;
mod speaker_shares;
mod standing_instructions;
mod stated_preferences;
mod stem_sets;
mod target;
mod token_budget;
mod trace_text;
mod turn_quotation;
mod unknown_asker;
mod walk_trace;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod time_tests;

pub use assemble::{RankedCandidate, assemble, consolidate, rho};
pub use context::{EvidenceContext, UnitQuote, day_name, render_context};
pub use cutoff::{HEADING_TOKENS, cutoff, cutoff_increase};
pub use empty_bank::empty_bank_evidence;
pub use error::{BoxError, RecallError};
pub use every_part::{every_part, stated_preferences};
pub use evidence_candidate::EvidenceCandidate;
pub use exhaustive_planner::ExhaustivePlanner;
pub use expand::{ExpansionHit, Support};
pub use explanation::{RecallExplanation, explain};
pub use part_shares::PartShares;
pub use planner::{COVERED, Planner};
pub use profile_page::{ProfileChoice, ProfilePage, profile_page};
pub use question_cues::{parse_question, question_cues};
pub use recall_memory::RecallMemory;
pub use recollect::{EmbedFunction, RecallModels, recollect};
pub use reranker::Reranker;
pub use rules_planner::RulesPlanner;
pub use speaker_shares::{
    PartWishes, QuotablePart, is_standing, line_tokens, share_tokens, shared_part, task_bonus, with_form_tokens,
};
pub use stated_preferences::StatedPreferences;
pub use trace_text::{cue_text, provenance_text, render_trace};
pub use turn_quotation::{CONTINUES, one_line, quote, quoted_lines, quoted_text, terminal_text, with_ids};
