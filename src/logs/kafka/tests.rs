//! The suite of all logs on a real broker, and what only the Kafka log does.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
};

use super::{
    KafkaLog, control_records,
    partition_reader::PartitionReader,
    repair::{RepairChecks, replace, unreadable_records},
    transactional_producer::OutgoingRecord,
};
use crate::{GenerationalLog as _, Log, LogError, LogRecord, ReadProgress, Topic, Transaction, partition_of, suite};
use types::config::{LogSettings, Pipeline};

#[path = "../../../tests/broker_process.rs"]
#[allow(dead_code, reason = "only the integration tests use all of it")]
pub(super) mod broker_process;
#[path = "../../../tests/skipped.rs"]
mod skipped;
use broker_process::Broker;

/// Settings with a topic prefix of this test, which no end-to-end test on the same broker uses.
pub(super) fn settings(broker: &Broker, name: &str, partitions: u32) -> LogSettings {
    let mut log = Pipeline::parse("version = 1").unwrap().log;
    log.kind = types::config::LogKind::Kafka;
    log.partitions = partitions;
    log.kafka.brokers = broker.bootstrap().to_owned();
    log.kafka.prefix = format!("unit-{name}");
    log
}

#[test]
fn the_suite_passes_on_a_real_broker() {
    let Some(broker) = Broker::shared("kafka::the_suite_passes_on_a_real_broker") else { return };
    suite::run(|name| {
        Box::new(KafkaLog::open(&settings(&broker, &format!("suite-{name}"), suite::PARTITIONS)).unwrap())
    });
}

#[test]
fn the_newest_owner_fences_the_one_before() {
    let Some(broker) = Broker::shared("kafka::the_newest_owner_fences_the_one_before") else { return };
    let settings = settings(&broker, "fenced", 1);
    let (old, new) = (KafkaLog::open(&settings).unwrap(), KafkaLog::open(&settings).unwrap());
    old.own(0).unwrap();
    old.commit(&suite::transaction(0, &[("a", Some("old"))])).unwrap();
    new.own(0).unwrap();
    let refused = old.commit(&suite::transaction(0, &[("a", Some("too late"))])).unwrap_err();
    assert!(matches!(refused, LogError::Fenced { partition: 0 }), "{refused}");
    new.commit(&suite::transaction(0, &[("b", Some("new"))])).unwrap();
    let expected = [("a".to_owned(), "old".to_owned()), ("b".to_owned(), "new".to_owned())];
    assert_eq!(suite::live_values(&new, 0), BTreeMap::from(expected));
    assert_eq!(suite::live_values(&KafkaLog::open(&settings).unwrap(), 0), suite::live_values(&new, 0));
}

#[test]
fn a_topic_that_differs_is_named_with_what_to_do() {
    let Some(broker) = Broker::shared("kafka::a_topic_that_differs_is_named_with_what_to_do") else { return };
    drop(KafkaLog::open(&settings(&broker, "shaped", 2)).unwrap());
    let error = KafkaLog::open(&settings(&broker, "shaped", 3)).err().unwrap();
    let LogError::Topics { differences, .. } = &error else { panic!("{error}") };
    let memory = differences.iter().find(|d| d.contains("shaped.memory")).unwrap();
    assert!(memory.contains("has 2") && memory.contains("log.partitions"), "{memory}");
    let mut lagging = settings(&broker, "shaped", 2);
    lagging.kafka.compaction_lag_minutes = 60;
    let error = KafkaLog::open(&lagging).err().unwrap().to_string();
    assert!(error.contains("min.compaction.lag.ms") && error.contains("3600000"), "{error}");
    // If an existing topic lacks the compaction lag that snapshots ask for, that is only a notice.
    let mut wanting = settings(&broker, "shaped", 2);
    wanting.kafka.snapshot_lag_ms = 20_000;
    let notices = KafkaLog::open(&wanting).unwrap().notices().join("\n");
    assert!(notices.contains("shaped.memory") && notices.contains("min.compaction.lag.ms=20000"), "{notices}");
    // A new topic is created with it. A longer one is a notice; the configured minutes are required.
    wanting.kafka.prefix = "spaced".to_owned();
    assert!(KafkaLog::open(&wanting).unwrap().notices().is_empty());
    assert!(KafkaLog::open(&wanting).unwrap().notices().is_empty());
    wanting.kafka.snapshot_lag_ms = 20_001;
    assert_eq!(KafkaLog::open(&wanting).unwrap().notices().len(), 1);
    wanting.kafka.compaction_lag_minutes = 1;
    assert!(KafkaLog::open(&wanting).is_err());
}

/// Topics that others created work; each property that they lack is a warning with the command that sets it.
#[test]
fn new_topics_keep_their_retention_and_those_of_others_are_warned_of() {
    let test = "kafka::new_topics_keep_their_retention_and_those_of_others_are_warned_of";
    let Some(broker) = Broker::shared(test) else { return };
    let mut fresh = settings(&broker, "kept", 1);
    fresh.kafka.turns_retention_hours = 24;
    for _ in 0..2 {
        assert_eq!(KafkaLog::open(&fresh).unwrap().notices(), Vec::<String>::new());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create().unwrap();
    let options = AdminOptions::new();
    let property = |topic: &str, key: &str| {
        let name = format!("unit-kept.{topic}");
        let asked = [ResourceSpecifier::Topic(&name)];
        let found = runtime.block_on(admin.describe_configs(&asked, &options)).unwrap().remove(0).unwrap();
        found.get(key).and_then(|entry| entry.value.clone()).unwrap()
    };
    assert_eq!(property("questions", "segment.ms"), "600000");
    assert_eq!(property("answers", "segment.ms"), "600000");
    assert_eq!(property("turns", "segment.ms"), (4 * 3_600_000).to_string());
    assert_eq!(property("memory", "max.compaction.lag.ms"), (24 * 3_600_000).to_string());
    assert_eq!(property("memory", "min.insync.replicas"), "1");

    let topic = |name, properties: &[(&'static str, &'static str)]| {
        let topic = NewTopic::new(name, 1, TopicReplication::Fixed(1)).set("max.message.bytes", "8388608");
        properties.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
    };
    let delete: &[_] = &[("cleanup.policy", "delete")];
    let compact: &[_] = &[("cleanup.policy", "compact"), ("delete.retention.ms", "604800000")];
    let others = [
        topic("others.turns", delete),
        topic("others.memory", compact),
        topic("others.dead-letters", delete),
        topic("others.questions", delete),
        topic("others.answers", delete),
    ];
    let made = runtime.block_on(admin.create_topics(&others, &options)).unwrap();
    assert!(made.iter().all(Result::is_ok), "{made:?}");
    fresh.kafka.prefix = "others".to_owned();
    let notices = KafkaLog::open(&fresh).unwrap().notices().to_vec();
    let warned = |topic: &str, key: &str| {
        let found = notices.iter().filter(|notice| notice.contains(&format!("topic others.{topic}: {key} is ")));
        let command = format!("--entity-name others.{topic} --add-config {key}=");
        assert_eq!(found.filter(|notice| notice.contains(&command)).count(), 1, "{topic} {key}: {notices:?}");
    };
    warned("turns", "segment.ms");
    warned("questions", "segment.ms");
    warned("answers", "segment.ms");
    warned("memory", "max.compaction.lag.ms");
    assert_eq!(notices.len(), 4, "{notices:?}");
}

#[test]
fn two_of_three_copies_have_a_record_before_it_is_acknowledged() {
    let of = |configured, copies| super::topic_setup::min_insync(configured, copies);
    assert_eq!([of(0, 1), of(0, 2), of(0, 3), of(0, 5), of(1, 3), of(3, 3)], [1, 1, 2, 2, 1, 3]);
    let refused = Pipeline::parse("version = 1\nlog.kafka.min_insync_replicas = 2").unwrap_err();
    assert!(refused.contains("min_insync_replicas") && refused.contains("replication"), "{refused}");
}

#[test]
fn an_unreachable_cluster_is_named_with_what_to_do() {
    let mut unreachable = Pipeline::parse("version = 1").unwrap().log;
    unreachable.kafka.brokers = "127.0.0.1:1".to_owned();
    unreachable.kafka.timeout_seconds = 1;
    let error = KafkaLog::open(&unreachable).err().unwrap().to_string();
    assert!(error.contains("127.0.0.1:1") && error.contains("log.kafka.brokers"), "{error}");
}

/// A transaction marker follows the turns. It has an offset, but holds no turn.
#[test]
fn transaction_markers_are_not_counted_as_turns() {
    let Some(broker) = Broker::shared("kafka::transaction_markers_are_not_counted_as_turns") else { return };
    let settings = settings(&broker, "markers", 2);
    let log = KafkaLog::open(&settings).unwrap();
    let bank = (0..).map(|n| format!("b{n}")).find(|b| partition_of(suite::turn(b, 0).bank(), 2) == 1).unwrap();
    let transaction = Transaction { forwards: vec![suite::turn(&bank, 1)], ..suite::transaction(0, &[]) };
    log.commit(&transaction).unwrap();
    // Until the marker is written, the broker reports the previous end.
    assert_eq!(suite::all(&log, Topic::Turns, 1, 0).len(), 1);
    for log in [log, KafkaLog::open(&settings).unwrap()] {
        assert_eq!(log.end(Topic::Turns, 1).unwrap(), 2, "the turn and the marker");
        assert_eq!(log.lag(1, 0).unwrap(), 1);
        assert_eq!(log.lag(1, 1).unwrap(), 0);
    }
}

/// A reader sees another process's records without asking for the end.
#[test]
fn records_of_other_writers_are_read() {
    let Some(broker) = Broker::shared("kafka::records_of_other_writers_are_read") else { return };
    static NAMES: AtomicU32 = AtomicU32::new(0);
    let settings = settings(&broker, &format!("others-{}", NAMES.fetch_add(1, Ordering::Relaxed)), 1);
    let (reader, writer) = (KafkaLog::open(&settings).unwrap(), KafkaLog::open(&settings).unwrap());
    assert_eq!(suite::all(&reader, Topic::Turns, 0, 0), []);
    let mut at = 0;
    for round in 0..5 {
        writer.append_turns(&[suite::turn("b", round)]).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
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

/// What this process wrote is read by a reader that opens while the broker still reports an older end.
#[test]
fn a_reader_that_opens_after_a_write_waits_for_it() {
    let Some(broker) = Broker::shared("kafka::a_reader_that_opens_after_a_write_waits_for_it") else { return };
    let settings = settings(&broker, "late", 1);
    let (log, slow) = (KafkaLog::open(&settings).unwrap(), KafkaLog::open(&settings).unwrap());
    let turns = log.cluster().topic("turns");
    let last_offsets = HashMap::from([((turns, 0), 1)]);
    log.reach_written(&last_offsets);
    let written = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        slow.append_turns(&(0..2).map(|n| suite::turn("b", n)).collect::<Vec<_>>()).unwrap();
    });
    assert_eq!(suite::all(&log, Topic::Turns, 0, 0).len(), 2);
    written.join().unwrap();
}

/// A reader may be moved again before the client has noted the first move; the process survives that.
#[test]
fn a_reader_may_be_moved_again_at_once() {
    let Some(broker) = Broker::shared("kafka::a_reader_may_be_moved_again_at_once") else { return };
    let log = KafkaLog::open(&settings(&broker, "moved", 1)).unwrap();
    log.append_turns(&(0..10).map(|n| suite::turn("b", n)).collect::<Vec<_>>()).unwrap();
    let cluster = log.cluster();
    let mut reader = PartitionReader::open(cluster, &cluster.topic("turns"), 0, false).unwrap();
    for round in 0..5_000 {
        reader.seek(cluster, round % 10).unwrap();
    }
    assert_eq!(reader.read(cluster, 3, 2).unwrap().len(), 2);
}

/// Writes a record to a topic as another program may: without an owner and outside transactions.
fn junk(log: &KafkaLog, topic: &str, partition: u32, key: &[u8], value: Option<&[u8]>) -> u64 {
    let topic = log.cluster().topic(topic);
    let out = OutgoingRecord { topic: &topic, partition: Some(partition), key: Some(key), value, headers: None };
    let last = log.append(std::iter::once(out)).unwrap();
    last[&(topic, partition as i32)].unsigned_abs()
}

/// Takes every value.
const ANY: RepairChecks<'static> = RepairChecks { value: &|_, _| None, entry: &|_, _| None };

/// Every record of a memory partition, and what the reads cover.
fn memory_of(log: &KafkaLog, partition: u32) -> (Vec<LogRecord>, BTreeMap<u32, ReadProgress>) {
    let (mut at, mut records, mut covers) = (0, Vec::new(), BTreeMap::new());
    loop {
        let batch = log.read(Topic::Memory, partition, at, 2).unwrap();
        covers.extend(batch.covers);
        if batch.next == at {
            return (records, covers);
        }
        at = batch.next;
        records.extend(batch.records);
    }
}

#[test]
fn of_each_key_of_the_memory_only_the_last_record_counts_and_what_cannot_be_read_stops_its_partition_alone() {
    let test = "kafka::of_each_key_of_the_memory_only_the_last_record_counts";
    let Some(broker) = Broker::shared(test) else { return };
    let settings = settings(&broker, "junk", 2);
    let log = KafkaLog::open(&settings).unwrap();
    let bank_in = |partition| {
        (0..).map(|n| format!("b{n}")).find(|b| partition_of(suite::turn(b, 0).bank(), 2) == partition).unwrap()
    };
    for partition in 0..2 {
        log.append_turns(&[suite::turn(&bank_in(partition), 1), suite::turn(&bank_in(partition), 2)]).unwrap();
        let memory = vec![(suite::key_of(&bank_in(partition)), Some(b"1".to_vec()))];
        log.commit(&Transaction { memory, ..suite::transaction_at(partition, 1) }).unwrap();
    }
    let position = control_records::key(1);
    let names = || -> Vec<(u64, bool)> {
        let found = unreadable_records(&settings, ANY).unwrap();
        found
            .into_iter()
            .map(|record| (record.offset, record.topic == "unit-junk.memory" && record.partition == 1))
            .collect()
    };
    assert_eq!(names(), vec![]);
    let untouched = memory_of(&log, 0);
    let before = memory_of(&log, 1);
    assert_eq!((before.0.len(), before.1), (1, BTreeMap::from([(1, 1.into())])));

    // A position of a partition that does not exist, and keys that are no memory keys: the last record of each counts.
    let keys: [&[u8]; 5] = [b"\0\0junk", b"\xff\xfe", b"\0\0ju", b"\0\x04bank\0", b""];
    for key in keys {
        let at = junk(&log, "memory", 1, key, Some(b"junk"));
        let (records, covers) = memory_of(&log, 1);
        let last = records.last().unwrap();
        assert_eq!((last.offset, last.key.as_slice(), log.is_replaced(1, last).unwrap()), (at, key, false));
        assert_eq!(covers, BTreeMap::from([(1, 1.into())]));
        assert_eq!(memory_of(&log, 0), untouched, "the other partition");
        let fresh = KafkaLog::open(&settings).unwrap();
        assert_eq!((fresh.read_position(0).unwrap(), fresh.read_position(1).unwrap()), (1, 1), "{key:?}");
        assert_eq!(names(), [(at, true)]);
        // A later record of the key counts instead; a removed one does not count at all.
        let again = junk(&log, "memory", 1, key, Some(b"more junk"));
        assert_eq!(names(), [(again, true)]);
        assert!(log.is_replaced(1, last).unwrap());
        replace(&settings, &unreadable_records(&settings, ANY).unwrap()[0], None, ANY).unwrap();
        assert_eq!(names(), []);
    }

    // A read position that this log does read.
    for value in [Some(&b"junk"[..]), None, Some(b"{\"schema\": 9, \"next_offset\": 1}"), Some(b"{\"schema\": 1}")] {
        let at = junk(&log, "memory", 1, &position, value);
        let fresh = KafkaLog::open(&settings).unwrap();
        assert_eq!(fresh.read_position(0).unwrap(), 1, "the other partition goes on");
        let error = fresh.read_position(1).unwrap_err();
        assert!(matches!(&error, LogError::Unreadable { partition: 1, offset, .. } if *offset == at), "{error}");
        let told = error.to_string();
        assert!(["unit-junk.memory/1", "turns/1", "ripplemem repair"].iter().all(|word| told.contains(word)), "{told}");
        assert!(matches!(fresh.last_transaction(Topic::Memory, 1), Err(LogError::Unreadable { .. })));
        let found = unreadable_records(&settings, ANY).unwrap();
        assert_eq!(found.iter().map(|record| record.offset).collect::<Vec<_>>(), [at]);
        assert!(found[0].remedy.contains("\"next_offset\":1"), "{}", found[0].remedy);
        // A value that could not be read either is not written, and no other is chosen.
        for wrong in [None, Some(&b"junk"[..])] {
            assert!(replace(&settings, &found[0], wrong, ANY).is_err(), "{wrong:?}");
        }
        assert_eq!(unreadable_records(&settings, ANY).unwrap(), found);
        replace(&settings, &found[0], Some(&control_records::value(&1.into())), ANY).unwrap();
        assert_eq!(names(), []);
        assert_eq!(fresh.read_position(1).unwrap(), 1);
    }
    // The first owner was never fenced, and continues.
    log.commit(&suite::transaction_at(1, 2)).unwrap();
    assert_eq!(KafkaLog::open(&settings).unwrap().read_position(1).unwrap(), 2);
}

#[test]
fn a_generation_that_cannot_be_read_is_named_and_the_last_record_counts() {
    let test = "kafka::a_generation_that_cannot_be_read_is_named_and_the_last_record_counts";
    let Some(broker) = Broker::shared(test) else { return };
    let settings = settings(&broker, "generated", 1);
    let log = KafkaLog::open(&settings).unwrap();
    // Its topic exists from the first re-embedding on.
    log.begin_next().unwrap();
    assert_eq!(KafkaLog::open(&settings).unwrap().generation(), 1);
    let opened = || KafkaLog::open(&settings).map(|log| log.generation()).map_err(|error| error.to_string());
    for value in ["junk", "{\"generation\":7}"] {
        let at = junk(&log, "generations", 0, control_records::GENERATION_KEY, Some(value.as_bytes()));
        let told = opened().unwrap_err();
        let words = ["generated.generations/0", &format!("offset {at}"), "ripplemem repair"];
        assert!(words.iter().all(|word| told.contains(word)) && !told.contains("log.kafka.brokers"), "{told}");
        let found = unreadable_records(&settings, ANY).unwrap();
        assert_eq!(found.iter().map(|record| record.offset).collect::<Vec<_>>(), [at]);
        replace(&settings, &found[0], None, ANY).unwrap();
        assert_eq!(opened(), Ok(1));
        assert_eq!(unreadable_records(&settings, ANY).unwrap(), []);
    }
}
