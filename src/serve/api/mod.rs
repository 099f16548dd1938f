//! What every interface of a memory offers, whatever carries it: put, ask, forget, banks, digest, status.
//!
//! In: requests as typed values. Out: answers as typed values, each with the offsets that it reflects, or
//! a [`Problem`]. Nothing here knows HTTP's framing, or who asks. No problem names another bank.
//!
//! - `calls`: the calls.
//! - `forms`: what goes in and what comes out, each with one JSON form; an answer is [`crate::model::Evidence`].
//! - `holders`: which instance holds a bank, where instances divide the memory.
//! - `problem`: why there is no answer (RFC 9457).
//! - `turns`: the turns of a bank, for interfaces that list them.

mod calls;
mod forms;
mod holders;
mod problem;
mod turns;

pub use calls::Api;
pub use forms::{Ask, Banks, Digest, Forget, Forgotten, Put, Status, WrittenTurns};
pub use holders::Holders;
pub use problem::{Code, Problem};
