//! Knows which reply topics exist, so that a question with a missing one is never answered in vain.
//!
//! In: the topic that a question names. Out: whether it exists, from a list of all topics that is
//! read again when a name is not on it, at most twice a second. Only the thread that reads the list waits for the
//! broker, and it never creates a topic.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rdkafka::consumer::{BaseConsumer, Consumer};

use logs::{
    LogError,
    kafka::client::{ATTEMPT_TIMEOUT, KafkaClientState, KafkaCluster, drop_in_background},
};
use types::sync;

/// The minimum time between two reads of the list.
const PAUSE: Duration = Duration::from_millis(500);
/// A topic that was on the list this long ago still counts as existing.
const TRUSTED: Duration = Duration::from_secs(10);

/// The list of topics that begin with the prefix of reply topics.
pub(super) struct ReplyTopics {
    prefix: String,
    list: Mutex<TopicListing>,
    wanted: AtomicBool,
}

#[derive(Default)]
struct TopicListing {
    /// When the read of the list began.
    read_at: Option<Instant>,
    /// Partitions by topic.
    topics: HashMap<String, u32>,
}

/// What the list says about a topic.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TopicExistence {
    /// It can take an answer.
    Yes,
    /// It cannot.
    No(String),
    /// The list is older than the question.
    Unknown,
}

impl ReplyTopics {
    /// An empty list.
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix, list: Mutex::default(), wanted: AtomicBool::new(false) }
    }

    /// Whether a topic, and a partition of it, exists; a missing name counts only if the list was
    /// read after `asked`.
    pub(super) fn look_up(&self, topic: &str, partition: Option<u32>, asked: Instant) -> TopicExistence {
        let list = sync::lock(&self.list);
        let found = list.topics.get(topic).copied();
        let fits = found.is_some_and(|count| partition.is_none_or(|partition| partition < count));
        if fits && list.read_at.is_some_and(|at| at.elapsed() < TRUSTED) {
            return TopicExistence::Yes;
        }
        if list.read_at.is_some_and(|at| at >= asked) {
            return match (found, fits) {
                (_, true) => TopicExistence::Yes,
                (Some(count), _) => TopicExistence::No(format!("topic {topic} has {count} partition(s)")),
                (None, _) => {
                    TopicExistence::No(format!("topic {topic} does not exist, or this service may not see it"))
                }
            };
        }
        self.wanted.store(true, Ordering::Relaxed);
        TopicExistence::Unknown
    }

    /// Reads the list whenever it is wanted, until `stopping`.
    pub(super) fn read(&self, cluster: &KafkaCluster, stopping: &AtomicBool) -> Result<(), LogError> {
        let mut client = client(cluster)?;
        while !stopping.load(Ordering::Relaxed) {
            if !self.wanted.swap(false, Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            let began = Instant::now();
            match client.fetch_metadata(None, ATTEMPT_TIMEOUT) {
                Ok(metadata) => {
                    let fit =
                        metadata.topics().iter().filter(|t| t.error().is_none() && t.name().starts_with(&self.prefix));
                    let topics = fit.map(|t| (t.name().to_owned(), t.partitions().len() as u32)).collect();
                    *sync::lock(&self.list) = TopicListing { read_at: Some(began), topics };
                }
                Err(_) => {
                    // The cluster is unavailable, or the client has lost its brokers.
                    self.wanted.store(true, Ordering::Relaxed);
                    if let Ok(another) = self::client(cluster) {
                        drop_in_background(std::mem::replace(&mut client, another));
                    }
                }
            }
            std::thread::sleep(PAUSE.saturating_sub(began.elapsed()));
        }
        Ok(())
    }
}

fn client(cluster: &KafkaCluster) -> Result<BaseConsumer<KafkaClientState>, LogError> {
    let watch = KafkaClientState::default();
    let made = cluster.reader(64).create_with_context(watch.clone());
    made.map_err(|e| cluster.failed(&watch, "looking for reply topics", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_topic_is_looked_up_after_the_question_and_a_known_one_is_trusted() {
        let before = Instant::now();
        let topics = ReplyTopics::new("app.answers".to_owned());
        assert_eq!(topics.look_up("app.answers.me", None, before), TopicExistence::Unknown);
        assert!(topics.wanted.swap(false, Ordering::Relaxed), "the list is read");
        let listed = HashMap::from([("app.answers.me".to_owned(), 3)]);
        *sync::lock(&topics.list) = TopicListing { read_at: Some(Instant::now()), topics: listed };
        let after = Instant::now() + Duration::from_millis(1);
        for asked in [before, after] {
            assert_eq!(topics.look_up("app.answers.me", Some(2), asked), TopicExistence::Yes);
        }
        assert!(!topics.wanted.load(Ordering::Relaxed), "a known topic costs no look");
        for (topic, partition, word) in
            [("app.answers.lost", None, "does not exist"), ("app.answers.me", Some(3), "3 ")]
        {
            assert_eq!(topics.look_up(topic, partition, after), TopicExistence::Unknown, "it may be new");
            let TopicExistence::No(problem) = topics.look_up(topic, partition, before) else {
                panic!("{topic} is there")
            };
            assert!(problem.contains(word), "{problem}");
        }
    }
}
