//! A topic of a log in a directory that another process of this machine has open.
//!
//! In: the process, and a topic's name, or a bank. Out: the topic's records, or those of the bank, read over HTTP.

use std::path::{Path, PathBuf};

use super::{MemoryHttpClient, MemoryHttpError, api::RecordPage};
use logs::{LogError, RawRecord, TopicReader, TopicView, partition_of};
use ripplemem::BankReader;
use types::model::Bank;

/// A topic of a log that another process has open.
struct HttpTopicReader {
    process: MemoryHttpClient,
    directory: PathBuf,
    topic: String,
    /// The name that a view has which opens the directory itself.
    name: String,
    partitions: u32,
}

/// A view of `turns`, `memory` or `dead-letters` of the log in `directory`, which `process` has open.
///
/// # Errors
/// [`LogError::Reached`].
pub fn open_http_topic(process: MemoryHttpClient, directory: &Path, topic: &str) -> Result<TopicView, LogError> {
    Ok(TopicView::over(Box::new(HttpTopicReader::open(process, directory, topic)?)))
}

/// The memory records of a bank of a log that another process has open.
pub struct HttpBankReader {
    memory: HttpTopicReader,
    bank: Bank,
    partition: u32,
}

/// The memory records of a bank of the log in `directory`, which `process` has open.
///
/// # Errors
/// [`LogError::Reached`].
pub fn open_http_bank(process: MemoryHttpClient, directory: &Path, bank: &Bank) -> Result<HttpBankReader, LogError> {
    let memory = HttpTopicReader::open(process, directory, "memory")?;
    let partition = partition_of(bank, memory.partitions);
    Ok(HttpBankReader { memory, bank: bank.clone(), partition })
}

impl BankReader for HttpBankReader {
    fn partition(&self) -> u32 {
        self.partition
    }

    fn live(&mut self) -> Result<Vec<u64>, LogError> {
        let page = self.memory.page(self.partition, &[("bank", Some(self.bank.as_str())), ("limit", Some("0"))])?;
        page.live
            .ok_or_else(|| self.memory.failed("it lists no live records; use one version of the program".to_owned()))
    }

    fn read(&mut self, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError> {
        self.memory.read(self.partition, from, limit)
    }
}

impl HttpTopicReader {
    fn open(process: MemoryHttpClient, directory: &Path, topic: &str) -> Result<Self, LogError> {
        let name = format!("{topic} in {}", directory.display());
        let (directory, topic) = (directory.to_owned(), topic.to_owned());
        let mut reader = Self { process, directory, topic, name, partitions: 1 };
        reader.partitions = reader.page(0, &[("limit", Some("0"))])?.partitions;
        Ok(reader)
    }

    /// A page of the records of a partition.
    fn page(&self, partition: u32, more: &[(&str, Option<&str>)]) -> Result<RecordPage, LogError> {
        let partition = partition.to_string();
        let parameters = [&[("topic", Some(&*self.topic)), ("partition", Some(&*partition))], more].concat();
        self.process
            .get("/v1/admin/records", &parameters)
            .map_err(|error: MemoryHttpError| self.failed(error.to_string()))
    }

    fn failed(&self, problem: String) -> LogError {
        LogError::Reached { directory: self.directory.clone(), problem }
    }
}

impl TopicReader for HttpTopicReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn span(&mut self, partition: u32) -> Result<(u64, u64), LogError> {
        let RecordPage { first, end, .. } = self.page(partition, &[("limit", Some("0"))])?;
        Ok((first, end))
    }

    fn read(&mut self, partition: u32, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError> {
        let (from, limit) = (from.to_string(), limit.to_string());
        let page = self.page(partition, &[("from", Some(&*from)), ("limit", Some(&*limit))])?;
        let bytes = page.records.iter().map(|record| record.bytes());
        bytes.collect::<Result<_, _>>().map_err(|error| self.failed(format!("a record is not in base64: {error}")))
    }

    fn offset_at(&mut self, partition: u32, append_ms: i64) -> Result<u64, LogError> {
        let since = append_ms.to_string();
        Ok(self.page(partition, &[("since_ms", Some(&*since)), ("limit", Some("0"))])?.from)
    }
}
