//! What goes wrong between us and a cluster: injected by the client's own mock cluster, which
//! needs no Java, and done to a real broker. The mock proves no transaction whole; it only
//! shows what an error comes to.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rdkafka::{
    mocking::MockCluster,
    producer::{DefaultProducerContext, Producer},
    types::{RDKafkaApiKey, RDKafkaRespErr},
};

use super::{
    tests::{broker_process::Broker, settings},
    *,
};
use crate::config::Pipeline;

const TOPIC: &str = "mock.memory";

/// Two brokers, one topic, and how to reach them.
fn mocked() -> (MockCluster<'static, DefaultProducerContext>, Cluster) {
    let mock = MockCluster::new(2).unwrap();
    mock.create_topic(TOPIC, 1, 2).unwrap();
    let mut settings = Pipeline::parse("version = 1").unwrap().log.kafka;
    settings.brokers = mock.bootstrap_servers();
    settings.prefix = "mock".to_owned();
    settings.timeout_seconds = 3;
    (mock, Cluster::new(&settings).unwrap())
}

/// The way to a broker on which its answers about the cluster can be made to name no broker, as
/// a controller's do while it has none.
struct Way {
    port: u16,
    blank: Arc<AtomicBool>,
}

const METADATA: u16 = 3;
const FIND_COORDINATOR: u16 = 10;

impl Way {
    fn to(broker: &str) -> Self {
        let (listener, broker) = (TcpListener::bind("127.0.0.1:0").unwrap(), broker.to_owned());
        let (port, blank) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
        let way = Self { port, blank: Arc::clone(&blank) };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&broker).unwrap());
                let there = server.peer_addr().unwrap().port();
                let asked: Arc<Mutex<HashMap<[u8; 4], u16>>> = Arc::default();
                let (noted, blank) = (Arc::clone(&asked), Arc::clone(&blank));
                relay(client.try_clone().unwrap(), server.try_clone().unwrap(), move |request| {
                    let kind = u16::from_be_bytes(request[..2].try_into().unwrap());
                    sync::lock(&noted).insert(request[4..8].try_into().unwrap(), kind);
                });
                relay(server, client, move |answer| {
                    let kind = sync::lock(&asked).remove(&answer[..4]);
                    if matches!(kind, Some(METADATA | FIND_COORDINATOR)) {
                        redirect(answer, there, port);
                    }
                    if kind == Some(METADATA) && blank.load(Ordering::Relaxed) {
                        name_no_broker(answer);
                    }
                });
            }
        });
        way
    }
}

/// Passes frames on, each of which `edit` may change.
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

/// Names another port wherever an answer names one.
fn redirect(answer: &mut [u8], there: u16, here: u16) {
    let (there, here) = (u32::from(there).to_be_bytes(), u32::from(here).to_be_bytes());
    for at in 0..answer.len().saturating_sub(3) {
        if answer[at..at + 4] == there {
            answer[at..at + 4].copy_from_slice(&here);
        }
    }
}

/// Takes the brokers out of a metadata answer of version 9 or newer.
fn name_no_broker(answer: &mut Vec<u8>) {
    // Correlation id, no tags, throttle time; then one more than the number of brokers.
    let mut at = 10;
    for _ in 1..answer[9] {
        // Id, host, port, rack, no tags.
        at += 4;
        at += usize::from(answer[at]) + 4;
        at += usize::from(answer[at].max(1)) + 1;
    }
    answer.splice(9..at, [1]);
}

fn one(value: &[u8]) -> impl Iterator<Item = Outgoing<'_>> {
    std::iter::once(Outgoing { topic: TOPIC, partition: Some(0), key: b"k", value: Some(value), headers: None })
}

fn values(cluster: &Cluster) -> Vec<Vec<u8>> {
    let raw = Lane::open(cluster, TOPIC, 0, false).unwrap().read(cluster, 0, 100).unwrap();
    raw.into_iter().filter_map(|raw| raw.record.value).collect()
}

#[test]
fn an_error_that_passes_does_not_end_a_commit() {
    let (mock, cluster) = mocked();
    let owner = Owner::take(&cluster, "extract", 0).unwrap();
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
fn an_error_that_does_not_pass_says_what_it_is() {
    for (request, error, word) in [
        (RDKafkaApiKey::EndTxn, RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, "owns it now"),
        (RDKafkaApiKey::AddPartitionsToTxn, RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "ACLs"),
        (RDKafkaApiKey::Produce, RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, "of partition 0"),
    ] {
        let (mock, cluster) = mocked();
        let owner = Owner::take(&cluster, "extract", 0).unwrap();
        mock.request_errors(request, &[error]);
        let told = owner.commit(&cluster, one(b"never")).err().unwrap_or_else(|| panic!("{request:?} went through"));
        assert!(told.to_string().contains(word), "{request:?}: {told}");
    }
}

#[test]
fn a_reader_waits_for_a_broker_and_says_when_it_has_waited_long_enough() {
    let (mock, cluster) = mocked();
    let owner = Owner::take(&cluster, "extract", 0).unwrap();
    owner.commit(&cluster, one(b"there")).unwrap();
    let error = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
    mock.request_errors(RDKafkaApiKey::Fetch, &[error; 3]);
    assert_eq!(values(&cluster), [b"there"]);
    mock.partition_leader(TOPIC, 0, Some(2)).unwrap();
    assert_eq!(values(&cluster), [b"there"], "led by another");
    let mut lane = Lane::open(&cluster, TOPIC, 0, false).unwrap();
    (1..=2).for_each(|broker| mock.broker_down(broker).unwrap());
    let told = lane.read(&cluster, 0, 1).unwrap_err();
    assert!(matches!(told, LogError::Cluster { passing: true, .. }), "{told}");
    (1..=2).for_each(|broker| mock.broker_up(broker).unwrap());
    assert_eq!(lane.read(&cluster, 0, 1).unwrap().len(), 1, "the same reader goes on");
}

/// A client that was told that there is no broker never asks again (librdkafka's issue 5301):
/// it is noticed, and another takes its place.
#[test]
fn a_reader_that_was_told_of_no_broker_is_replaced() {
    let mock = MockCluster::new(1).unwrap();
    mock.create_topic(TOPIC, 1, 1).unwrap();
    let way = Way::to(&mock.bootstrap_servers());
    let mut settings = Pipeline::parse("version = 1").unwrap().log.kafka;
    settings.timeout_seconds = 3;
    settings.brokers = mock.bootstrap_servers();
    let owner = Owner::take(&Cluster::new(&settings).unwrap(), "extract", 0).unwrap();
    settings.brokers = format!("127.0.0.1:{}", way.port);
    for key in ["topic.metadata.refresh.interval.ms", "statistics.interval.ms"] {
        settings.client.insert(key.to_owned(), "200".to_owned());
    }
    let cluster = Cluster::new(&settings).unwrap();
    owner.commit(&cluster, one(b"before")).unwrap();
    let mut lane = Lane::open(&cluster, TOPIC, 0, false).unwrap();
    let first = lane.read(&cluster, 0, 1).unwrap();
    let next = first[0].record.offset + 1;
    let wait = |met: &mut dyn FnMut() -> bool| {
        let until = Instant::now() + Duration::from_secs(60);
        while !met() {
            assert!(Instant::now() < until, "it never came");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    way.blank.store(true, Ordering::Relaxed);
    wait(&mut || {
        lane.read_on(&cluster, next, 1).unwrap();
        lane.watch.stranded()
    });
    way.blank.store(false, Ordering::Relaxed);
    owner.commit(&cluster, one(b"after")).unwrap();
    wait(&mut || !lane.read(&cluster, next, 1).unwrap().is_empty());
}

/// A broker that dies with a transaction open: nothing of it is ever seen, and who owns the
/// partition next goes on at once.
#[test]
fn a_broker_killed_inside_an_open_transaction_leaves_nothing_of_it() {
    let test = "log::kafka::faults::a_broker_killed_inside_an_open_transaction_leaves_nothing_of_it";
    let Some(broker) = Broker::start(test, &[]) else { return };
    let settings = settings(&broker, "open", 1);
    let log = KafkaLog::open(&settings).unwrap();
    let transaction = |value| super::super::suite::transaction(0, &[("a", Some(value))]);
    log.commit(&transaction("committed")).unwrap();
    // As the owner of the partition writes, up to the commit.
    let watch = Watch::default();
    let id = format!("{}.extract.0", settings.kafka.prefix);
    let open: BaseProducer<Watch> = log.cluster().transactional(&id).create_with_context(watch).unwrap();
    open.init_transactions(Duration::from_secs(30)).unwrap();
    open.begin_transaction().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    let out = Outgoing { topic: &log.memory, partition: Some(0), key: b"a", value: Some(b"never"), headers: None };
    owner::send(&open, out, until).unwrap();
    owner::drain(&open, until).unwrap();
    broker.act("kill", None);
    broker.act("restart", None);
    let next = KafkaLog::open(&settings).unwrap();
    let folded = |log: &KafkaLog| super::super::suite::folded(log, 0);
    assert_eq!(folded(&next)["a"], "committed");
    next.own(0).unwrap();
    assert_eq!(next.read_position(0).unwrap(), 0);
    next.commit(&transaction("later")).unwrap();
    assert!(open.commit_transaction(Duration::from_secs(10)).is_err(), "fenced");
    assert_eq!(folded(&next)["a"], "later");
    assert_eq!(folded(&KafkaLog::open(&settings).unwrap())["a"], "later");
    // The owner of the first log was fenced as well, and comes back when it is told to.
    assert!(matches!(log.commit(&transaction("too late")), Err(LogError::Fenced { partition: 0 })));
    log.own(0).unwrap();
    log.commit(&transaction("again")).unwrap();
    assert_eq!(folded(&next)["a"], "again");
}
