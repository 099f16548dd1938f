//! How good the memory is: benchmark files in, figures out.
//!
//! In: a benchmark file in its published form, and a pipeline. Out: figures over its
//! questions, asked of a memory that was built through the real path. What is damaged in
//! the file is repaired where that is documented, otherwise counted and reported, never
//! silently dropped.

mod ablation;
pub mod answer_metrics;
mod bank_scaling;
mod baselines;
mod bench;
mod calibrate;
mod dataset;
mod generated_answer;
mod llm_edges;
mod memory_contents;
mod paper;
mod problems;
mod recording_source;
pub mod report;
mod result;
mod samples;
mod score;
mod table;
pub mod tokens;
mod vectors;

pub use ablation::Ablation;
pub use bench::{EvalError, Request, evaluate};
pub use calibrate::{CHANCE, CalibrateError, Calibration, Sample, SweepRow, calibrate};
pub use dataset::{DatasetError, Format};
pub use generated_answer::Spoken;
pub use paper::{Paper, PaperCost, PaperRow, paper};
pub use result::{
    Budget, Build, BySecondRound, EVAL_SCHEMA_VERSION, EvalResult, Figures, Latency, ModelUse, Piece, Problem,
    QuestionResult, Row, Run, SizeRow, VectorRow,
};
pub use samples::{SampleError, samples};
pub use score::{auc, percentile};
pub use table::{budget, table};
