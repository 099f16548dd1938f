//! A running service, on either log.
//!
//! In: a pipeline. Out: turns taken, a memory kept, questions answered, until `stop`. Health and metrics answer from
//! the first moment, also while the memory is loaded.

use crate::log_events;
use std::sync::{Arc, atomic::AtomicBool};

use super::{
    ServeError, embedded_service, followed_source, kafka, public_routes, service_state::ServiceState, systemd_notify,
};
use pipeline::Progress;
use types::config::{LogKind, Pipeline};

/// Runs until `stop`. `progress` receives how far opening is.
///
/// # Errors
/// [`ServeError`] for what no retry can mend.
pub fn run(pipeline: &Pipeline, stop: &AtomicBool, progress: &mut dyn FnMut(Progress)) -> Result<(), ServeError> {
    let by_group = pipeline.log.kind == LogKind::Kafka;
    let directory = pipeline.log.directory.display();
    log_events::service_starting(&pipeline.name, by_group, directory);
    let state = Arc::new(ServiceState::new(pipeline, followed_source::open(pipeline)?, by_group));
    // It ends with the service.
    let _monitoring = public_routes::start(pipeline, &state)?;
    if by_group {
        // The service begins its work once the cluster answers, which may be hours later.
        systemd_notify::notify_started();
        kafka::run(pipeline, &state, stop)
    } else {
        embedded_service::run(pipeline, &state, stop, progress)
    }
}
