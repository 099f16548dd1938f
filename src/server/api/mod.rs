//! The calls that every interface of a memory offers: put, ask, forget, units, banks, digest, status.
//!
//! In: requests as typed values, and the caller. Out: typed answers or a [`Problem`]. Answers from the memory carry the
//! offsets that they reflect. Nothing here knows HTTP's framing. No problem names another bank.
//!
//! - `calls`: the calls; `answers`: answers in words; `explaining`: why a turn is quoted or not.
//! - `forms`: requests and responses, each with one JSON form; an answer is [`nouns::model::Evidence`].
//! - `holders`: which instance holds a bank, if several instances divide the memory.
//! - `status`: how the service is, and its metrics; `bank_status`: counts and offsets of a bank; `bank_list`: which
//!   banks there are; `history`: which points of its past a bank has; `diff`: what changed between two of them;
//!   `past_point`: a point that a request names; `token_view`: what a caller may do.
//! - `operations`: what administrators order; `snapshots`: those that are there, and new ones; `records`: what the log
//!   stores; `dead_letters`: what was rejected.
//! - `units`: a unit and its neighbours; `many_units`: units without theirs; `graph`: a part of a bank's graph.
//! - `problem`: why there is no answer (RFC 9457). `blocking`: work that blocks.
//! - `reads`: whose turn it is to read, and for how long somebody waits.
//! - `turns`: lists the turns of a bank; `forgetting`: deletes turns that a selector takes, and lists receipts;
//!   `short_ids`: short names of turns, which a model can repeat.

mod answers;
mod bank_list;
mod bank_status;
mod blocking;
mod calls;
mod dead_letters;
mod diff;
mod explaining;
mod forgetting;
mod forms;
mod graph;
mod history;
mod holders;
mod many_units;
mod operations;
mod past_point;
mod problem;
mod reads;
mod records;
mod short_ids;
mod snapshots;
mod status;
mod token_view;
mod turns;
mod units;

pub use answers::{AnswerPiece, AnsweredEvidence, Answers, Words};
pub use bank_list::{BankCounts, BankState, Banks, ListBanks};
pub use bank_status::BankStatus;
pub use calls::Api;
pub use dead_letters::{DeadLetterView, DeadLetters, SelectLetters};
pub use diff::{Diff, ShowDiff, UnlistedChanges};
pub use explaining::Explain;
pub use forgetting::{ForgetTurns, Forgets, ForgottenTurns, forget_schemas};
pub use forms::{Ask, Digest, Forget, Forgotten, PlainIds, Put, Stats, WrittenTurns};
pub use graph::{Graph, GraphUnit, ShowGraph};
pub use history::{History, ListHistory, Point};
pub use holders::Holders;
pub use many_units::{ShowUnits, Units};
pub use operations::{Operations, Reextract, Reextracted};
pub use problem::{Code, Problem};
pub use records::{ReadRecords, Records, StoredRecord};
pub use short_ids::{is_meant, is_shortened, several_meant, short_id};
pub use snapshots::{SnapshotList, SnapshotView};
pub use status::{QuestionTimes, Status};
pub use token_view::TokenView;
pub use turns::{ListTurns, TurnView, Turns};
pub use units::{EdgeReasons, EdgeView, UnitView, WholeUnit};
