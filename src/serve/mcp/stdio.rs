//! A server on standard input and output.
//!
//! In: a pipeline, and the messages of one client. Out: the answers, one a line, and nothing else on
//! standard output; messages for people go to `say`. The client is answered at once; the memory opens
//! meanwhile. It ends when the client closes standard input, or when it is told to stop, and releases
//! the memory.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use rmcp::{ServiceExt, service::ServerInitializeError, transport::io::stdio_pipes};
use tokio::sync::Notify;

use super::{access::MemoryAccess, calls::Calls, local::LocalMemory, opened_memory::OpenedMemory, server::Server};
use crate::{config::Pipeline, model::Bank};

/// How long calls that are in progress may take after the end.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// How a server of tools is started.
pub struct McpOptions {
    /// The pipeline whose memory the tools use.
    pub pipeline: Pipeline,
    /// The bank of calls that name none.
    pub bank: Option<Bank>,
    /// Leaves out the tools that change the memory.
    pub read_only: bool,
    /// Takes messages for people.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Why the server could not begin.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The system refused a thread or the standard streams.
    #[error("no server of tools: {0}; raise the system's limits, or stop other processes")]
    System(#[from] std::io::Error),
    /// The first message was not of the protocol.
    #[error(
        "the client did not begin as the Model Context Protocol says: {0}; let a client start this command (docs/mcp.md)"
    )]
    Protocol(String),
}

/// Serves the client on standard input until it closes it, or until `stop`.
///
/// # Errors
/// [`McpError`]. A memory that does not open is no error here: the tools say why.
pub fn serve_stdio(options: McpOptions, stop: &Notify) -> Result<(), McpError> {
    let McpOptions { pipeline, bank, read_only, say } = options;
    let patience = Duration::from_millis(pipeline.serve.deadline_ms);
    let open = move || -> Result<Arc<dyn MemoryAccess>, _> {
        let opened = LocalMemory::open(&pipeline, &say);
        opened.map(|memory| Arc::new(memory) as Arc<dyn MemoryAccess>).inspect_err(|error| say(&error.to_string()))
    };
    let calls = Arc::new(Calls { memory: OpenedMemory::new(open), default_bank: bank, read_only, patience });
    let opening = Arc::clone(&calls);
    std::thread::Builder::new().name("mcp-open".to_owned()).spawn(move || drop(opening.memory.get()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let serving = async {
            match (Server { calls: Arc::clone(&calls) }).serve(stdio_pipes()).await {
                Ok(running) => {
                    // It ends with the input; a panic of a handler has been answered.
                    drop(running.waiting().await);
                    Ok(())
                }
                Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(McpError::Protocol(error.to_string())),
            }
        };
        match select(pin!(serving), pin!(stop.notified())).await {
            Either::Left((served, _)) => served,
            Either::Right(_) => Ok(()),
        }
    });
    // A read of standard input that is not a pipe cannot be interrupted.
    runtime.shutdown_timeout(LAST_CALLS);
    calls.memory.close();
    served
}
