//! The service on Kafka in a build without the feature `kafka`: it says so.

use std::sync::atomic::AtomicBool;

use nouns::{
    config::Pipeline,
    model::{Evidence, Question},
};
use ripplemem::{log::LogError, snapshot::AsOf};

/// Refuses to run.
///
/// # Errors
/// [`LogError::NoKafka`], always.
pub fn run(_: &Pipeline, _: &AtomicBool, _: &(dyn Fn(&str) + Sync)) -> Result<(), LogError> {
    Err(LogError::NoKafka)
}

/// Refuses to ask a service.
///
/// # Errors
/// [`LogError::NoKafka`], always.
pub fn ask(_: &Pipeline, _: &Question, _: Option<(u32, u64)>, _: Option<AsOf>) -> Result<Evidence, LogError> {
    Err(LogError::NoKafka)
}
