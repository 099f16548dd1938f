//! Announces which instance answers HTTP requests about each bank, if the instances divide the memory.
//!
//! In: the partitions that the group has assigned to this instance, and what the other instances announce. Out: this
//! instance's URL for its partitions, in the topic of instances; for each other partition, its holder. An instance that
//! finds another's URL for a partition of its own writes its own again, so the last record is that of an instance that
//! has the partition. Nothing is deleted: the next holder replaces the record.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{api::ShardHolders, cluster_retry::ClusterRetry, error::ServeError, service_state::ServiceState};
use logs::{KafkaLog, LogError, kafka::instances_topic::InstancesTopic};
use replica::Replica;

/// The time between two checks of what is assigned and what others announce.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The minimum time between two announcements for a partition by its holder.
const AGAIN: Duration = Duration::from_secs(1);

/// Announces what this instance holds and reads what the others hold, until `stopping`; `instance` is what is known
/// about the others, and the URL of this one.
pub(super) fn announce(
    log: &KafkaLog,
    replica: &Replica,
    instance: (&ShardHolders, &str),
    state: &ServiceState,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let mut retry = ClusterRetry::new(state, "the topic of instances");
    let (mut topic, mut said) = (None, InstanceAnnouncements::default());
    while !stopping.load(Ordering::Relaxed) {
        match exchange_announcements(log, replica, instance, &mut topic, &mut said) {
            Ok(()) => retry.reset(),
            Err(error @ LogError::Cluster { retriable: true, .. }) => retry.wait(&error),
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    Ok(())
}

/// The last announcement for each partition, and when this instance last made one.
#[derive(Default)]
struct InstanceAnnouncements {
    urls: BTreeMap<u32, String>,
    at: BTreeMap<u32, Instant>,
}

fn exchange_announcements<'l>(
    log: &'l KafkaLog,
    replica: &Replica,
    (holders, own): (&ShardHolders, &str),
    topic: &mut Option<InstancesTopic<'l>>,
    said: &mut InstanceAnnouncements,
) -> Result<(), LogError> {
    let topic = match topic {
        Some(topic) => topic,
        None => topic.insert(InstancesTopic::open(log)?),
    };
    for (partition, url) in topic.read()? {
        holders.note(partition, Some(url.clone()).filter(|url| url != own));
        said.urls.insert(partition, url);
    }
    let is_due = |partition: &u32| {
        let is_own = said.urls.get(partition).is_some_and(|url| url == own);
        !is_own && said.at.get(partition).is_none_or(|at| at.elapsed() > AGAIN)
    };
    let due: Vec<u32> = replica.assigned().into_iter().filter(is_due).collect();
    if !due.is_empty() {
        topic.announce(&due, own)?;
        said.at.extend(due.into_iter().map(|partition| (partition, Instant::now())));
    }
    Ok(())
}
