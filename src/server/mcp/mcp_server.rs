//! The protocol's requests, on `rmcp`.
//!
//! In: requests of a client, in either revision of the protocol. Out: the tools and their results, the banks and
//! questions, and notifications when the evidence of a followed question changed. A tool's failure is a result, because
//! the model reads results. A tool that does not exist, or a wrong address of the server, is an error of the protocol,
//! which the model does not read. A call that its client cancels is not continued.

use std::{
    collections::{BTreeMap, HashMap},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::http::{HeaderMap, request::Parts};
use futures_util::{
    FutureExt as _,
    future::{Either, select},
};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
        Extensions, Implementation, InitializeRequestParams, InitializeResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use tokio::task::{self, Id};

use super::{
    memory_access::McpMemoryAccess,
    resource_follower::FollowedResource,
    resource_notifier::ResourceNotifier,
    resources::{self, ResourceAddress},
    sessions::{McpSessions, SessionStart},
    tool_call_error::ToolCallError,
    tool_calls::{ClientScope, ToolCalls},
    tools::ToolName,
};
use crate::{access::Caller, query_string};
use replica::BankWatchGuard;
use types::{model::Bank, sync};

/// What a client tells its model about this server.
const INSTRUCTIONS: &str = "Long-term memory. Before you answer anything that may depend on earlier conversations, call \
recall with the question. Where `supported` is false, it may still have found the answer: take what a quote plainly \
says, and invent nothing. Store what is worth keeping with remember, in the words that were used.";

/// A server of the tools. Its clones share the memory.
#[derive(Clone)]
pub(super) struct McpServer {
    calls: Arc<ToolCalls>,
    /// `None` over HTTP: there each request has its own caller.
    offer: Option<ClientScope>,
    clients: ClientNotifiers,
    /// For the task of each `subscriptions/listen`: its banks, watched since the acknowledgement.
    acknowledged: Arc<Mutex<HashMap<Id, BankWatches>>>,
}

/// Watched banks, each with the offset before which answers reflected everything when the watch began.
type BankWatches = BTreeMap<Bank, (BankWatchGuard, u64)>;

/// The clients of revision 2025-11-25, which follow each question with its own request.
#[derive(Clone)]
pub(super) enum ClientNotifiers {
    /// Over HTTP: one client per session.
    Sessions(Arc<McpSessions>),
    /// On standard input and output.
    One {
        listener: Arc<ResourceNotifier>,
        /// Whether the task that notifies the client was started.
        is_told: Arc<AtomicBool>,
    },
}

impl ClientNotifiers {
    /// The one client on standard input and output.
    pub(super) fn one(calls: &Arc<ToolCalls>, offer: &ClientScope) -> Self {
        Self::One {
            listener: ResourceNotifier::new(Arc::clone(calls), Arc::clone(&offer.who)),
            is_told: Arc::default(),
        }
    }
}

/// Tells the one client what changed, until it is gone.
async fn notify_client(listener: Arc<ResourceNotifier>, client: Peer<RoleServer>) {
    loop {
        let updated = ResourceUpdatedNotificationParam::new(listener.next().await);
        if client.notify_resource_updated(updated).await.is_err() {
            return;
        }
    }
}

impl McpServer {
    /// A server; `offer` is None over HTTP.
    pub(super) fn new(calls: Arc<ToolCalls>, offer: Option<ClientScope>, clients: ClientNotifiers) -> Self {
        Self { calls, offer, clients, acknowledged: Arc::default() }
    }

    /// What a request is offered. Over HTTP, its address may set more: `?bank=NAME&read_only`.
    fn offer(&self, extensions: &Extensions) -> Result<ClientScope, ErrorData> {
        if let Some(offer) = &self.offer {
            return Ok(offer.clone());
        }
        let parts = extensions.get::<Parts>();
        let who = parts.and_then(|parts| parts.extensions.get::<Arc<Caller>>()).cloned();
        let unchecked = || ErrorData::internal_error("nobody has checked who sends the request", None);
        let mut offer = ClientScope { who: who.ok_or_else(unchecked)?, ..ClientScope::everything() };
        let query = parts.and_then(|parts| parts.uri.query()).unwrap_or_default();
        let wrong = |why: String| ErrorData::invalid_params(format!("the address of the server: {why}"), None);
        for (name, value) in query_string::parameters(query).map_err(wrong)? {
            match (&*name, &*value) {
                ("bank", bank) => offer.default_bank = Some(Bank::parse(bank).map_err(|e| wrong(e.to_string()))?),
                ("read_only", "" | "true") => offer.read_only = true,
                _ => return Err(wrong(format!("{name}={value} means nothing; it takes bank=NAME and read_only"))),
            }
        }
        Ok(offer)
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("ripplemem", env!("CARGO_PKG_VERSION")).with_title("RippleMem"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let parts = context.extensions.get::<Parts>();
        if let Some(begun) = parts.and_then(|parts| parts.extensions.get::<SessionStart>()) {
            begun.note();
        }
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offer = self.offer(&context.extensions)?;
        let has_model = self.calls.language_model.is_some();
        let offered = ToolName::ALL.into_iter().filter(|tool| offer.has(*tool) && (has_model || !tool.asks_model()));
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
        let called = AssertUnwindSafe(self.calls.call(tool, request.arguments.unwrap_or_default(), &offer));
        let called = match select(pin!(called.catch_unwind()), pin!(context.ct.cancelled())).await {
            Either::Left((called, _)) => called,
            Either::Right(_) => Ok(Err(ToolCallError::Refused("the call was cancelled; call again".to_owned()))),
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
        let banks = self.calls.banks(&offer.who).await.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
        Ok(resources::list(&banks, cursor.as_deref()))
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
        Ok(resources::read(&self.calls, &offer, &request.uri).await?.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (offer, address) = (self.offer(&context.extensions)?, &request.uri);
        let resource = ResourceAddress::followed(address).map_err(|why| ErrorData::invalid_params(why, None))?;
        let followed = match &self.clients {
            ClientNotifiers::Sessions(sessions) => {
                sessions.follow(&headers(&context.extensions), &offer.who, address, resource).await
            }
            ClientNotifiers::One { listener, is_told } => {
                let followed = listener.follow(address, resource).await;
                if followed.is_ok() && !is_told.swap(true, Ordering::Relaxed) {
                    tokio::spawn(notify_client(Arc::clone(listener), context.peer.clone()));
                }
                followed
            }
        };
        followed.map_err(|why| refused(&why))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let offer = self.offer(&context.extensions)?;
        match &self.clients {
            ClientNotifiers::Sessions(sessions) => {
                sessions.unfollow(&headers(&context.extensions), &offer.who, &request.uri).map_err(|why| refused(&why))
            }
            ClientNotifiers::One { listener, .. } => {
                listener.unfollow(&request.uri);
                Ok(())
            }
        }
    }

    /// Answers a request that `rmcp` cannot parse: the protocol has no such method, or the parameters have the wrong
    /// form.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, .. } = request;
        let first_stateless = ProtocolVersion::V_2026_07_28;
        let version = context.protocol_version();
        let is_stateless = version.is_some_and(|version| version.as_str() >= first_stateless.as_str());
        if has_method(&method, is_stateless) {
            return Err(ErrorData::invalid_params(format!("params of {method}: not in the form that it takes"), None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let addresses = requested.resource_subscriptions.iter().flatten();
        let resources = addresses.filter_map(|address| Some((address, ResourceAddress::followed(address).ok()?)));
        let resources: Vec<(&String, FollowedResource)> = resources.collect();
        // The client may read a resource as soon as this is acknowledged, before the resource is followed.
        if let (Some(task), Some(opened)) = (task::try_id(), self.calls.memory.opened())
            && let McpMemoryAccess::Here(api) = &opened.access
        {
            let watched = resources.iter().map(|(_, of)| (of.bank().clone(), api.watch(of.bank())));
            sync::lock(&self.acknowledged).insert(task, watched.collect());
        }
        Some(
            SubscriptionFilter::builder().resource_subscriptions(resources.iter().map(|(address, _)| *address)).build(),
        )
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let watched = task::try_id().and_then(|task| sync::lock(&self.acknowledged).remove(&task)).unwrap_or_default();
        let offer = self.offer(&context.request_context().extensions)?;
        let listener = ResourceNotifier::new(Arc::clone(&self.calls), offer.who);
        let listening = async {
            for address in context.accepted().resource_subscriptions.iter().flatten() {
                let resource =
                    ResourceAddress::followed(address).map_err(|why| ErrorData::invalid_params(why, None))?;
                let before = watched.get(resource.bank());
                listener.follow(address, resource).await.map_err(|why| refused(&why))?;
                // Since the acknowledgement, the client may have read an older state than the first one here.
                if before.is_none_or(|(bank, read_to)| bank.changed_at() > *read_to) {
                    listener.note_change(address, false);
                }
            }
            drop(watched);
            while !listener.is_idle() {
                if context.sink().notify_resource_updated(listener.next().await).await.is_err() {
                    break;
                }
            }
            Ok(())
        };
        match select(pin!(listening), pin!(context.cancelled())).await {
            Either::Left((listened, _)) => listened,
            Either::Right(_) => Ok(()),
        }
    }
}

/// Whether this server has a method in the client's revision, which may be the stateless one.
fn has_method(method: &str, is_stateless: bool) -> bool {
    match method {
        "tools/list" | "tools/call" | "resources/list" | "resources/templates/list" | "resources/read" => true,
        "initialize" | "ping" | "resources/subscribe" | "resources/unsubscribe" => !is_stateless,
        "server/discover" | "subscriptions/listen" => is_stateless,
        _ => false,
    }
}

/// The headers of a request over HTTP.
fn headers(extensions: &Extensions) -> HeaderMap {
    extensions.get::<Parts>().map(|parts| parts.headers.clone()).unwrap_or_default()
}

/// Why a resource is not followed.
fn refused(why: &ToolCallError) -> ErrorData {
    ErrorData::invalid_params(why.to_string(), None)
}
