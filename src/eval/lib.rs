//! How good the memory is: benchmark files in, figures out.
//!
//! In: a benchmark file in its published form, and a pipeline. Out: figures over its questions, which are asked of a
//! memory that was built through the real path. Damage in the file is repaired if that is documented, and otherwise
//! counted and reported; nothing is ever dropped silently.
//!
//! From the bottom up: `result`, `dataset_damage` and `dataset` are types; `delivery`, `score`, `answer_metrics`,
//! `generated_answer` and `intervals` score, and `evidence_loss` says where evidence was lost; `recording_source` feeds
//! the memory; `benchmark_memory` is the built memory that is asked; `comparisons` work on a bench; `evaluate` runs it
//! all. `conversations` measures, on its own data, how well the window separates crossing conversations. `agents`
//! measures what is quoted from long turns in conversations with an assistant. `calibration` sets a model's thresholds;
//! `fit` chooses weights and the cutoff; `result_table` and `report` show results beside `paper`.

mod ablation;
mod agents;
pub mod answer_metrics;
mod benchmark_memory;
mod calibration;
mod comparisons;
mod conversations;
mod dataset;
mod dataset_damage;
mod delivery;
mod error;
mod evaluate;
mod evidence_loss;
mod fit;
mod generated_answer;
mod intervals;
mod memory_contents;
mod pairs;
mod paper;
pub mod readers;
mod recording_source;
pub mod report;
mod request;
mod result;
mod result_table;
mod schema;
mod score;

pub use ablation::Ablation;
pub use agents::{
    AgentContext, AgentFigures, AgentQuote, AgentRow, AgentSet, AgentsRequest, AgentsResult, AgentsRun, HooksDay,
    HooksFigures, HooksRequest, HooksRow, MixedFigures, MixedRequest, MixedRow, agents_page, evaluate_agents,
    evaluate_hooks, evaluate_mixed, hooks_page, write_agents_report,
};
pub use calibration::{
    CHANCE, Calibration, CalibrationError, CalibrationSample, CalibrationSampleError, SweepRow, calibrate, samples,
    texts,
};
pub use conversations::{AnnotatedLogError, ConversationScore, LinkCounts, fit_conversations, score_conversations};
pub use dataset::{BenchmarkFormat, DatasetError};
pub use error::EvalError;
pub use evaluate::evaluate;
pub use evidence_loss::{EvidenceLoss, LossStage, PartRank};
pub use fit::{FitFigures, FitRequest, FitResult, FitRow, FitSpread, fit, fit_table};
pub use pairs::{PairVerdict, judge_pairs};
pub use paper::{PaperCost, PaperRow, PaperTables, paper};
pub use request::EvalRequest;
pub use result::{
    BuildCost, ComparisonRow, DamageCount, EVAL_SCHEMA_VERSION, EvalFigures, EvalResult, EvalRun, EvidenceTurn,
    GeneratedAnswer, Latency, MeanInterval, ModelUse, QuestionResult, ReadingRow, RerankerUse, RowBudget,
    SecondRoundFigures, SizeRow, VectorRow,
};
pub use result_table::{budget, table};
pub use schema::{question_report_schema, report_schema, schema};
pub use score::{auc, percentile};
