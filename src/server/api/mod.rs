//! The calls that every interface of a memory offers: put, ask, forget, units, banks, digest, status.
//!
//! In: requests as typed values, and the caller. Out: typed answers or an [`ApiProblem`]. Answers from the memory carry
//! the offsets that they reflect. Nothing here knows HTTP's framing. No problem names another bank.
//!
//! - `memory_api`: the calls; `answer_generator`: answers in words; `explain`: why a turn is quoted or not.
//! - `api_forms`: requests and responses, each with one JSON form; an answer is [`types::model::Evidence`].
//! - `shard_holders`: which instance holds a bank, if several instances divide the memory.
//! - `service_status`: the status of the service, and its metrics; `bank_status`: counts and offsets of a bank;
//!   `bank_list`: which banks there are; `history`: which points of its past a bank has; `diff`: what changed between
//!   two of them; `past_point`: a point that a request names; `token_view`: what a caller may do.
//! - `operations`: extracting a bank again, and erasing; `snapshots`: lists and writes them; `record_page`: stored
//!   records of a topic; `dead_letters`: rejected records.
//! - `unit_view`: a unit and its neighbours; `unit_list`: units without theirs; `graph`: a part of a bank's graph.
//! - `put_turns`: writes turns, and says what became of each; `put_record`: the form in which they are sent.
//! - `profile`: what holds of persons; `profile_follower`: profiles that are followed.
//! - `problem`: why there is no answer (RFC 9457). `blocking_work`: work that blocks.
//! - `read_limiters`: limits the reads that are not questions.
//! - `turn_list`: lists the turns of a bank; `session_list`: lists its sessions, and names them; `forget_turns`: deletes turns that a selector takes, and lists receipts;
//!   `short_ids`: short names of turns, which a model can repeat.

mod answer_generator;
mod api_forms;
mod bank_list;
mod bank_status;
mod blocking_work;
mod dead_letters;
mod diff;
mod explain;
mod forget_turns;
mod graph;
mod history;
mod memory_api;
mod operations;
mod past_point;
mod problem;
mod profile;
mod profile_follower;
mod put_record;
mod put_turns;
mod read_limiters;
mod record_page;
mod service_status;
mod session_list;
mod shard_holders;
mod short_ids;
mod snapshots;
mod token_view;
mod turn_list;
mod unit_list;
mod unit_view;

pub use answer_generator::{AnswerGenerator, AnswerPiece, AnswerText, EvidenceWithAnswer};
pub use api_forms::{
    AskRequest, ForgetRequest, ForgetResponse, MemoryDigest, MemoryStats, PlainIdCount, PutTurnsRequest,
    PutTurnsResponse,
};
pub use bank_list::{BankAvailability, BankCounts, BankList, BankListRequest};
pub use bank_status::BankStatus;
pub use dead_letters::{DeadLetterView, DeadLettersRequest, DeadLettersResponse};
pub use diff::{DiffRequest, DiffResponse, UnlistedChangeCounts};
pub use explain::ExplainRequest;
pub use forget_turns::{ForgetReceipts, ForgetTurnsRequest, ForgetTurnsResponse, forget_schemas};
pub use graph::{GraphRequest, GraphUnitView, GraphView};
pub use history::{HistoryPage, HistoryPointView, HistoryRequest};
pub use memory_api::MemoryApi;
pub use operations::{ReextractBankRequest, ReextractBankResponse, ServiceOperations};
pub use problem::{ApiProblem, ProblemCode};
pub use profile::ProfileRequest;
pub use profile_follower::{ProfileEvent, ProfileFollower};
pub use record_page::{RecordPage, RecordPageRequest, StoredRecord};
pub use service_status::{QuestionTimes, ServiceStatus};
pub use session_list::{NameSessionRequest, NameSessionResponse, SessionList, SessionListRequest, SessionView};
pub use shard_holders::ShardHolders;
pub use short_ids::{ambiguous_id_problem, is_shortened, matches_id, short_id};
pub use snapshots::{SnapshotList, SnapshotView};
pub use token_view::TokenView;
pub use turn_list::{ListOrder, SelectTurnsRequest, TurnList, TurnListRequest, TurnView};
pub use unit_list::{UnitList, UnitListRequest};
pub use unit_view::{EdgeReasons, EdgeView, UnitView, WholeUnit};
