//! How good the memory is: benchmark files in, figures out.
//!
//! In: a benchmark file in its published form, and a pipeline. Out: figures over its questions, which are asked of a
//! memory that was built through the real path. Damage in the file is repaired if that is documented, and otherwise
//! counted and reported; nothing is ever dropped silently.
//!
//! From the bottom up: `result`, `problems` and `dataset` are types; `delivery`, `score`, `answer_metrics`,
//! `generated_answer` and `intervals` score, and `lost` says where evidence was lost; `recording_source` feeds the memory;
//! `bench` is the built memory that is asked; `comparisons` work on a bench; `evaluate` runs it all. `conversations`
//! measures, on its own data, how well the window separates crossing conversations. `agents` measures what is quoted from
//! long turns in conversations with an assistant. `calibration` sets a model's thresholds; `fit` chooses weights and the
//! cutoff; `table` and `report` show results beside `paper`.

mod ablation;
mod agents;
pub mod answer_metrics;
mod bench;
mod calibration;
mod comparisons;
mod conversations;
mod dataset;
mod delivery;
mod error;
mod evaluate;
mod fit;
mod generated_answer;
mod intervals;
mod lost;
mod memory_contents;
mod paper;
mod problems;
pub mod readers;
mod recording_source;
pub mod report;
mod request;
mod result;
mod schema;
mod score;
mod table;

pub use ablation::Ablation;
pub use agents::{
    AgentContext, AgentFigures, AgentQuote, AgentRow, AgentSet, AgentsRequest, AgentsResult, AgentsRun, agents_page,
    evaluate_agents, write_agents_report,
};
pub use calibration::{CHANCE, CalibrateError, Calibration, Sample, SampleError, SweepRow, calibrate, samples, texts};
pub use conversations::{ConversationScore, CorpusError, Found, fit_conversations, score_conversations};
pub use dataset::{BenchmarkFormat, DatasetError};
pub use error::EvalError;
pub use evaluate::evaluate;
pub use fit::{Fit, FitFigures, FitRequest, FitRow, FitSpread, fit, fit_table};
pub use lost::{Lost, LostAt, Standing};
pub use paper::{Paper, PaperCost, PaperRow, paper};
pub use request::EvalRequest;
pub use result::{
    Budget, Build, BySecondRound, ComparisonRow, EVAL_SCHEMA_VERSION, EvalResult, EvalRun, EvidenceTurn, Figures,
    GeneratedAnswer, Interval, Latency, ModelUse, Problem, QuestionResult, ReadingRow, RerankerUse, SizeRow, VectorRow,
};
pub use schema::{question_report_schema, report_schema, schema};
pub use score::{auc, percentile};
pub use table::{budget, table};
