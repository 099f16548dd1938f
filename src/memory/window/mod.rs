//! Turns become windows: a fold over one partition of the turns log.
//!
//! In: the settings; after a restart, the live memory records of the partition; then its turn events in offset order.
//! Out: the windows that changed, and which records of the memory log they replace or remove (decisions 1 to 6). The
//! state after a drain is a function of the records that were drained, so a restart from them continues as if there had
//! been none. It never reads a clock, a file or a socket, never waits, and keeps no text of a deleted turn.
//!
//! - `window_rules`: when a window closes.
//! - `windower`: all banks of a partition.
//! - `bank_windows`: the events of one bank.
//! - `session_windows`: the ordinals and windows of one session.
//! - `packed_turns`: the turns of a session, in little memory.
//! - `turn_positions`: where each turn of a bank is, by its id.
//! - `known_id_form`: which form of its id a turn is known by.
//! - `auto_sessions`: the session of a turn that names none.
//! - `crossing_conversations`: the session of a turn if conversations cross; `antecedent` says which turn it answers,
//!   from its `turn_words` and other features.
//! - `conditional_writes`: whether the conditions of writes hold; `session_titles`: the titles of sessions.
//! - `restore`: rebuilds the state from the memory records that it wrote.
//! - `change`: what a drain returns.

mod antecedent;
mod auto_sessions;
mod bank_windows;
mod change;
mod conditional_writes;
mod crossing_conversations;
mod known_id_form;
mod packed_turns;
mod restore;
mod session_titles;
mod session_windows;
mod turn_positions;
mod turn_words;
mod window_rules;
mod windower;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use antecedent::{AntecedentFeatures, ConversationTurn, FEATURES, REACH, WEIGHTS, antecedent, choices};
pub use change::{TITLE_SESSION, UNSEEN_SESSION, WindowChange, WriteEffect, session_title};
pub use conditional_writes::GroupDecision;
pub use turn_words::TurnWords;
pub use windower::Windower;
