//! The background threads of an open memory: extraction, snapshots at an interval, scheduled erasing, and retention.
//!
//! In: a service that was just opened. Out: memory records of the turns, snapshots, and events for
//! [`MemoryStatus`] and the metrics. The threads run until the memory is closed or dropped.

use crate::log_events;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{
    PipelineDriver,
    status::{MemoryEvent, MemoryStatus},
};
use erasure::{Eraser, RetentionRunner, RetentionStatus};
use ingest::{ExtractionEvent, ExtractionOrderReceiver, ExtractionOrderSender, ExtractionStatus, IngestReport};
use models::join_threads;
use pipeline::PipelineError;
use replica::write_snapshots;
use types::{config::Pipeline, sync, wake_signal::WakeSignal};

/// Receives the events of the background threads.
pub(super) type MemoryEventCallback = Arc<dyn Fn(&MemoryEvent<'_>) + Send + Sync>;

/// The running threads. They end when this value is dropped.
pub(super) struct BackgroundTasks {
    shared: Arc<Mutex<BackgroundStatus>>,
    stopping: Arc<AtomicBool>,
    news: Arc<WakeSignal>,
    orders: ExtractionOrderSender,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct BackgroundStatus {
    written: IngestReport,
    extraction: ExtractionStatus,
    /// Why the last snapshot could not be written.
    snapshots: Option<String>,
    /// Why deleted turns are not erased.
    erasing: Option<String>,
    /// What retention did; `None` without a rule.
    retention: Option<RetentionStatus>,
}

impl BackgroundTasks {
    /// Starts the threads. They call `tell` with every event.
    pub(super) fn start(
        service: PipelineDriver,
        pipeline: &Pipeline,
        tell: &MemoryEventCallback,
    ) -> Result<Self, PipelineError> {
        let (replica, log) = service.replica_and_log();
        let (orders, arriving) = ExtractionOrderSender::new(&*log);
        let mut background = Self {
            shared: Arc::default(),
            stopping: Arc::default(),
            news: Arc::clone(log.news()),
            orders,
            threads: Vec::new(),
        };
        if let Some(eraser) = Eraser::new(&replica, &log, &pipeline.forget, &background.orders) {
            background.spawn("memory-erase", move |shared, stopping| {
                let waiting = || sync::lock(shared).extraction.waiting_for_model();
                eraser.erase_in_time(&waiting, stopping, &|problem| sync::lock(shared).erasing = problem);
            })?;
        }
        if !pipeline.retention.is_empty() {
            sync::lock(&background.shared).retention = Some(RetentionStatus::default());
            let (pipeline, replica, log) = (pipeline.clone(), Arc::clone(&replica), Arc::clone(&log));
            background.spawn("memory-retention", move |shared, stopping| {
                let note = |news| sync::lock(shared).retention.get_or_insert_default().note(news);
                RetentionRunner::of(&pipeline, &*log).retain_in_time(&replica, &|_| true, stopping, &note);
            })?;
        }
        if !pipeline.snapshot.directory.is_empty() {
            let every = Duration::from_secs(pipeline.snapshot.interval_seconds);
            let tell = Arc::clone(tell);
            background.spawn("memory-snapshots", move |shared, stopping| {
                write_snapshots(&replica, &*log, every, &|| true, stopping, &mut |is_written, took| {
                    let problem = is_written.as_ref().err().map(|error| format!("no snapshot: {error}"));
                    sync::lock(shared).snapshots = problem;
                    tell(&MemoryEvent::Snapshot { is_written, took });
                });
            })?;
        }
        let tell = Arc::clone(tell);
        background
            .spawn("memory-extract", move |shared, stopping| extract(service, &arriving, stopping, shared, &tell))?;
        Ok(background)
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(&Mutex<BackgroundStatus>, &AtomicBool) + Send + 'static,
    ) -> Result<(), PipelineError> {
        let (shared, stopping) = (Arc::clone(&self.shared), Arc::clone(&self.stopping));
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared, &stopping));
        self.threads.push(started.map_err(PipelineError::Thread)?);
        Ok(())
    }

    /// The sender of orders to the extraction.
    pub(super) fn orders(&self) -> &ExtractionOrderSender {
        &self.orders
    }

    /// What the threads have done, and what fails.
    pub(super) fn status(&self) -> MemoryStatus {
        let shared = sync::lock(&self.shared);
        let BackgroundStatus { written, extraction, snapshots, erasing, retention } = &*shared;
        let retaining = retention.as_ref().and_then(|status| status.problem.as_deref());
        let behind = snapshots.as_deref().or(erasing.as_deref()).or(retaining);
        let problem = extraction.problem().or(behind).or(extraction.model_problem()).map(str::to_owned);
        let waiting_for_model = extraction.waiting_for_model();
        let retention = retention.clone();
        MemoryStatus { behind: 0, written: *written, waiting_for_model, retention, problem }
    }
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.news.raise();
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        if !join_threads(self.threads.drain(..)) {
            log_events::request_left_open();
        }
    }
}

/// Extracts until it is stopped.
fn extract(
    mut service: PipelineDriver,
    orders: &ExtractionOrderReceiver,
    stopping: &AtomicBool,
    shared: &Mutex<BackgroundStatus>,
    tell: &MemoryEventCallback,
) {
    service.extract(orders, &|| stopping.load(Ordering::Relaxed), &mut |event| {
        {
            let mut shared = sync::lock(shared);
            shared.extraction.note(&event);
            if let ExtractionEvent::Committed(committed) = &event {
                shared.written += IngestReport::from(committed);
            }
        }
        tell(&MemoryEvent::Extraction(event));
    });
}
