//! Sets a model's thresholds from unlabelled dialogue.
//!
//! In: a log, and a way to embed questions. Out: thresholds with their sweep, and the scale of stored bytes. `samples`
//! reads the vectors of a memory topic; `calibrate` sets thresholds from them. Never looks at a benchmark.

mod calibrate;
mod error;
mod samples;

pub(crate) use calibrate::draw;
pub use calibrate::{CHANCE, Calibration, CalibrationSample, SweepRow, calibrate};
pub use error::{CalibrationError, CalibrationSampleError};
pub use samples::{samples, texts};
