//! What every interface of a memory offers, whatever carries it: put, ask, forget, units, banks, digest, status.
//!
//! In: requests as typed values. Out: answers as typed values, each with the offsets that it reflects, or
//! a [`Problem`]. Nothing here knows HTTP's framing, or who asks. No problem names another bank.
//!
//! - `calls`: the calls; `answers`: answers in words.
//! - `forms`: what goes in and what comes out, each with one JSON form; an answer is [`nouns::model::Evidence`].
//! - `holders`: which instance holds a bank, where instances divide the memory.
//! - `bank_status`: how far a bank reaches. `operations`: how the service is, and what is ordered of it.
//! - `units`: a unit and its neighbours.
//! - `problem`: why there is no answer (RFC 9457). `blocking`: work that blocks.
//! - `turns`: the turns of a bank, for interfaces that list them; `forgetting`: deleting them by what they share, and receipts;
//!   `short_ids`: names of turns that a model can repeat.

mod answers;
mod bank_status;
mod blocking;
mod calls;
mod forgetting;
mod forms;
mod holders;
mod operations;
mod problem;
mod short_ids;
mod turns;
mod units;

pub use answers::{AnswerPiece, AnsweredEvidence, Answers, Words};
pub use bank_status::BankStatus;
pub use calls::Api;
pub use forgetting::{ForgetTurns, Forgets, ForgottenTurns};
pub use forms::{Ask, Banks, Digest, Forget, Forgotten, Put, Stats, WrittenTurns};
pub use holders::Holders;
pub use operations::{Operations, Reextract, Reextracted, SnapshotList, SnapshotView, Status};
pub use problem::{Code, Problem};
pub use short_ids::short_id;
pub use turns::{ListTurns, TurnView, Turns};
pub use units::{EdgeReasons, EdgeView, UnitView, WholeUnit};
