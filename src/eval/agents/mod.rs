//! How good the memory is for an agent, measured on conversations between a user and an assistant with long turns.
//!
//! In: BEAM's or RealMem's files, and a pipeline. Out: the share of the evidence turns that is touched, and the share
//! of the reference facts that is covered by what is quoted from them, for the memory and for rivals at the same mean
//! tokens. Whole turns are not required, because a turn of a thousand tokens holds a fact in one sentence.
//!
//! `chats` has the types; `chat_files` reads them through `beam` and `realmem`; `stem_numbers` and `facts` are the
//! metric; `memory_answers` asks the memory; `passages` and `passage_baselines` are what people build instead; `run`
//! runs the evaluation; `result` and `report` show it. `hook_quotes` measures what hooks of coding agents would give.

mod beam;
mod chat_files;
mod chats;
mod facts;
mod hook_quotes;
mod memory_answers;
mod mixed;
mod mixed_chats;
mod passage_baselines;
mod passages;
mod realmem;
mod report;
mod result;
mod run;
mod stem_numbers;

pub use chats::AgentSet;
pub use hook_quotes::{HooksDay, HooksFigures, HooksRequest, HooksRow, evaluate_hooks, hooks_page};
pub(crate) use memory_answers::each_question;
pub use mixed::{MixedFigures, MixedRequest, MixedRow, evaluate_mixed};
pub use report::{agents_page, write_agents_report};
pub use result::{AgentContext, AgentFigures, AgentQuote, AgentRow, AgentsResult, AgentsRun};
pub use run::{AgentsRequest, evaluate_agents};
