//! The service on Kafka in a build without the feature `kafka`: it says so.

use std::sync::{Arc, atomic::AtomicBool};

use super::{ServeError, service_state::ServiceState};
use logs::LogError;
use snapshots::AsOf;
use types::{
    config::Pipeline,
    model::{Evidence, Question},
};

/// Refuses to run.
pub(super) fn run(_: &Pipeline, _: &Arc<ServiceState>, _: &AtomicBool) -> Result<(), ServeError> {
    Err(LogError::NoKafka.into())
}

/// Refuses to ask a service.
///
/// # Errors
/// [`LogError::NoKafka`], always.
pub fn ask(_: &Pipeline, _: &Question, _: Option<(u32, u64)>, _: Option<AsOf>) -> Result<Evidence, LogError> {
    Err(LogError::NoKafka)
}
