//! Faults between the client and a cluster: injected by librdkafka's mock cluster, which needs no
//! Java, or caused at a real broker. The mock cannot prove that a transaction is atomic; it shows which error a fault
//! becomes.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rdkafka::{
    mocking::MockCluster,
    producer::{BaseProducer, DefaultProducerContext, Producer},
    types::{RDKafkaApiKey, RDKafkaRespErr},
};

use super::{
    KafkaLog,
    client::{KafkaClientState, KafkaCluster},
    partition_reader::PartitionReader,
    tests::{broker_process::Broker, settings},
    transactional_producer::{self, OutgoingRecord, TransactionalProducer},
};
use crate::{Log, LogError, SourceLog as _, SourceTransaction, Topic, Transaction, kafka::partition_of_source, suite};
use types::{
    config::Pipeline,
    model::{DeadLetter, TurnEvent},
    sync,
};

const TOPIC: &str = "mock.memory";

/// A mock cluster with two brokers and one topic.
fn mock_cluster() -> (MockCluster<'static, DefaultProducerContext>, KafkaCluster) {
    let mock = MockCluster::new(2).unwrap();
    mock.create_topic(TOPIC, 1, 2).unwrap();
    let mut settings = Pipeline::parse("version = 1").unwrap().log.kafka;
    settings.brokers = mock.bootstrap_servers();
    settings.prefix = "mock".to_owned();
    settings.timeout_seconds = 3;
    (mock, KafkaCluster::new(&settings).unwrap())
}

/// A proxy to a broker that can remove all brokers from its metadata responses, as a controller
/// does while it has none.
struct BrokerProxy {
    port: u16,
    hide_brokers: Arc<AtomicBool>,
}

/// Kafka's API keys.
const METADATA: u16 = 3;
const FIND_COORDINATOR: u16 = 10;

impl BrokerProxy {
    fn to(broker: &str) -> Self {
        let (listener, broker) = (TcpListener::bind("127.0.0.1:0").unwrap(), broker.to_owned());
        let (port, hide_brokers) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
        let proxy = Self { port, hide_brokers: Arc::clone(&hide_brokers) };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&broker).unwrap());
                let broker_port = server.peer_addr().unwrap().port();
                let kinds: Arc<Mutex<HashMap<[u8; 4], u16>>> = Arc::default();
                let (requests, hide_brokers) = (Arc::clone(&kinds), Arc::clone(&hide_brokers));
                relay(client.try_clone().unwrap(), server.try_clone().unwrap(), move |request| {
                    let kind = u16::from_be_bytes(request[..2].try_into().unwrap());
                    sync::lock(&requests).insert(request[4..8].try_into().unwrap(), kind);
                });
                relay(server, client, move |response| {
                    let kind = sync::lock(&kinds).remove(&response[..4]);
                    if matches!(kind, Some(METADATA | FIND_COORDINATOR)) {
                        redirect(response, broker_port, port);
                    }
                    if kind == Some(METADATA) && hide_brokers.load(Ordering::Relaxed) {
                        remove_brokers(response);
                    }
                });
            }
        });
        proxy
    }
}

/// Forwards frames; `edit` may change each.
fn relay(mut from: TcpStream, mut to: TcpStream, edit: impl Fn(&mut Vec<u8>) + Send + 'static) {
    std::thread::spawn(move || -> std::io::Result<()> {
        loop {
            let mut length = [0; 4];
            from.read_exact(&mut length)?;
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            from.read_exact(&mut frame)?;
            edit(&mut frame);
            to.write_all(&(frame.len() as u32).to_be_bytes())?;
            to.write_all(&frame)?;
        }
    });
}

/// Replaces the broker's port with the proxy's in a response.
fn redirect(response: &mut [u8], broker: u16, proxy: u16) {
    let (broker, proxy) = (u32::from(broker).to_be_bytes(), u32::from(proxy).to_be_bytes());
    for at in 0..response.len().saturating_sub(3) {
        if response[at..at + 4] == broker {
            response[at..at + 4].copy_from_slice(&proxy);
        }
    }
}

/// Removes the brokers from a metadata response of version 9 or newer.
fn remove_brokers(response: &mut Vec<u8>) {
    // Correlation id, no tags, throttle time; then the number of brokers plus one.
    let mut at = 10;
    for _ in 1..response[9] {
        // Id, host, port, rack, no tags.
        at += 4;
        at += usize::from(response[at]) + 4;
        at += usize::from(response[at].max(1)) + 1;
    }
    response.splice(9..at, [1]);
}

fn one(value: &[u8]) -> impl Iterator<Item = OutgoingRecord<'_>> {
    std::iter::once(OutgoingRecord {
        topic: TOPIC,
        partition: Some(0),
        key: Some(b"k"),
        value: Some(value),
        headers: None,
    })
}

fn values(cluster: &KafkaCluster) -> Vec<Vec<u8>> {
    let raw = PartitionReader::open(cluster, TOPIC, 0, false).unwrap().read(cluster, 0, 100).unwrap();
    raw.into_iter().filter_map(|raw| raw.record.value).collect()
}

/// As after a killed broker starts again: for a moment it knows an earlier end.
#[test]
fn an_offset_that_the_cluster_does_not_know_yet_has_not_expired() {
    let (mock, cluster) = mock_cluster();
    let owner = TransactionalProducer::take(&cluster, "extract", 0).unwrap();
    owner.commit(&cluster, one(b"first")).unwrap();
    let mut reader = PartitionReader::open(&cluster, TOPIC, 0, false).unwrap();
    mock.request_errors(RDKafkaApiKey::Fetch, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE]);
    let error = reader.read(&cluster, 0, 10).unwrap_err();
    assert!(matches!(error, LogError::Cluster { retriable: true, .. }), "{error}");
    assert_eq!(reader.read(&cluster, 0, 10).unwrap().len(), 1);
}

#[test]
fn a_retriable_error_does_not_fail_a_commit() {
    let (mock, cluster) = mock_cluster();
    let owner = TransactionalProducer::take(&cluster, "extract", 0).unwrap();
    for (request, error) in [
        (RDKafkaApiKey::AddPartitionsToTxn, RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS),
        (RDKafkaApiKey::Produce, RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION),
        (RDKafkaApiKey::EndTxn, RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
    ] {
        mock.request_errors(request, &[error, error]);
        owner.commit(&cluster, one(b"whole")).unwrap_or_else(|e| panic!("{request:?}: {e}"));
    }
    assert_eq!(values(&cluster), vec![b"whole".to_vec(); 3]);
}

#[test]
fn a_permanent_error_names_its_cause() {
    for (request, error, word) in [
        (RDKafkaApiKey::EndTxn, RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, "owns it now"),
        (RDKafkaApiKey::AddPartitionsToTxn, RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "ACLs"),
        (RDKafkaApiKey::Produce, RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, "of partition 0"),
    ] {
        let (mock, cluster) = mock_cluster();
        let owner = TransactionalProducer::take(&cluster, "extract", 0).unwrap();
        mock.request_errors(request, &[error]);
        let error = owner.commit(&cluster, one(b"never")).err().unwrap_or_else(|| panic!("{request:?} went through"));
        assert!(error.to_string().contains(word), "{request:?}: {error}");
    }
}

#[test]
fn a_reader_waits_for_a_broker_until_its_timeout() {
    let (mock, cluster) = mock_cluster();
    let owner = TransactionalProducer::take(&cluster, "extract", 0).unwrap();
    owner.commit(&cluster, one(b"there")).unwrap();
    let error = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
    mock.request_errors(RDKafkaApiKey::Fetch, &[error; 3]);
    assert_eq!(values(&cluster), [b"there"]);
    mock.partition_leader(TOPIC, 0, Some(2)).unwrap();
    assert_eq!(values(&cluster), [b"there"], "led by another");
    let mut reader = PartitionReader::open(&cluster, TOPIC, 0, false).unwrap();
    (1..=2).for_each(|broker| mock.broker_down(broker).unwrap());
    let error = reader.read(&cluster, 0, 1).unwrap_err();
    assert!(matches!(error, LogError::Cluster { retriable: true, .. }), "{error}");
    (1..=2).for_each(|broker| mock.broker_up(broker).unwrap());
    assert_eq!(reader.read(&cluster, 0, 1).unwrap().len(), 1, "the same reader goes on");
}

/// A client that received metadata without brokers never recovers (librdkafka issue 5301). The
/// reader detects that and uses a new client.
#[test]
fn a_stranded_client_of_a_reader_is_replaced() {
    let mock = MockCluster::new(1).unwrap();
    mock.create_topic(TOPIC, 1, 1).unwrap();
    let proxy = BrokerProxy::to(&mock.bootstrap_servers());
    let mut settings = Pipeline::parse("version = 1").unwrap().log.kafka;
    settings.timeout_seconds = 3;
    settings.brokers = mock.bootstrap_servers();
    let owner = TransactionalProducer::take(&KafkaCluster::new(&settings).unwrap(), "extract", 0).unwrap();
    settings.brokers = format!("127.0.0.1:{}", proxy.port);
    for key in ["topic.metadata.refresh.interval.ms", "statistics.interval.ms"] {
        settings.client.insert(key.to_owned(), "200".to_owned());
    }
    let cluster = KafkaCluster::new(&settings).unwrap();
    owner.commit(&cluster, one(b"before")).unwrap();
    let mut reader = PartitionReader::open(&cluster, TOPIC, 0, false).unwrap();
    let first = reader.read(&cluster, 0, 1).unwrap();
    let next = first[0].record.offset + 1;
    let wait = |met: &mut dyn FnMut() -> bool| {
        let until = Instant::now() + Duration::from_secs(300);
        while !met() {
            assert!(Instant::now() < until, "timed out");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    proxy.hide_brokers.store(true, Ordering::Relaxed);
    wait(&mut || {
        reader.read_once(&cluster, next, 1).unwrap();
        reader.watch.stranded()
    });
    proxy.hide_brokers.store(false, Ordering::Relaxed);
    owner.commit(&cluster, one(b"after")).unwrap();
    wait(&mut || !reader.read(&cluster, next, 1).unwrap().is_empty());
}

/// Writes a record as the owner with this id does, and leaves the transaction open.
fn write_and_stop(log: &KafkaLog, owner: &str, out: OutgoingRecord<'_>) -> BaseProducer<KafkaClientState> {
    let id = format!("{}.{owner}", log.cluster().settings.prefix);
    let open: BaseProducer<KafkaClientState> =
        log.cluster().transactional(&id).create_with_context(KafkaClientState::default()).unwrap();
    open.init_transactions(Duration::from_secs(30)).unwrap();
    open.begin_transaction().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    transactional_producer::send(&open, out, until).unwrap();
    transactional_producer::drain(&open, until).unwrap();
    open
}

/// The position of a partition is found while the transaction of a writer that died is still open, as after a kill.
/// The next owner of the partition ends it.
#[test]
fn a_look_at_a_position_does_not_wait_for_a_writer_that_died() {
    let test = "kafka::faults::a_look_at_a_position_does_not_wait_for_a_writer_that_died";
    let Some(broker) = Broker::shared(test) else { return };
    let mut settings = settings(&broker, "looked", 1);
    let log = KafkaLog::open(&settings).unwrap();
    log.append_turns(&[suite::turn("bank", 1)]).unwrap();
    log.commit(&suite::transaction(1, &[("a", Some("committed"))])).unwrap();
    let memory = log.cluster().topic("memory");
    let out =
        OutgoingRecord { topic: &memory, partition: Some(0), key: Some(b"a"), value: Some(b"never"), headers: None };
    let _open = write_and_stop(&log, "extract.0", out);
    // A request times out sooner than the cluster aborts a transaction.
    settings.kafka.timeout_seconds = 5;
    let other = KafkaLog::open(&settings).unwrap();
    assert_eq!(other.read_position(0).unwrap(), 1);
    other.own(0).unwrap();
    assert_eq!(other.read_position(0).unwrap(), 1);
    assert_eq!(suite::live_values(&other, 0)["a"], "committed");
}

/// A broker dies while a transaction is open: none of its records becomes visible, and the next
/// owner of the partition continues at once.
#[test]
fn a_broker_killed_inside_an_open_transaction_shows_none_of_it() {
    let test = "kafka::faults::a_broker_killed_inside_an_open_transaction_shows_none_of_it";
    let Some(broker) = Broker::start(test, &[]) else { return };
    let settings = settings(&broker, "open", 1);
    let log = KafkaLog::open(&settings).unwrap();
    let transaction = |value| suite::transaction(0, &[("a", Some(value))]);
    log.commit(&transaction("committed")).unwrap();
    let memory = log.cluster().topic("memory");
    let out =
        OutgoingRecord { topic: &memory, partition: Some(0), key: Some(b"a"), value: Some(b"never"), headers: None };
    let open = write_and_stop(&log, "extract.0", out);
    broker.act("kill", None);
    broker.act("restart", None);
    let next = KafkaLog::open(&settings).unwrap();
    let folded = |log: &KafkaLog| suite::live_values(log, 0);
    assert_eq!(folded(&next)["a"], "committed");
    next.own(0).unwrap();
    assert_eq!(next.read_position(0).unwrap(), 0);
    next.commit(&transaction("later")).unwrap();
    assert!(open.commit_transaction(Duration::from_secs(10)).is_err(), "fenced");
    assert_eq!(folded(&next)["a"], "later");
    assert_eq!(folded(&KafkaLog::open(&settings).unwrap())["a"], "later");
    // The first log's owner is fenced, too, until that log owns the partition again.
    assert!(matches!(log.commit(&transaction("too late")), Err(LogError::Fenced { partition: 0 })));
    log.own(0).unwrap();
    log.commit(&transaction("again")).unwrap();
    assert_eq!(folded(&next)["a"], "again");
}

/// The broker is killed, and what the partitions know of the end of their last transaction is lost.
fn lose_markers(broker: &Broker, partitions: &[&str]) {
    broker.kill_without_markers(&partitions.iter().map(|partition| (*partition).to_owned()).collect::<Vec<_>>());
    broker.act("restart", None);
}

/// A cluster may have forgotten a transaction that a partition considers open: no reader is shown what lies behind it,
/// and no newer producer and no timeout ends it.
#[test]
fn a_transaction_that_the_cluster_left_open_is_ended_by_its_owner() {
    let test = "kafka::faults::a_transaction_that_the_cluster_left_open_is_ended_by_its_owner";
    let Some(broker) = Broker::start(test, &[]) else { return };
    let settings = settings(&broker, "left", 1);
    let open = || KafkaLog::open(&settings).unwrap();
    let log = open();
    log.append_turns(&(0..4).map(|n| suite::turn("bank", n)).collect::<Vec<_>>()).unwrap();
    let letter = DeadLetter::new("file:1".to_owned(), "not JSON; write JSON".to_owned(), b"{");
    let whole = Transaction { dead_letters: vec![letter], ..suite::transaction(1, &[("a", Some("first"))]) };
    log.commit(&whole).unwrap();
    lose_markers(&broker, &["unit-left.memory-0", "unit-left.dead-letters-0"]);
    let next = open();
    let letters = |log: &KafkaLog| suite::all(log, Topic::DeadLetters, 0, 0).len();
    assert_eq!((next.read_position(0).unwrap(), letters(&next)), (0, 0), "nobody is shown it");
    next.own(0).unwrap();
    assert_eq!((next.read_position(0).unwrap(), letters(&open())), (1, 2), "the letter is delivered again");
    assert_eq!(suite::live_values(&open(), 0)["a"], "first");

    // The case of an owner that stays, and commits nothing more.
    next.commit(&suite::transaction(2, &[("a", Some("second"))])).unwrap();
    lose_markers(&broker, &["unit-left.memory-0"]);
    let until = Instant::now() + Duration::from_secs(60);
    while open().read_position(0).unwrap() != 2 {
        assert!(Instant::now() < until, "nobody is shown the last commit");
        next.maintain(0).unwrap();
    }
    assert_eq!(suite::live_values(&open(), 0)["a"], "second");

    // The case of a transaction that was aborted before its last record was written.
    let memory = next.cluster().topic("memory");
    let out =
        OutgoingRecord { topic: &memory, partition: Some(0), key: Some(b"b"), value: Some(b"never"), headers: None };
    drop(write_and_stop(&next, "extract.0", out));
    open().own(0).unwrap();
    lose_markers(&broker, &["unit-left.memory-0"]);
    let last = open();
    last.own(0).unwrap();
    assert_eq!(last.read_position(0).unwrap(), 2);
    last.commit(&suite::transaction(3, &[("c", Some("third"))])).unwrap();
    let live = suite::live_values(&open(), 0);
    assert_eq!((live.get("b"), live["c"].as_str()), (None, "third"));

    // The case of a source's turns, whose position is known.
    last.ensure_sources().unwrap();
    let (mut writer, _) = last.take_source("chat").unwrap();
    writer.commit(&source_transaction("chat", 1)).unwrap();
    drop(writer);
    let end = last.end(Topic::Turns, 0).unwrap();
    lose_markers(&broker, &["unit-left.turns-0", &format!("unit-left.sources-{}", partition_of_source("chat"))]);
    assert!(last.end(Topic::Turns, 0).unwrap() < end);
    let (_, state) = last.take_source("chat").unwrap();
    assert_eq!(state.cursor, Some(b"1".to_vec()));
    let turns = suite::all(&open(), Topic::Turns, 0, 4);
    assert_eq!(turns.len(), 2, "it is delivered again");
    assert_eq!(turns[0].value, turns[1].value);
}

/// Another source whose position is in the same partition of the topic of sources.
fn beside(source: &str) -> String {
    let partition = partition_of_source(source);
    (0..).map(|n| format!("other-{n}")).find(|other| partition_of_source(other) == partition).unwrap()
}

fn source_transaction(source: &str, number: u64) -> SourceTransaction {
    let events = vec![suite::turn(source, number as usize)];
    SourceTransaction { events, cursor: number.to_string().into_bytes(), ..SourceTransaction::default() }
}

/// A broker shows nothing that was written after the start of an open transaction. While another source's transaction
/// stayed open, a source that started again did not find its position, which it had committed later, and wrote its
/// messages twice.
#[test]
fn a_position_behind_an_open_transaction_of_another_source_is_found() {
    let test = "kafka::faults::a_position_behind_an_open_transaction_of_another_source_is_found";
    let Some(broker) = Broker::shared(test) else { return };
    let log = KafkaLog::open(&settings(&broker, "behind", 1)).unwrap();
    log.ensure_sources().unwrap();
    let other = beside("chat");
    let (mut writer, _) = log.take_source("chat").unwrap();
    writer.commit(&source_transaction("chat", 1)).unwrap();
    let (topic, partition) = (log.cluster().topic("sources"), Some(partition_of_source("chat")));
    let out =
        OutgoingRecord { topic: &topic, partition, key: Some(other.as_bytes()), value: Some(b"1"), headers: None };
    let open = write_and_stop(&log, &format!("source.{other}.0"), out);
    writer.commit(&source_transaction("chat", 2)).unwrap();
    drop(writer);
    std::thread::scope(|scope| {
        let (found, is_found) = std::sync::mpsc::channel();
        let log = &log;
        scope.spawn(move || {
            let (_, state) = log.take_source("chat").unwrap();
            found.send(state.cursor).unwrap();
        });
        let early = is_found.recv_timeout(Duration::from_millis(500));
        assert!(early.is_err(), "it does not wait, and takes {early:?} for the last position");
        open.commit_transaction(Duration::from_secs(30)).unwrap();
        assert_eq!(is_found.recv().unwrap(), Some(b"2".to_vec()));
    });
}

/// Two sources of one partition keep writing while their broker is paused for longer than a request's timeout. Each
/// starts again at its durable position: no message is left out, and none comes again behind a later one. A message may
/// stand twice in a row: if the cluster leaves its transaction open, the source writes it again.
#[test]
fn a_source_goes_on_behind_its_last_message_after_its_broker_stood_still() {
    let test = "kafka::faults::a_source_goes_on_behind_its_last_message_after_its_broker_stood_still";
    let Some(broker) = Broker::start(test, &[]) else { return };
    let mut settings = settings(&broker, "still", 1);
    KafkaLog::open(&settings).unwrap().ensure_sources().unwrap();
    settings.kafka.timeout_seconds = 2;
    let log = KafkaLog::open(&settings).unwrap();
    let sources = ["chat".to_owned(), beside("chat")];
    let longest = log.cluster().transactional("x").get("transaction.timeout.ms").unwrap().parse().unwrap();
    let longest = Duration::from_millis(longest);
    let (written, failed, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    // Writes until the test is over. Returns the source's last message, if the log says which that is.
    let follow = |source: &str| loop {
        // As a source does after any failure of the log: it starts again at its durable position.
        let Ok((mut writer, state)) = log.take_source(source) else {
            failed.fetch_add(1, Ordering::Relaxed);
            if is_over.load(Ordering::Relaxed) {
                return None;
            }
            continue;
        };
        let cursor = state.cursor.map_or("0".to_owned(), |cursor| String::from_utf8(cursor).unwrap());
        let mut last: u64 = cursor.parse().unwrap();
        loop {
            if is_over.load(Ordering::Relaxed) {
                return Some(last);
            }
            if writer.commit(&source_transaction(source, last + 1)).is_err() {
                failed.fetch_add(1, Ordering::Relaxed);
                break;
            }
            last += 1;
            written.fetch_add(1, Ordering::Relaxed);
        }
    };
    let wait = |what: &str, is_met: &dyn Fn() -> bool| {
        let until = Instant::now() + Duration::from_secs(120);
        while !is_met() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let last = std::thread::scope(|scope| {
        // Needed if a wait panics: the scope would wait for its threads forever.
        let _over = StopFlagGuard(&is_over);
        let followers = sources.each_ref().map(|source| scope.spawn(|| follow(source)));
        for _ in 0..2 {
            let before = written.load(Ordering::Relaxed);
            wait("the sources write", &|| written.load(Ordering::Relaxed) >= before + 20);
            broker.act("pause", None);
            // Until the broker would have aborted a transaction, and sources have given up requests and started again.
            let (paused, before) = (Instant::now(), failed.load(Ordering::Relaxed));
            wait("the sources give up", &|| paused.elapsed() > longest && failed.load(Ordering::Relaxed) >= before + 2);
            broker.act("resume", None);
        }
        let before = written.load(Ordering::Relaxed);
        wait("the sources go on", &|| written.load(Ordering::Relaxed) >= before + 20);
        is_over.store(true, Ordering::Relaxed);
        followers.map(|follower| follower.join().unwrap().unwrap())
    });
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    for record in suite::all(&log, Topic::Turns, 0, 0) {
        let event = TurnEvent::from_json(&record.value.unwrap()).unwrap();
        let TurnEvent::Turn(turn) = event else { panic!("{event:?}") };
        found.entry(turn.bank.to_string()).or_default().push(turn.turn);
    }
    for (source, last) in sources.iter().zip(last) {
        let expected: Vec<String> = (1..=last).map(|number| format!("t{number}")).collect();
        let mut found = found.remove(source).unwrap();
        found.dedup();
        assert_eq!(found, expected);
    }
}

struct StopFlagGuard<'a>(&'a AtomicBool);

impl Drop for StopFlagGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
