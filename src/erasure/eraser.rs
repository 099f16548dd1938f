//! Erases for an open memory, on schedule or on request.
//!
//! In: the memory's log, replica and extraction. Out: passes, one at a time.

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use super::{
    ErasureReport, ErasureTargets, ExtractionOrderSender, ForgetOperationStore, MemoryProgress, PipelineError, Replica,
    erase_in_time, with_memory_progress,
};
use logs::Log;
use types::{config::ForgetSettings, sync};

/// Held during a pass.
static ERASING: Mutex<()> = Mutex::new(());

/// Erases, for an open memory.
pub struct Eraser {
    replica: Arc<Replica>,
    log: Arc<dyn Log>,
    settings: ForgetSettings,
    orders: ExtractionOrderSender,
}

impl Eraser {
    /// The eraser of a memory; `None` on Kafka.
    pub fn new(
        replica: &Arc<Replica>,
        log: &Arc<dyn Log>,
        settings: &ForgetSettings,
        orders: &ExtractionOrderSender,
    ) -> Option<Self> {
        log.erasable()?;
        let (replica, log) = (Arc::clone(replica), Arc::clone(log));
        Some(Self { replica, log, settings: settings.clone(), orders: orders.clone() })
    }

    /// Erases on the schedule of the settings, until `stopping`.
    pub fn erase_in_time(
        &self,
        waiting_for_model: &dyn Fn() -> u64,
        stopping: &AtomicBool,
        tell: &dyn Fn(Option<String>),
    ) {
        let Self { replica, log, settings, orders } = self;
        let forgets = ForgetOperationStore::of(&**log, settings);
        let mut erase_caches = || orders.erase_caches();
        let mut places = ErasureTargets { forgets, replica, erase_caches: &mut erase_caches };
        let settled = |with: &mut dyn FnMut(&MemoryProgress<'_>)| {
            let _erasing = sync::lock(&ERASING);
            with_memory_progress(replica, Some(waiting_for_model()), with);
        };
        erase_in_time(&mut places, &settled, stopping, tell);
    }

    /// Erases now.
    ///
    /// # Errors
    /// [`PipelineError`] leaves what it did not reach to the next pass.
    pub fn erase(&self, waiting_for_model: u64) -> Result<ErasureReport, PipelineError> {
        let Self { replica, log, settings, orders } = self;
        let forgets = ForgetOperationStore::of(&**log, settings);
        let mut erase_caches = || orders.erase_caches();
        let mut places = ErasureTargets { forgets, replica, erase_caches: &mut erase_caches };
        let _erasing = sync::lock(&ERASING);
        with_memory_progress(replica, Some(waiting_for_model), &mut |settled| places.erase(settled))
    }
}
