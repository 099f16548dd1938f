//! Writes records that readers see all at once or not at all.
//!
//! In: records. Out: a transaction, of a producer that no other process has. Readers of its partitions wait until it
//! ends; if this process ends first, for as long as the cluster gives a transaction.

use std::{collections::HashMap, sync::Mutex};

use super::{
    client::KafkaCluster,
    transactional_producer::{CommitOutcome, OutgoingRecord, TransactionalProducer},
};
use crate::{LogError, id_salt};
use types::sync;

/// The producer of groups; `None` until it is used, and after an error.
#[derive(Default)]
pub(super) struct GroupWriter(Mutex<Option<TransactionalProducer>>);

impl GroupWriter {
    /// Writes records in one transaction; returns the last offset of each topic and partition.
    pub(super) fn write<'a>(
        &self,
        cluster: &KafkaCluster,
        records: impl Iterator<Item = OutgoingRecord<'a>>,
    ) -> Result<HashMap<(String, i32), i64>, LogError> {
        let mut writer = sync::lock(&self.0);
        let owner = match writer.take() {
            Some(owner) => owner,
            None => TransactionalProducer::take(cluster, &new_role(cluster)?, 0)?,
        };
        let CommitOutcome { last } = owner.commit(cluster, records)?;
        *writer = Some(owner);
        Ok(last)
    }
}

/// A role that no other process has.
fn new_role(cluster: &KafkaCluster) -> Result<String, LogError> {
    let random = id_salt::random().map_err(|e| LogError::Cluster {
        brokers: cluster.settings.brokers.clone(),
        doing: "naming a writer of groups".to_owned(),
        problem: e.to_string(),
        remedy: "try again",
        retriable: true,
    })?;
    Ok(format!("group.{}", random.to_hex().chars().take(16).collect::<String>()))
}
