//! Erasing behind an open memory, in time or on request.
//!
//! In: the memory's log, replica and extraction. Out: passes, one at a time.

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use super::{Erased, ExtractionOrders, Forgets, PipelineError, Places, Replica, Settled, erase_in_time, settled};
use crate::log::Log;
use nouns::{config::ForgetSettings, sync};

/// Held during a pass.
static ERASING: Mutex<()> = Mutex::new(());

/// Erases, for an open memory.
pub(super) struct Eraser {
    replica: Arc<Replica>,
    log: Arc<dyn Log>,
    settings: ForgetSettings,
    orders: ExtractionOrders,
}

impl Eraser {
    /// Of a memory; none on Kafka.
    pub(super) fn new(
        replica: &Arc<Replica>,
        log: &Arc<dyn Log>,
        settings: &ForgetSettings,
        orders: &ExtractionOrders,
    ) -> Option<Self> {
        log.erasable()?;
        let (replica, log) = (Arc::clone(replica), Arc::clone(log));
        Some(Self { replica, log, settings: settings.clone(), orders: orders.clone() })
    }

    /// Erases until `stopping`, as the settings say.
    pub(super) fn erase_in_time(
        &self,
        waiting_for_model: &dyn Fn() -> u64,
        stopping: &AtomicBool,
        tell: &dyn Fn(Option<String>),
    ) {
        let Self { replica, log, settings, orders } = self;
        let forgets = Forgets::of(&**log, settings);
        let mut erase_caches = || orders.erase_caches();
        let mut places = Places { forgets, replica, erase_caches: &mut erase_caches };
        let settled = |with: &mut dyn FnMut(&Settled<'_>)| {
            let _erasing = sync::lock(&ERASING);
            settled(replica, Some(waiting_for_model()), with);
        };
        erase_in_time(&mut places, &settled, stopping, tell);
    }

    /// Erases now.
    ///
    /// # Errors
    /// As [`super::Memory::erase`].
    pub(super) fn erase(&self, waiting_for_model: u64) -> Result<Erased, PipelineError> {
        let Self { replica, log, settings, orders } = self;
        let forgets = Forgets::of(&**log, settings);
        let mut erase_caches = || orders.erase_caches();
        let mut places = Places { forgets, replica, erase_caches: &mut erase_caches };
        let _erasing = sync::lock(&ERASING);
        settled(replica, Some(waiting_for_model), &mut |settled| places.erase(settled))
    }
}
