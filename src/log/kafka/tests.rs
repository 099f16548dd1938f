//! The suite of every log, on a real broker; and what only this log does.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{super::suite, *};
use crate::config::Pipeline;

#[path = "../../../tests/broker_process.rs"]
#[allow(dead_code, reason = "the integration tests kill brokers, too")]
pub(super) mod broker_process;
use broker_process::Broker;

/// Settings for topics of their own.
pub(super) fn settings(broker: &Broker, name: &str, partitions: u32) -> LogSettings {
    let mut log = Pipeline::parse("version = 1").unwrap().log;
    log.kind = crate::config::LogKind::Kafka;
    log.partitions = partitions;
    log.kafka.brokers = broker.bootstrap().to_owned();
    log.kafka.prefix = name.to_owned();
    log
}

#[test]
fn the_suite_passes_on_a_real_broker() {
    let Some(broker) = Broker::shared("log::kafka::the_suite_passes_on_a_real_broker") else { return };
    suite::run(|name| {
        Box::new(KafkaLog::open(&settings(&broker, &format!("suite-{name}"), suite::PARTITIONS)).unwrap())
    });
}

#[test]
fn the_newest_owner_fences_the_one_before() {
    let Some(broker) = Broker::shared("log::kafka::the_newest_owner_fences_the_one_before") else { return };
    let settings = settings(&broker, "fenced", 1);
    let (old, new) = (KafkaLog::open(&settings).unwrap(), KafkaLog::open(&settings).unwrap());
    old.own(0).unwrap();
    old.commit(&suite::transaction(0, &[("a", Some("old"))])).unwrap();
    new.own(0).unwrap();
    let refused = old.commit(&suite::transaction(0, &[("a", Some("too late"))])).unwrap_err();
    assert!(matches!(refused, LogError::Fenced { partition: 0 }), "{refused}");
    new.commit(&suite::transaction(0, &[("b", Some("new"))])).unwrap();
    let expected = [("a".to_owned(), "old".to_owned()), ("b".to_owned(), "new".to_owned())];
    assert_eq!(suite::folded(&new, 0), BTreeMap::from(expected));
    assert_eq!(suite::folded(&KafkaLog::open(&settings).unwrap(), 0), suite::folded(&new, 0));
}

#[test]
fn a_topic_that_differs_is_named_with_what_to_do() {
    let Some(broker) = Broker::shared("log::kafka::a_topic_that_differs_is_named_with_what_to_do") else { return };
    drop(KafkaLog::open(&settings(&broker, "shaped", 2)).unwrap());
    let error = KafkaLog::open(&settings(&broker, "shaped", 3)).err().unwrap();
    let LogError::Topics { differences, .. } = &error else { panic!("{error}") };
    let memory = differences.iter().find(|d| d.contains("shaped.memory")).unwrap();
    assert!(memory.contains("has 2") && memory.contains("log.partitions"), "{memory}");
    let mut lagging = settings(&broker, "shaped", 2);
    lagging.kafka.compaction_lag_minutes = 60;
    let error = KafkaLog::open(&lagging).err().unwrap().to_string();
    assert!(error.contains("min.compaction.lag.ms") && error.contains("3600000"), "{error}");
    // Snapshots wish for more than is there, and go without it.
    let mut wishing = settings(&broker, "shaped", 2);
    wishing.kafka.snapshot_lag_ms = 20_000;
    let notices = KafkaLog::open(&wishing).unwrap().notices().join("\n");
    assert!(notices.contains("shaped.memory") && notices.contains("min.compaction.lag.ms=20000"), "{notices}");
    // A topic that is made with them has it, and then more than its minutes is asked of no one.
    wishing.kafka.prefix = "spaced".to_owned();
    assert!(KafkaLog::open(&wishing).unwrap().notices().is_empty());
    assert!(KafkaLog::open(&wishing).unwrap().notices().is_empty());
    wishing.kafka.snapshot_lag_ms = 20_001;
    assert_eq!(KafkaLog::open(&wishing).unwrap().notices().len(), 1);
    wishing.kafka.compaction_lag_minutes = 1;
    assert!(KafkaLog::open(&wishing).is_err());
}

#[test]
fn an_absent_cluster_is_named_with_what_to_do() {
    let mut absent = Pipeline::parse("version = 1").unwrap().log;
    absent.kafka.brokers = "127.0.0.1:1".to_owned();
    absent.kafka.timeout_seconds = 1;
    let error = KafkaLog::open(&absent).err().unwrap().to_string();
    assert!(error.contains("127.0.0.1:1") && error.contains("log.kafka.brokers"), "{error}");
}

/// A transaction leaves a mark behind its turns, which has an offset and holds no turn.
#[test]
fn marks_of_transactions_are_not_counted_as_turns() {
    let Some(broker) = Broker::shared("log::kafka::marks_of_transactions_are_not_counted_as_turns") else { return };
    let settings = settings(&broker, "marks", 2);
    let log = KafkaLog::open(&settings).unwrap();
    let bank = (0..).map(|n| format!("b{n}")).find(|b| partition_of(suite::turn(b, 0).bank(), 2) == 1).unwrap();
    let transaction = Transaction { forwards: vec![suite::turn(&bank, 1)], ..suite::transaction(0, &[]) };
    log.commit(&transaction).unwrap();
    for log in [log, KafkaLog::open(&settings).unwrap()] {
        assert_eq!(log.end(Topic::Turns, 1).unwrap(), 2, "the turn and the mark");
        assert_eq!(log.behind(1, 0).unwrap(), 2);
        assert_eq!(log.behind(1, 1).unwrap(), 0);
    }
}

/// What another process writes is seen without asking for the end.
#[test]
fn what_others_write_comes() {
    let Some(broker) = Broker::shared("log::kafka::what_others_write_comes") else { return };
    static NAMES: AtomicU32 = AtomicU32::new(0);
    let settings = settings(&broker, &format!("others-{}", NAMES.fetch_add(1, Ordering::Relaxed)), 1);
    let (reader, writer) = (KafkaLog::open(&settings).unwrap(), KafkaLog::open(&settings).unwrap());
    assert_eq!(suite::all(&reader, Topic::Turns, 0, 0), []);
    let mut at = 0;
    for round in 0..5 {
        writer.append_turns(&[suite::turn("b", round)]).unwrap();
        let until = Instant::now() + std::time::Duration::from_secs(10);
        loop {
            let batch = reader.read(Topic::Turns, 0, at, 10).unwrap();
            at = batch.next;
            if !batch.records.is_empty() {
                break;
            }
            assert!(Instant::now() < until, "round {round}");
        }
        assert_eq!(at, round as u64 + 1);
    }
}
