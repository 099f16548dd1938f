//! The protocol's requests, on `rmcp`.
//!
//! In: requests of a client, in either revision of the protocol. Out: the tools and their results, and the
//! banks. What a tool cannot do is a result that says so, which the model reads; only a tool that does not
//! exist is an error of the protocol, which the model does not. A question that its client cancels is not
//! continued.

use std::{pin::pin, sync::Arc};

use axum::http::request::Parts;
use futures_util::future::{Either, select};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Extensions, Implementation,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use tokio::sync::Notify;

use super::{
    calls::{Calls, Offer},
    resources,
    tools::ToolName,
};
use crate::{model::Bank, serve::access::Caller};

/// What a client tells its model about this server.
const INSTRUCTIONS: &str = "Long-term memory. Before you answer anything that may depend on earlier conversations, call \
recall with the question; if it says that nothing supports the question, say that you do not know. Store what is worth \
keeping with remember, in the words that were used.";

/// A server of the tools. Its clones share the memory.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) calls: Arc<Calls>,
    /// None over HTTP: there the request says who calls.
    pub(super) offer: Option<Offer>,
}

impl Server {
    /// What is offered to a request; over HTTP, its address may say more: `?bank=NAME&read_only`.
    fn offer(&self, extensions: &Extensions) -> Result<Offer, ErrorData> {
        if let Some(offer) = &self.offer {
            return Ok(offer.clone());
        }
        let parts = extensions.get::<Parts>();
        let who = parts.and_then(|parts| parts.extensions.get::<Arc<Caller>>()).cloned();
        let unchecked = || ErrorData::internal_error("nobody has checked who sends the request", None);
        let mut offer = Offer { who: who.ok_or_else(unchecked)?, ..Offer::everything() };
        let query = parts.and_then(|parts| parts.uri.query()).unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let wrong = |why: String| ErrorData::invalid_params(format!("the address of the server: {why}"), None);
            match (&*name, &*value) {
                ("bank", bank) => offer.default_bank = Some(Bank::parse(bank).map_err(|e| wrong(e.to_string()))?),
                ("read_only", "" | "true") => offer.read_only = true,
                _ => return Err(wrong(format!("{name}={value} means nothing; it takes bank=NAME and read_only"))),
            }
        }
        Ok(offer)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(Implementation::new("ripplemem", env!("CARGO_PKG_VERSION")).with_title("RippleMem"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offer = self.offer(&context.extensions)?;
        let offered = ToolName::ALL.into_iter().filter(|tool| offer.has(*tool));
        Ok(ListToolsResult::with_all_items(offered.map(ToolName::tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let offer = self.offer(&context.extensions)?;
        let tool = ToolName::ALL.into_iter().find(|tool| tool.as_str() == request.name && offer.has(*tool));
        let Some(tool) = tool else {
            let why = if offer.read_only { "; this server is read-only" } else { "" };
            return Err(ErrorData::invalid_params(format!("unknown tool: {}{why}", request.name), None));
        };
        let cancel = Arc::new(Notify::new());
        let (calls, cancelled) = (Arc::clone(&self.calls), Arc::clone(&cancel));
        let arguments = request.arguments.unwrap_or_default();
        let called = tokio::task::spawn_blocking(move || calls.call(tool, arguments, &offer, &cancelled));
        let called = match select(called, pin!(context.ct.cancelled())).await {
            Either::Left((called, _)) => called,
            Either::Right((_, called)) => {
                cancel.notify_one();
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

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let offer = self.offer(&context.extensions)?;
        let cursor = request.and_then(|request| request.cursor);
        self.beside(move |calls| {
            let banks = calls.banks(&offer.who).map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
            Ok(resources::list(&banks, cursor.as_deref()))
        })
        .await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let offer = self.offer(&context.extensions)?;
        Ok(self.beside(move |calls| resources::read(calls, &offer.who, &request.uri)).await?.into())
    }
}

impl Server {
    /// Does blocking work beside the runtime's thread.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Calls) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let calls = Arc::clone(&self.calls);
        let panicked = |_| ErrorData::internal_error("the request panicked; this is a defect, please report it", None);
        tokio::task::spawn_blocking(move || work(&calls)).await.map_err(panicked)?
    }
}
