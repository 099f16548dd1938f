//! How well crossing conversations are separated, measured on logs in which people marked who answers whom.
//!
//! In: a directory of annotated IRC logs, in the published form of irc-disentanglement. Out: how many links and how
//! many whole conversations are found, or weights that are fitted to the directory. The choice is made by `window`;
//! nothing here changes it.
//!
//! `corpus` reads the logs; `choose` runs the choice over one; `score` compares links and conversations with the marked
//! ones; `fit` finds weights.

mod choose;
mod corpus;
mod fit;
mod score;

pub use corpus::CorpusError;
pub use fit::fit_conversations;
pub use score::{ConversationScore, Found, score_conversations};
