//! Which partitions of the turns topic this instance is to own.
//!
//! In: membership in a consumer group. Out: partitions that came and went. The member
//! reads nothing: what it is assigned is paused at once, and it is polled all the time, so
//! that long work on a turn never looks like a death. Positions are committed for tools
//! that show lag; nobody here reads them. A client that is stranded is replaced, and what it
//! was assigned counts as gone.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use rdkafka::{
    ClientContext, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance},
    error::KafkaError,
};

use super::{
    KafkaLog,
    client::{Cluster, Watch, let_go},
};
use crate::{log::LogError, sync};

/// What the group decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// These partitions are ours now.
    Assigned(Vec<u32>),
    /// These are not ours any more.
    Revoked(Vec<u32>),
}

struct Context {
    watch: Watch,
    events: Sender<Membership>,
}

impl ClientContext for Context {
    fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, message: &str) {
        self.watch.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.watch.error(error, reason);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        self.watch.stats_raw(statistics);
    }
}

impl ConsumerContext for Context {
    fn pre_rebalance(&self, _consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(list) = rebalance {
            drop(self.events.send(Membership::Revoked(partitions(list))));
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance {
            // Fetching what nobody reads would only waste memory; a failure does no harm.
            drop(consumer.pause(list));
            drop(self.events.send(Membership::Assigned(partitions(list))));
        }
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<u32> {
    list.elements().iter().map(|e| e.partition().unsigned_abs()).collect()
}

/// A member of the group of extractors. Dropping it leaves the group.
pub struct Member {
    topic: String,
    consumer: Arc<Mutex<Arc<BaseConsumer<Context>>>>,
    events: Receiver<Membership>,
    over: Arc<AtomicBool>,
    polling: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<LogError>>>,
}

/// A client that asks to be a member.
fn asking(
    cluster: &Cluster,
    topic: &str,
    events: &Sender<Membership>,
) -> Result<(Watch, BaseConsumer<Context>), LogError> {
    let watch = Watch::default();
    let failed = |e: &KafkaError| cluster.failed(&watch, "joining the group of extractors", e);
    let context = Context { watch: watch.clone(), events: events.clone() };
    let consumer: BaseConsumer<Context> =
        cluster.member("extract").create_with_context(context).map_err(|e| failed(&e))?;
    consumer.subscribe(&[topic]).map_err(|e| failed(&e))?;
    Ok((watch, consumer))
}

impl Member {
    /// Joins the group.
    ///
    /// # Errors
    /// [`LogError::Cluster`].
    pub fn join(log: &KafkaLog) -> Result<Self, LogError> {
        let cluster: Cluster = log.cluster().clone();
        let (sender, events) = unbounded();
        let topic = cluster.topic("turns");
        let (mut watch, consumer) = asking(&cluster, &topic, &sender)?;
        let consumer = Arc::new(Mutex::new(Arc::new(consumer)));
        let (over, failure) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let polling = {
            let (topic, consumer) = (topic.clone(), Arc::clone(&consumer));
            let (over, failure) = (Arc::clone(&over), Arc::clone(&failure));
            let polled = move || {
                while !over.load(Ordering::Relaxed) {
                    let member = Arc::clone(&sync::lock(&consumer));
                    let polled = member.poll(Duration::from_millis(100));
                    let mut told = polled
                        .and_then(Result::err)
                        .map(|error| cluster.failed(&watch, "being a member of the group of extractors", &error));
                    if watch.stranded() {
                        match asking(&cluster, &topic, &sender) {
                            Ok((fresh, another)) => {
                                // The group will find out; what it gives away we must not hold.
                                let ours = member.assignment().map_or_else(|_| Vec::new(), |list| partitions(&list));
                                drop(sender.send(Membership::Revoked(ours)));
                                watch = fresh;
                                let old = std::mem::replace(&mut *sync::lock(&consumer), Arc::new(another));
                                drop(member);
                                let_go(old);
                            }
                            Err(error) => told = Some(error),
                        }
                    }
                    if matches!(told, Some(LogError::Cluster { passing: false, .. })) {
                        *sync::lock(&failure) = told;
                    }
                }
            };
            let thread = std::thread::Builder::new().name("members".to_owned()).spawn(polled);
            thread.map_err(|e| log.cluster().error("starting a thread", e.to_string(), None))?
        };
        Ok(Self { topic, consumer, events, over, polling: Some(polling), failure })
    }

    /// What the group decided since the last call; waits at most so long for the first.
    ///
    /// # Errors
    /// What will not pass by itself, such as missing rights.
    pub fn changes(&self, wait: Duration) -> Result<Vec<Membership>, LogError> {
        if let Some(failure) = sync::lock(&self.failure).take() {
            return Err(failure);
        }
        let first = self.events.recv_timeout(wait).ok();
        Ok(first.into_iter().chain(self.events.try_iter()).collect())
    }

    /// Tells the broker how far a partition was read, for tools that show lag.
    pub fn show_position(&self, partition: u32, next_offset: u64) {
        let mut list = TopicPartitionList::new();
        let place = list.add_partition_offset(&self.topic, partition as i32, Offset::Offset(next_offset as i64));
        if place.is_ok() {
            // Only a display: the position that counts is in the memory topic.
            drop(sync::lock(&self.consumer).commit(&list, CommitMode::Async));
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(polling) = self.polling.take() {
            drop(polling.join());
        }
    }
}
