//! The memory that a command works on: opened here, or reached in the process that has it open.
//!
//! In: a pipeline with an embedded log. Out: its service, or the address of the process that holds the
//! directory's lock and serves it. A holder that serves nothing is the error that the lock gives.

use std::time::Duration;

use anyhow::{Context, Result};
use ripplemem::{
    config::Pipeline,
    log::{LogError, Written},
    model::Bank,
    pipeline::{PipelineError, Service},
    serve::{
        HttpAddress, address_of,
        api::{Problem, Status},
    },
};
use serde::{Serialize, de::DeserializeOwned};

use super::{open_memory::open_memory, output::say, service_request::exchange};

/// Timeout of a request; the longest that the service waits itself.
const TIMEOUT: Duration = Duration::from_secs(660);

/// Opened here, or reached elsewhere.
pub(crate) enum Memory {
    Here(Box<Service>),
    There(Reached),
}

/// A process that serves the directory.
pub(crate) struct Reached {
    address: String,
    token: Option<String>,
}

/// Opens the memory, or reaches the process that has it open.
pub(crate) fn open_or_reach(pipeline: &Pipeline) -> Result<Memory> {
    let error = match open_memory(pipeline) {
        Ok(service) => return Ok(Memory::Here(Box::new(service))),
        Err(error) => error,
    };
    let Some(PipelineError::Log(LogError::InUse { directory, holder })) = error.downcast_ref() else {
        return Err(error);
    };
    match address_of(directory, holder) {
        Some(HttpAddress { address, token }) => {
            say(&format!("{holder} has {} open; asking it at http://{address}", directory.display()));
            Ok(Memory::There(Reached { address, token }))
        }
        None => Err(error),
    }
}

impl Reached {
    pub(crate) fn post<R: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<R> {
        self.call("POST", path, &serde_json::to_string(body)?)
    }

    pub(crate) fn get<R: DeserializeOwned>(&self, path: &str) -> Result<R> {
        self.call("GET", path, "")
    }

    pub(crate) fn delete<R: DeserializeOwned>(&self, path: &str) -> Result<R> {
        self.call("DELETE", path, "")
    }

    pub(crate) fn status(&self) -> Result<Status> {
        self.get("/v1/status")
    }

    /// The last turn of a bank's partition that is durable now; an answer after it reflects them all.
    pub(crate) fn end_of(&self, bank: &Bank) -> Result<Option<String>> {
        let status = self.status()?;
        let end = Written::parse(&status.after, status.partitions).and_then(|end| end.of(bank));
        Ok(end.map(|(partition, next)| format!("{partition}:{}", next - 1)))
    }

    fn call<R: DeserializeOwned>(&self, method: &str, path: &str, body: &str) -> Result<R> {
        let url = format!("http://{}{path}", self.address);
        let (status, body) = exchange(method, &url, self.token.as_deref(), body, TIMEOUT)?;
        if status == 200 {
            return serde_json::from_str(&body).with_context(|| format!("{url}: an answer of another version"));
        }
        match serde_json::from_str::<Problem>(&body) {
            Ok(problem) => anyhow::bail!("{}", problem.detail),
            Err(_) => anyhow::bail!("{url}: status {status}: {body}"),
        }
    }
}
