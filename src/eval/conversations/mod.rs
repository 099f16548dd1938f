//! How well crossing conversations are separated, measured on logs in which people marked who answers whom.
//!
//! In: a directory of annotated IRC logs, in the published form of irc-disentanglement. Out: how many links and how
//! many whole conversations are found, or weights that are fitted to the directory. The choice is made by `window`;
//! nothing here changes it.
//!
//! `annotated_log` reads the logs; `reply_candidates` runs the choice over one; `score` compares links and
//! conversations with the marked ones; `fit` finds weights.

mod annotated_log;
mod fit;
mod reply_candidates;
mod score;

pub use annotated_log::AnnotatedLogError;
pub use fit::fit_conversations;
pub use score::{ConversationScore, LinkCounts, score_conversations};
