//! The time that a question names, as its trace shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EventTime;

/// The time that a question names: what it was read from, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedPeriod {
    /// The words of the question that name it.
    pub words: Vec<String>,
    /// Its first moment, in the zone of the question; absent if it has no beginning ("before May"), or if only months
    /// without a year are named to a question without a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<EventTime>,
    /// Its last moment; absent if it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<EventTime>,
    /// Whose clock it is read on.
    pub clock: PeriodClock,
    /// How sure the reading is.
    pub reading: PeriodReading,
    /// What has to lie in it.
    pub of: PeriodSubject,
    /// How it is used.
    pub used: PeriodUse,
    /// How many of the parts that were scored lie in it.
    pub parts: u64,
}

/// Whose clock the time of a question is read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeriodClock {
    /// That of the question's `asked_at`, with its offset.
    Asker,
    /// That of each turn, because the question says no time.
    Turns,
}

/// How sure the reading of a time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeriodReading {
    /// The wording, with the question's clock, says all of it.
    Certain,
    /// A year, a week or an end of it was inferred.
    Likely,
}

/// What has to lie in the time that a question names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeriodSubject {
    /// When something was said: the question asks what was said then.
    Said,
    /// When something was said, or when what was said happens.
    SaidOrHappened,
}

/// How the time that a question names is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeriodUse {
    /// What lies in it scores higher.
    Weighs,
    /// What lies in it comes before everything else, because the question asks for nothing but the time.
    Chooses,
}
