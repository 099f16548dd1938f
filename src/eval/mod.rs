//! How good the memory is: benchmark files in, figures out.
//!
//! In: a benchmark file in its published form, and a pipeline. Out: figures over its
//! questions, asked of a memory that was built through the real path. What is damaged in
//! the file is repaired where that is documented, otherwise counted and reported, never
//! silently dropped.

mod calibrate;
mod result;
mod samples;

pub use calibrate::{CHANCE, CalibrateError, Calibration, Sample, SweepRow, calibrate};
pub use result::{
    Budget, Build, BySecondRound, EVAL_SCHEMA_VERSION, EvalResult, Figures, Latency, ModelUse, Piece, Problem,
    QuestionResult, Row, Run,
};
pub use samples::{SampleError, samples};
