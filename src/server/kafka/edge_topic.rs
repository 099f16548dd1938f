//! The graph's edges as a compacted topic.
//!
//! In: the changes of each complete epoch. Out: a record for each edge, a null for each removed one.
//! After a start, the topic is compared with the memory: edges that were removed while no service ran get a null, and
//! missing ones are written.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;
use rdkafka::producer::BaseProducer;

use super::{error::ServeError, service_state::ServiceState};
use logs::{
    KafkaLog, Log, LogError,
    kafka::{
        client::{KafkaClientState, drop_in_background},
        partition_reader::PartitionReader,
        transactional_producer::{OutgoingRecord, drain, send},
    },
    partition_of,
};
use memory::index::{EdgeChanges, GraphEdge};
use replica::Replica;
use types::{
    backoff::Backoff,
    model::{EdgeRecord, SCHEMA_VERSION},
};

/// The pauses before a failed write is retried.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));

/// One record to write: its partition, key and value.
struct EdgeTopicRecord {
    partition: u32,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

/// Publishes until `stopping`.
pub(super) fn publish(
    log: &KafkaLog,
    replica: &Replica,
    state: &ServiceState,
    changes: &Receiver<EdgeChanges>,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let cluster = log.cluster();
    let topic = cluster.topic("edges");
    let watch = KafkaClientState::default();
    let make = || -> Result<BaseProducer<KafkaClientState>, LogError> {
        let made = cluster.producer().create_with_context(watch.clone());
        made.map_err(|e| cluster.failed(&watch, "making a producer of edges", &e))
    };
    let (mut producer, mut pauses) = (make()?, RETRY);
    let mut write = |changes: Vec<EdgeTopicRecord>| -> Result<(), ServeError> {
        while !stopping.load(Ordering::Relaxed) {
            let until = Instant::now() + cluster.timeout();
            drop(watch.take_deliveries());
            let sent = changes.iter().try_for_each(|change| {
                let out = OutgoingRecord {
                    topic: &topic,
                    partition: Some(change.partition),
                    key: Some(&change.key),
                    value: change.value.as_deref(),
                    headers: None,
                };
                send(&producer, out, until)
            });
            let arrived = sent.and_then(|()| drain(&producer, until));
            match arrived.err().or(watch.take_deliveries().failed) {
                None => {
                    state.metrics.edges.inc_by(changes.len() as u64);
                    pauses.reset();
                    return Ok(());
                }
                Some(error) => {
                    let failure = cluster.failed(&watch, "writing edges", &error);
                    if matches!(failure, LogError::Cluster { retriable: false, .. }) {
                        return Err(failure.into());
                    }
                    std::thread::sleep(pauses.jittered());
                    drop_in_background(std::mem::replace(&mut producer, make()?));
                }
            }
        }
        Ok(())
    };

    // Removals first: an edge whose weight changed is removed and added under one key.
    let take = |net: &mut BTreeMap<Vec<u8>, EdgeTopicRecord>, received: EdgeChanges| {
        for (edge, added) in received.removed.iter().map(|e| (e, false)).chain(received.added.iter().map(|e| (e, true)))
        {
            if let Some(change) = change(log, replica, edge, added) {
                net.insert(change.key.clone(), change);
            }
        }
    };
    let mut graph = BTreeMap::new();
    while !state.loaded.load(Ordering::Relaxed) {
        if stopping.load(Ordering::Relaxed) {
            return Ok(());
        }
        changes.recv_timeout(Duration::from_millis(20)).into_iter().for_each(|received| take(&mut graph, received));
    }
    changes.try_iter().for_each(|received| take(&mut graph, received));
    write(differences(log, &topic, graph)?)?;
    while !stopping.load(Ordering::Relaxed) {
        let Ok(first) = changes.recv_timeout(Duration::from_millis(100)) else { continue };
        let mut net = BTreeMap::new();
        std::iter::once(first).chain(changes.try_iter()).for_each(|received| take(&mut net, received));
        write(net.into_values().collect())?;
    }
    Ok(())
}

/// The record of an edge; `None` if the bank's name is not known, which does not happen for a live edge.
fn change(log: &KafkaLog, replica: &Replica, edge: &GraphEdge, added: bool) -> Option<EdgeTopicRecord> {
    let bank = replica.bank(edge.bank)?;
    let partition = partition_of(&bank, log.partitions());
    let (a, b, weight) = (edge.a, edge.b, edge.weight.as_f64());
    let record = EdgeRecord { schema: SCHEMA_VERSION, bank, channel: edge.channel, a, b, weight };
    let value = if added { Some(serde_json::to_vec(&record).ok()?) } else { None };
    Some(EdgeTopicRecord { partition, key: record.key(), value })
}

/// The records that make the topic equal to the graph.
fn differences(
    log: &KafkaLog,
    topic: &str,
    graph: BTreeMap<Vec<u8>, EdgeTopicRecord>,
) -> Result<Vec<EdgeTopicRecord>, ServeError> {
    let mut wanted: BTreeMap<Vec<u8>, EdgeTopicRecord> = graph.into_iter().filter(|(_, c)| c.value.is_some()).collect();
    let mut changes = Vec::new();
    for partition in 0..log.partitions() {
        let mut reader = PartitionReader::open(log.cluster(), topic, partition, false)?;
        let mut from = reader.span(log.cluster())?.0;
        let mut there: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        loop {
            let raw = reader.read(log.cluster(), from, 1_024)?;
            let Some(last) = raw.last() else { break };
            from = last.record.offset + 1;
            for raw in raw {
                match raw.record.value {
                    Some(value) => drop(there.insert(raw.record.key, value)),
                    None => drop(there.remove(&raw.record.key)),
                }
            }
        }
        for (key, value) in there {
            match wanted.get(&key) {
                Some(change) if change.value.as_ref() == Some(&value) => drop(wanted.remove(&key)),
                Some(_) => {}
                None => changes.push(EdgeTopicRecord { partition, key, value: None }),
            }
        }
    }
    changes.extend(wanted.into_values());
    Ok(changes)
}
