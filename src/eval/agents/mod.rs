//! How good the memory is for an agent, measured on conversations between a user and an assistant with long turns.
//!
//! In: BEAM's or RealMem's files, and a pipeline. Out: the share of the evidence turns that is touched, and the share
//! of the reference facts that is covered by what is quoted from them, for the memory and for rivals at the same mean
//! tokens. Whole turns are not required, because a turn of a thousand tokens holds a fact in one sentence.
//!
//! `chats` has the types; `chat_files` reads them through `beam` and `realmem`; `words` and `facts` are the metric;
//! `asked` asks the memory; `passages` and `rivals` are what people build instead; `run` does it all; `result` and
//! `report` show it.

mod asked;
mod beam;
mod chat_files;
mod chats;
mod facts;
mod passages;
mod realmem;
mod report;
mod result;
mod rivals;
mod run;
mod words;

pub(crate) use asked::each_question;
pub use chats::AgentSet;
pub use report::{agents_page, write_agents_report};
pub use result::{AgentContext, AgentFigures, AgentQuote, AgentRow, AgentsResult, AgentsRun};
pub use run::{AgentsRequest, evaluate_agents};
