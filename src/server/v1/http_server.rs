//! Starts the listener of a service.
//!
//! In: a pipeline, an address, and the pipeline's memory if this process has one. Out: the memory's calls, and the
//! running listener. It serves the calls, the same calls as tools for agents, and the operations of the service; with
//! TLS and tokens if they are set.

use crate::log_events;
use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::{Router, middleware::from_fn};

use super::{
    auth_layer::AuthLayer,
    connection_limit::{connection_limit, second_listener_limit},
    http_listener::{HttpListener, listen},
    request_body::BodyReader,
    router::{RequestChecks, routes},
};
use crate::mcp;
use crate::{
    ServeError,
    access::{AuditLog, TokenAuthenticator, TokenSecret},
    allowed_hosts::AllowedHosts,
    api::{AnswerGenerator, MemoryApi, ServiceOperations, ShardHolders},
    http_address, mem0, public_routes,
    quota::QuotaLimits,
    service_state::ServiceState,
    tls,
};
use logs::Log;
use models::llm::LlmClient;
use pipeline::PipelineError;
use ripplemem::Memory;
use types::config::{HttpSettings, Pipeline};

/// The address for the commands on this machine, if `http.listen` uses TLS or is not a loopback address.
const BESIDE: &str = "127.0.0.1:0";
/// The setting with the address.
const KEY: &str = "http.listen";

/// A service that is served over HTTP until this is dropped.
pub(crate) struct HttpServer {
    /// The calls of the memory, if this process has one.
    pub(crate) api: Option<Arc<MemoryApi>>,
    listening: HttpListener,
    /// A second listener for the commands on this machine, if they cannot use the first.
    beside: Option<HttpListener>,
    /// The directory where those commands find the address and the token.
    directory: PathBuf,
    /// The URL at which clients on other machines reach the service.
    #[cfg_attr(not(feature = "kafka"), expect(dead_code, reason = "only instances on Kafka name it to others"))]
    pub(crate) advertised: String,
}

impl Drop for HttpServer {
    /// Tells both listeners to end. They wait for responses that have begun, so every wait is ended too.
    fn drop(&mut self) {
        // The address is withdrawn before the listener ends.
        http_address::remove(&self.directory);
        self.listening.end();
        self.beside.iter_mut().for_each(HttpListener::end);
        if let Some(api) = &self.api {
            api.end_waits();
        }
    }
}

/// What is served.
pub(crate) struct ServerParts {
    pub(crate) state: Arc<ServiceState>,
    pub(crate) log: Arc<dyn Log>,
    /// `None` if this process has no memory: then only its operations are served.
    pub(crate) memory: Option<Arc<Memory>>,
    /// Which instances hold the other banks, if instances divide the memory.
    pub(crate) holders: Option<Arc<ShardHolders>>,
}

/// Serves at an address until the result is dropped, and writes the address for the commands with the same directory.
///
/// # Errors
/// [`ServeError`]: a problem with the address, the certificate, the token file, the audit file or the language
/// model.
pub(crate) fn start(pipeline: &Pipeline, address: &str, parts: ServerParts) -> Result<HttpServer, ServeError> {
    let ServerParts { state, log, memory, holders } = parts;
    let places = connection_limit();
    let wanted = QuotaLimits { all: pipeline.http.subscriptions, of_one: pipeline.http.subscriptions_of_token };
    let limits = wanted.within(places);
    if limits != wanted {
        let QuotaLimits { all, of_one } = limits;
        log_events::file_limit_low(places, all, of_one);
    }
    let deadline = Duration::from_millis(pipeline.serve.deadline_ms);
    let operations = Arc::new(ServiceOperations::new(Arc::clone(&state), log, memory.clone(), deadline));
    let bodies = BodyReader::default();
    let is_mem0 = pipeline.http.mem0;
    let api = match memory {
        None => None,
        Some(memory) => {
            let llm = pipeline
                .llm
                .is_set()
                .then(|| LlmClient::open(&pipeline.llm, pipeline.response_directory()))
                .transpose();
            let llm = llm.map_err(PipelineError::from)?;
            let answers = AnswerGenerator::new(llm, Duration::from_secs(pipeline.llm.timeout_seconds));
            Some(Arc::new(MemoryApi::new(memory, deadline, holders, limits, answers, Arc::clone(&operations))))
        }
    };
    let more = api.as_ref().map_or_else(Router::new, |api| {
        let tools = mcp::routes(api, pipeline, bodies.clone());
        if is_mem0 { tools.merge(mem0::routes(api, bodies.clone())) } else { tools }
    });
    let HttpSettings { certificate, key, origins, .. } = &pipeline.http;
    let hosts = &pipeline.http.names();
    let local = pipeline.access.token_file.as_ref().map(|_| TokenSecret::generate()).transpose()?;
    let gate = pipeline.access.token_file.as_ref().zip(local.as_ref());
    let gate = gate.map(|(path, local)| TokenAuthenticator::open(path, local)).transpose()?;
    if gate.as_ref().is_some_and(TokenAuthenticator::is_empty) {
        log_events::no_token_valid();
    }
    let audit = pipeline.access.audit_file.as_deref().map(AuditLog::open).transpose()?;
    let door = Arc::new(AuthLayer::new(gate, audit, places));
    let tls = certificate.as_ref().zip(key.as_ref()).map(|(certificate, key)| tls::acceptor(certificate, key));
    let tls = tls.transpose().map_err(ServeError::Tls)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let is_plain = tls.is_none();
    let routes = |address, connections| {
        let hosts = AllowedHosts::of(address, hosts);
        let entrance = RequestChecks::new(hosts.clone().with_origins(origins), Arc::clone(&door), Arc::clone(&state));
        let checked = routes(api.clone(), &operations, entrance, bodies.clone(), more.clone());
        let checked = if is_mem0 { checked.layer(from_fn(mem0::problems_as_json)) } else { checked };
        checked.merge(public_routes::routes(&state, hosts, connections))
    };
    let listening = listen(KEY, address, tls, places, |address| routes(address, places))?;
    // The commands on this machine only use plain HTTP to a loopback address.
    let is_beside = is_plain && listening.address.ip().is_loopback();
    let fewer = second_listener_limit();
    let beside =
        if is_beside { None } else { Some(listen(KEY, BESIDE, None, fewer, |address| routes(address, fewer))?) };
    let directory = pipeline.log.directory.clone();
    let reached = beside.as_ref().unwrap_or(&listening).address;
    http_address::write(&directory, &reached.to_string(), local.as_ref())
        .map_err(|problem| ServeError::Address { directory: directory.clone(), problem })?;
    log_events::listening(listening.address, format!("{scheme}://{}/v1", listening.address));
    let advertised = pipeline.http.advertised(scheme, listening.address);
    Ok(HttpServer { api, listening, beside, directory, advertised })
}
