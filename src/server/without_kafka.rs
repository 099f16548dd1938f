//! The service on Kafka in a build without the feature `kafka`: it says so.

use std::sync::{Arc, atomic::AtomicBool};

use super::{ServeError, state::State};
use nouns::{
    config::Pipeline,
    model::{Evidence, Question},
};
use ripplemem::{log::LogError, snapshot::AsOf};

/// Refuses to run.
pub(super) fn run(_: &Pipeline, _: &Arc<State>, _: &AtomicBool) -> Result<(), ServeError> {
    Err(LogError::NoKafka.into())
}

/// Refuses to ask a service.
///
/// # Errors
/// [`LogError::NoKafka`], always.
pub fn ask(_: &Pipeline, _: &Question, _: Option<(u32, u64)>, _: Option<AsOf>) -> Result<Evidence, LogError> {
    Err(LogError::NoKafka)
}
