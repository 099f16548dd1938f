//! Turns become windows: a fold over one partition of the turns log.
//!
//! In: the settings; after a restart, the live memory records of the partition; then its turn events in offset order.
//! Out: the windows that changed, and which records of the memory log they replace or remove (decisions 1 to 6). The
//! state after a drain is a function of the records that were drained, so a restart from them continues as if there had
//! been none. It never reads a clock, a file or a socket, never waits, and keeps no text of a deleted turn.
//!
//! - `closing`: when a window closes.
//! - `windower`: all banks of a partition.
//! - `bank`: the events of one bank.
//! - `session`: the ordinals and windows of one session.
//! - `held_turns`: the turns of a session, in little memory.
//! - `positions`: where each turn of a bank is, by its id.
//! - `known_form`: which form of its id a turn is known by.
//! - `auto`: the session of a turn that names none.
//! - `conversations`: the session of a turn if conversations cross; `antecedent` says which turn it answers, from its
//!   `words` and other features.
//! - `restore`: rebuilds the state from the memory records that it wrote.
//! - `change`: what a drain returns.

mod antecedent;
mod auto;
mod bank;
mod change;
mod closing;
mod conversations;
mod held_turns;
mod known_form;
mod positions;
mod restore;
mod session;
mod windower;
mod words;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use antecedent::{ConversationTurn, FEATURES, Features, REACH, WEIGHTS, antecedent, choices};
pub use change::{UNSEEN_SESSION, WindowChange};
pub use windower::Windower;
pub use words::Words;
