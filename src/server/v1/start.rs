//! Starts the listener of a memory.
//!
//! In: a pipeline, an address and the pipeline's memory. Out: the memory's calls, and the running listener,
//! which also gives them to agents as tools; where tokens or TLS are set, behind them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, middleware::from_fn};
use crossbeam_channel::{Receiver, bounded};

use super::{
    body::Bodies,
    door::Door,
    listener::{Listening, listen},
    places::{FEWEST, most},
    routes::routes,
};
use crate::mcp;
use crate::{
    ServeError,
    access::{Audit, Gate, Secret},
    api::{Answers, Api, Holders},
    hosts::Hosts,
    mem0,
    quota::Limits,
    tls,
};
use models::llm::Llm;
use nouns::config::{HttpSettings, Pipeline};
use ripplemem::pipeline::{Memory, PipelineError};

/// Where the commands of this machine reach a service that others reach by TLS or at another address.
const BESIDE: &str = "127.0.0.1:0";
/// Messages for people that wait; further ones are left out.
const MESSAGES: usize = 64;
/// The setting of the address.
const KEY: &str = "http.listen";

/// A memory that is being served, until this is dropped.
pub(crate) struct Serving {
    api: Arc<Api>,
    listening: Listening,
    /// Another listener, for the commands of this machine.
    beside: Option<Listening>,
    /// The token that these commands show, where one is asked for.
    pub(crate) local: Option<Secret>,
    /// Where it is reached, for people.
    pub(crate) url: String,
    /// The URL under which clients reach it from elsewhere.
    #[cfg_attr(not(feature = "kafka"), expect(dead_code, reason = "only instances on Kafka name it to others"))]
    pub(crate) advertised: String,
    messages: Receiver<String>,
}

impl Serving {
    /// The loopback address for the commands of this machine.
    pub(crate) fn beside(&self) -> SocketAddr {
        self.beside.as_ref().unwrap_or(&self.listening).address
    }

    /// Hands on what people should know, such as a file of tokens that cannot be read.
    pub(crate) fn tell(&self, say: impl Fn(&str)) {
        self.messages.try_iter().for_each(|message| say(&message));
    }
}

impl Drop for Serving {
    /// Both listeners end at once. They wait for the responses that have begun, so nothing else may wait.
    fn drop(&mut self) {
        self.listening.end();
        self.beside.iter_mut().for_each(Listening::end);
        self.api.end_waits();
    }
}

/// Serves a memory at an address until the listener is dropped. `open` are routes of another interface that
/// check their requests themselves. `holders` says who holds the other banks, where instances divide the
/// memory.
///
/// # Errors
/// [`ServeError`]: the address, the certificate, the file of tokens or of the audit log, or the language
/// model.
pub(crate) fn start(
    pipeline: &Pipeline,
    address: &str,
    memory: Arc<Memory>,
    open: Router,
    holders: Option<Arc<Holders>>,
) -> Result<(Arc<Api>, Serving), ServeError> {
    let (say, messages) = bounded(MESSAGES);
    let places = most();
    let wanted = Limits { all: pipeline.http.subscriptions, of_one: pipeline.http.subscriptions_of_token };
    let limits = wanted.within(places);
    if limits != wanted {
        let Limits { all, of_one } = limits;
        let cut = format!(
            "the limit on open files allows {places} connections, so {all} subscriptions, {of_one} of one token: fewer \
             than http.subscriptions and http.subscriptions_of_token; raise `ulimit -n`, or lower them"
        );
        // The receiver is right here.
        drop(say.try_send(cut));
    }
    let llm = pipeline.llm.is_set().then(|| Llm::open(&pipeline.llm, pipeline.responses())).transpose();
    let llm = llm.map_err(PipelineError::from)?;
    let answers = Answers::new(llm, Duration::from_secs(pipeline.llm.timeout_seconds));
    let deadline = Duration::from_millis(pipeline.serve.deadline_ms);
    let api = Arc::new(Api::new(memory, deadline, holders, limits, answers));
    let bodies = Bodies::default();
    let tools = mcp::routes(&api, pipeline, bodies.clone());
    let is_mem0 = pipeline.http.mem0;
    let more = if is_mem0 { tools.merge(mem0::routes(&api, bodies.clone())) } else { tools };
    let HttpSettings { certificate, key, .. } = &pipeline.http;
    let hosts = &pipeline.http.names();
    let local = pipeline.access.token_file.as_ref().map(|_| Secret::generate()).transpose()?;
    let gate = pipeline.access.token_file.as_ref().zip(local.as_ref());
    let gate = gate.map(|(path, local)| Gate::open(path, local)).transpose()?;
    if gate.as_ref().is_some_and(Gate::is_empty) {
        let empty = "access.token_file holds no valid token: nobody has access until `ripplemem token add` makes one";
        // The receiver is right here.
        drop(say.try_send(empty.to_owned()));
    }
    let told = say.clone();
    // While nobody listens, what has been said is enough.
    let tell = move |problem| drop(told.try_send(format!("the audit log: {problem}")));
    let audit = pipeline.access.audit_file.as_deref().map(|path| Audit::open(path, tell)).transpose()?;
    let door = Arc::new(Door::new(gate, audit, places, say));
    let tls = certificate.as_ref().zip(key.as_ref()).map(|(certificate, key)| tls::acceptor(certificate, key));
    let tls = tls.transpose().map_err(ServeError::Tls)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let is_plain = tls.is_none();
    let routes = |address| {
        let hosts = Hosts::of(address, hosts);
        let checked = routes(Arc::clone(&api), hosts, Arc::clone(&door), bodies.clone(), more.clone());
        let checked = if is_mem0 { checked.layer(from_fn(mem0::problems_as_json)) } else { checked };
        checked.merge(open.clone())
    };
    let listening = listen(KEY, address, tls, places, routes)?;
    // The commands of this machine neither know the certificate nor another address.
    let is_beside = is_plain && listening.address.ip().is_loopback();
    let beside = if is_beside { None } else { Some(listen(KEY, BESIDE, None, FEWEST, routes)?) };
    let url = format!("{scheme}://{}/v1", listening.address);
    let advertised = pipeline.http.advertised(scheme, listening.address);
    Ok((Arc::clone(&api), Serving { api, listening, beside, local, url, advertised, messages }))
}
