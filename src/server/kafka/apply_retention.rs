//! Applies the rules of retention while the service runs.
//!
//! In: the rules, and the partitions of forget requests that the group has assigned to this instance. Out: operations
//! that forget what no rule keeps, and the status of that. The topic of forget requests has one partition per partition
//! of the memory; its owner scans the banks there. While a partition moves, two instances may scan a bank; they write
//! the same operation, because its id is a function of the bank and the turns.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::service_state::ServiceState;
use erasure::{RetentionRunner, RetentionStatus};
use logs::Log;
use replica::Replica;
use types::{config::Pipeline, sync};

/// Scans and deletes until `stopping`, in the banks of the partitions that are `taken`, once the memory is loaded.
pub(super) fn run_retention(
    pipeline: &Pipeline,
    log: &dyn Log,
    replica: &Replica,
    state: &ServiceState,
    taken: &Mutex<BTreeSet<u32>>,
    stopping: &AtomicBool,
) {
    *sync::lock(&state.retention) = Some(RetentionStatus::default());
    let ours = |partition: u32| state.loaded.load(Ordering::Relaxed) && sync::lock(taken).contains(&partition);
    let note = |news| sync::lock(&state.retention).get_or_insert_default().note(news);
    RetentionRunner::of(pipeline, log).retain_in_time(replica, &ours, stopping, &note);
}
