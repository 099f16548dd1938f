//! The partitions of a topic that a consumer group assigns to this instance.
//!
//! In: membership in a consumer group. Out: assigned and revoked partitions. The member reads nothing: it pauses the
//! partitions that it is assigned, and a thread polls it all the time, so that a long extraction never looks like a
//! dead member. Offsets are committed only for tools that show lag; this project never reads them. A stranded client is
//! replaced, and its partitions are revoked.

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
    client::{KafkaClientState, KafkaCluster, drop_in_background},
    topic_setup::SOURCES,
};
use crate::{AssignmentChange, Log as _, LogError, PartitionAssignment};
use types::{sync, wake_signal::WakeSignal};

/// The context of a member: it passes on what its group decides.
pub struct GroupMemberContext {
    /// The client's state, named by its topic and member.
    pub watch: KafkaClientState,
    /// Receives the changes to the membership.
    pub events: Sender<AssignmentChange>,
    /// Raised with each change.
    pub news: Arc<WakeSignal>,
    /// Whether the member reads the records of the partitions that it is assigned.
    pub reads: bool,
}

impl ClientContext for GroupMemberContext {
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

impl ConsumerContext for GroupMemberContext {
    fn pre_rebalance(&self, _consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        // The events of a replaced client are ignored.
        if let Rebalance::Revoke(list) = rebalance
            && !self.watch.stranded()
        {
            self.note(AssignmentChange::Revoked(partitions(list)));
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance {
            if !self.reads {
                // This saves the memory for fetched records that no one reads; a failure is harmless.
                drop(consumer.pause(list));
            }
            self.note(AssignmentChange::Assigned(partitions(list)));
        }
    }
}

impl GroupMemberContext {
    fn note(&self, decision: AssignmentChange) {
        // The receiver is dropped when the service stops.
        drop(self.events.send(decision));
        self.news.raise();
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<u32> {
    list.elements().iter().map(|e| e.partition().unsigned_abs()).collect()
}

/// What a group divides among its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumerGroup {
    /// The partitions of the turns topic, to extract them.
    Extractors,
    /// The partitions of the topic of live sources, to run the sources of each.
    Sources,
}

impl ConsumerGroup {
    /// Its name after the prefix, and the topic that it divides.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Extractors => ("extract", "turns"),
            Self::Sources => ("sources", SOURCES),
        }
    }
}

/// A member of a group. Dropping it leaves the group.
pub struct GroupMember {
    topic: String,
    consumer: Arc<Mutex<Arc<BaseConsumer<GroupMemberContext>>>>,
    events: Receiver<AssignmentChange>,
    stop: Arc<AtomicBool>,
    polling: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<LogError>>>,
}

/// A client that joins the group.
fn join_group(
    cluster: &KafkaCluster,
    group: &str,
    topic: &str,
    (events, news): (&Sender<AssignmentChange>, &Arc<WakeSignal>),
) -> Result<(KafkaClientState, BaseConsumer<GroupMemberContext>), LogError> {
    let watch = KafkaClientState::default();
    let failed = |e: &KafkaError| cluster.failed(&watch, format!("joining the group {group}"), e);
    let context =
        GroupMemberContext { watch: watch.clone(), events: events.clone(), news: Arc::clone(news), reads: false };
    let made = cluster.member(group).create_with_context(context);
    let consumer: BaseConsumer<GroupMemberContext> = made.map_err(|e| failed(&e))?;
    consumer.subscribe(&[topic]).map_err(|e| failed(&e))?;
    Ok((watch, consumer))
}

impl GroupMember {
    /// Joins the group.
    ///
    /// # Errors
    /// [`LogError::Cluster`].
    pub fn join(log: &KafkaLog, group: ConsumerGroup) -> Result<Self, LogError> {
        let (group, topic) = group.names();
        let cluster: KafkaCluster = log.cluster().clone();
        let (sender, events) = unbounded();
        let (topic, news) = (cluster.topic(topic), Arc::clone(log.news()));
        let (mut watch, consumer) = join_group(&cluster, group, &topic, (&sender, &news))?;
        let consumer = Arc::new(Mutex::new(Arc::new(consumer)));
        let (stop, failure) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let polling = {
            let (topic, consumer, news) = (topic.clone(), Arc::clone(&consumer), Arc::clone(&news));
            let (stop, failure) = (Arc::clone(&stop), Arc::clone(&failure));
            let poll = move || {
                while !stop.load(Ordering::Relaxed) {
                    let member = Arc::clone(&sync::lock(&consumer));
                    let polled = member.poll(Duration::from_millis(100));
                    let mut error = polled
                        .and_then(Result::err)
                        .map(|e| cluster.failed(&watch, format!("polling the group {group}"), &e));
                    if watch.stranded() {
                        match join_group(&cluster, group, &topic, (&sender, &news)) {
                            Ok((fresh, another)) => {
                                // The group will expel the old client and assign its partitions elsewhere.
                                let ours = member.assignment().map_or_else(|_| Vec::new(), |list| partitions(&list));
                                drop(sender.send(AssignmentChange::Revoked(ours)));
                                news.raise();
                                watch = fresh;
                                let old = std::mem::replace(&mut *sync::lock(&consumer), Arc::new(another));
                                drop(member);
                                drop_in_background(old);
                            }
                            Err(failed) => error = Some(failed),
                        }
                    }
                    if matches!(error, Some(LogError::Cluster { retriable: false, .. })) {
                        *sync::lock(&failure) = error;
                        news.raise();
                    }
                }
            };
            let thread = std::thread::Builder::new().name("members".to_owned()).spawn(poll);
            thread.map_err(|e| log.cluster().error("starting a thread", e.to_string(), None))?
        };
        Ok(Self { topic, consumer, events, stop, polling: Some(polling), failure })
    }
}

impl PartitionAssignment for GroupMember {
    fn changes(&self) -> Result<Vec<AssignmentChange>, LogError> {
        if let Some(failure) = sync::lock(&self.failure).take() {
            return Err(failure);
        }
        Ok(self.events.try_iter().collect())
    }

    /// Commits an offset to the broker for tools that show lag.
    fn show_position(&self, partition: u32, next_offset: u64) {
        let mut list = TopicPartitionList::new();
        let added = list.add_partition_offset(&self.topic, partition as i32, Offset::Offset(next_offset as i64));
        if added.is_ok() {
            // A failure only makes the display stale: the memory topic holds the read position.
            drop(sync::lock(&self.consumer).commit(&list, CommitMode::Async));
        }
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(polling) = self.polling.take() {
            drop(polling.join());
        }
    }
}
