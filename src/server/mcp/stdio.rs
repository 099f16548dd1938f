//! A server on standard input and output.
//!
//! In: a pipeline, and the messages of one client. Out: the answers, one per line, and nothing else on
//! standard output; log lines go to standard error. The server answers the client's first messages while
//! the memory is still opening. When the client closes standard input, or at a stop, the server ends and
//! releases the memory.

use crate::log_events;
use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use rmcp::{ServiceExt, service::ServerInitializeError, transport::io::stdio_pipes};
use tokio::sync::Notify;

use super::{
    lazy_memory::{AccessHandle, DirectoryRelease, LazyMemory},
    mcp_server::{ClientNotifiers, McpServer},
    memory_access::McpMemoryAccess,
    stdio_pipes,
    tool_call_error::ToolCallError,
    tool_calls::{ClientScope, ToolCalls},
};
use crate::{MemoryHttpClient, ServeError, address_of, served_memory::ServedMemory, service_state::ServiceState};
use logs::LogError;
use models::llm::LlmClient;
use pipeline::PipelineError;
use types::{
    config::{LogKind, Pipeline},
    model::Bank,
};

/// How long the last answers, and then blocking work, may take after the end.
const LAST_CALLS: Duration = Duration::from_secs(2);
/// The address if the pipeline names none. Other processes with the same directory find it there.
const LISTEN: &str = "127.0.0.1:0";
/// How many times the address of the process that has the directory open is looked up, and the pause in between.
const MAX_CHECKS: usize = 50;
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How a server of tools is started.
pub struct McpOptions {
    /// The pipeline whose memory the tools use.
    pub pipeline: Pipeline,
    /// The bank of calls that name no bank.
    pub bank: Option<Bank>,
    /// Leaves out the tools that change the memory.
    pub read_only: bool,
}

/// Why the server could not begin.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The log is on Kafka.
    #[error("log.kind is \"kafka\": the tools use a memory in a directory; name a pipeline file with an embedded log")]
    Kafka,
    /// The system refused a thread or the standard streams.
    #[error("the tool server cannot start: {0}; raise the system's limits, or stop other processes")]
    System(#[from] std::io::Error),
    /// The first message is not a message of the protocol.
    #[error(
        "the client's first message is not a valid Model Context Protocol message: {0}; this command is meant to be started by a client (docs/mcp.md)"
    )]
    Protocol(String),
}

/// Serves the client on standard input until the client closes it, or until `stop`.
///
/// # Errors
/// [`McpError`]. A memory that does not open is not an error here: the tools report it.
pub fn serve_stdio(options: McpOptions, stop: &Notify) -> Result<(), McpError> {
    let McpOptions { pipeline, bank, read_only } = options;
    if pipeline.log.kind == LogKind::Kafka {
        return Err(McpError::Kafka);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let calls = Arc::new(ToolCalls {
        answer_time: Duration::from_secs(pipeline.llm.timeout_seconds),
        language_model: pipeline.llm.is_set().then(|| pipeline.llm.model.clone()),
        memory: LazyMemory::new(move || {
            open(&pipeline).inspect_err(|problem| log_events::tools_failed(&problem.to_string()))
        }),
    });
    let opening = Arc::clone(&calls);
    runtime.spawn(async move { drop(opening.memory.get().await) });
    let offer = ClientScope { default_bank: bank, read_only, ..ClientScope::everything() };
    let clients = ClientNotifiers::one(&calls, &offer);
    let server = McpServer::new(Arc::clone(&calls), Some(offer), clients);
    let served = runtime.block_on(async {
        let (input, output) = stdio_pipes();
        let (reads, writes, moving) = stdio_pipes::bounded_pipes(input, output);
        let moving = tokio::spawn(moving);
        let serving = async {
            let served = match server.serve((reads, writes)).await {
                Ok(running) => {
                    // It ends with the input. A handler's panic was already answered with an error.
                    drop(running.waiting().await);
                    Ok(())
                }
                Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(McpError::Protocol(error.to_string())),
            };
            // Lets the last answers reach the client, but does not wait for a client that never reads.
            drop(tokio::time::timeout(LAST_CALLS, moving).await);
            served
        };
        match select(pin!(serving), pin!(stop.notified())).await {
            Either::Left((served, _)) => served,
            Either::Right(_) => Ok(()),
        }
    });
    // If standard input is not a pipe, a read from it cannot be interrupted.
    runtime.shutdown_timeout(LAST_CALLS);
    calls.memory.close();
    served
}

/// Repeats a lookup for some seconds: a process that has just taken the lock has not written its address yet.
fn retry_briefly<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..MAX_CHECKS {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    look()
}

/// Opens the memory, or reaches the process that has it open.
fn open(pipeline: &Pipeline) -> Result<AccessHandle, ToolCallError> {
    let failed = |error: &dyn std::fmt::Display| ToolCallError::Refused(error.to_string());
    let listen = if pipeline.http.listen.is_empty() { LISTEN } else { &pipeline.http.listen };
    let state = Arc::new(ServiceState::new(pipeline, Arc::default(), false));
    let (access, served) = match ServedMemory::open(pipeline, listen, &state, &mut |_| {}) {
        Ok(served) => (McpMemoryAccess::Here(Arc::clone(served.api())), Some(served)),
        Err(ServeError::Pipeline(PipelineError::Log(LogError::InUse { directory, holder }))) => {
            let Some(address) = retry_briefly(|| address_of(&directory, &holder)) else {
                return Err(failed(&LogError::InUse { directory, holder }));
            };
            let (directory, address_there) = (directory.display(), &address.address);
            log_events::directory_held(directory, address_there, &holder);
            // This process does not see deletions, so it must not cache responses.
            let llm = pipeline.llm.is_set().then(|| LlmClient::open(&pipeline.llm, None)).transpose();
            let llm = llm.map_err(|e| failed(&e))?;
            (McpMemoryAccess::There { reached: Arc::new(MemoryHttpClient::new(address)), llm }, None)
        }
        Err(error) => return Err(failed(&error)),
    };
    let release = served.map(|served| -> DirectoryRelease {
        Box::new(move || served.close().unwrap_or_else(|problem| log_events::tools_failed(&problem.to_string())))
    });
    Ok(AccessHandle { access, release })
}
