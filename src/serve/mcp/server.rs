//! The protocol's requests, on `rmcp`.
//!
//! In: requests of a client, in either revision of the protocol. Out: the tools and their results. What
//! a tool cannot do is a result that says so, which the model reads; only a tool that does not exist is
//! an error of the protocol, which the model does not. A call that its client cancels is not continued.

use std::{pin::pin, sync::Arc};

use futures_util::future::{Either, select};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};

use super::{calls::Calls, tools::ToolName};

/// What a client tells its model about this server.
const INSTRUCTIONS: &str = "Long-term memory. Before you answer anything that may depend on earlier conversations, call \
recall with the question; if it says that nothing supports the question, say that you do not know. Store what is worth \
keeping with remember, in the words that were used.";

/// A server of the tools. Its clones share the memory.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) calls: Arc<Calls>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("ripplemem", env!("CARGO_PKG_VERSION")).with_title("RippleMem"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = ToolName::ALL.into_iter().filter(|tool| self.calls.offers(*tool));
        Ok(ListToolsResult::with_all_items(offered.map(ToolName::tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = ToolName::ALL.into_iter().find(|tool| tool.as_str() == request.name && self.calls.offers(*tool));
        let Some(tool) = tool else {
            let why = if self.calls.read_only { "; this server is read-only" } else { "" };
            return Err(ErrorData::invalid_params(format!("unknown tool: {}{why}", request.name), None));
        };
        let cancellation = self.calls.cancellation();
        let (calls, until) = (Arc::clone(&self.calls), cancellation.clone());
        let arguments = request.arguments.unwrap_or_default();
        let called = tokio::task::spawn_blocking(move || calls.call(tool, arguments, until));
        let called = match select(called, pin!(context.ct.cancelled())).await {
            Either::Left((called, _)) => called,
            Either::Right((_, called)) => {
                cancellation.cancel();
                called.await
            }
        };
        let failed = |why: String| CallToolResult::error(vec![ContentBlock::text(why)]);
        let result = match called {
            Ok(Ok(result)) => {
                let mut given = CallToolResult::success(vec![ContentBlock::text(result.text)]);
                given.structured_content = Some(result.structured);
                given
            }
            Ok(Err(error)) => failed(error.to_string()),
            Err(_) => failed(format!("{} panicked; this is a defect, please report it", tool.as_str())),
        };
        Ok(result.into())
    }
}
