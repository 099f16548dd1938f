//! Why a memory could not be sampled, or a model not calibrated. Each error says what to do.

use logs::LogError;
use models::embed::EmbedError;

/// Why the units of a memory could not be sampled.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationSampleError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A question could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A record of the memory topic cannot be parsed.
    #[error("memory partition {partition}, offset {offset}: not a memory record; restore the log from a copy")]
    Record {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
        /// What the parser found.
        #[source]
        source: serde_json::Error,
    },
}

/// Why a model's thresholds cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// No bank has two units.
    #[error("calibrate: {units} units and no two of them in one bank; give it a longer dialogue")]
    NoPairs {
        /// Units in all banks.
        units: usize,
    },
    /// No turn asks a question.
    #[error("calibrate: no question in {units} units; give it a dialogue in which people ask each other questions")]
    NoQuestions {
        /// Units in all banks.
        units: usize,
    },
    /// No threshold reaches the target.
    #[error(
        "calibrate: a unit has at most {most:.2} choices in this dialogue, fewer than the target of {target}; give it \
         more dialogue, or lower memory.target_semantic_choices"
    )]
    OutOfReach {
        /// Mean choices per unit without a threshold.
        most: f64,
        /// The target.
        target: f64,
    },
}
