//! How good the memory is for an agent: conversations of a user and an assistant, whose turns are long.
//!
//! In: BEAM's or RealMem's files, and a pipeline. Out: which share of the evidence turns is touched and which
//! share of the reference facts is covered by what is quoted of them, for the memory and for rivals at the same
//! mean tokens. Whole turns are not asked for: a turn of a thousand tokens holds a fact in one sentence.
//!
//! `chats` are the nouns, `chat_files` the door to `beam` and `realmem`, which read them; `words` and `facts` are the
//! metric; `asked` asks the memory, `passages` and `rivals` are what people build instead; `run` does it all, `result`
//! and `report` show it.

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
