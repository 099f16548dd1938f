//! Who may send requests, and where each is noted.
//!
//! In: a request. Out: its caller and its share of what is answered at once, or why it is refused; a line of the
//! audit log once it has ended, also where its client does not wait for the response, since what it asked for is
//! done all the same. What a caller may do is the call's to decide.

use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request},
    http::{StatusCode, header},
};
use tracing::warn;

use crate::{
    access::{AskedRight, Audit, AuditEntry, Caller, Denied, Gate},
    api::Problem,
    quota::{Limits, Quota, Refusals, Share},
};

/// The schemes under which a token is shown: the usual one, and that of Mem0's client.
const SCHEMES: [&str; 2] = ["bearer", "token"];

/// The status that is noted of a request whose client left before the response.
const LEFT: u16 = 499;

/// What is said where too many requests are being answered.
const REFUSALS: Refusals = Refusals {
    all: "requests are being answered already; send it again in a moment",
    of_one: "requests of this token are being answered already; wait for some of them",
};

/// Who may send requests, and where each is noted.
pub(super) struct Door {
    /// Checks tokens, where they are asked for.
    gate: Option<Gate>,
    /// Notes requests, where that is asked for.
    audit: Option<Audit>,
    /// One for each request that is being answered: one token leaves connections to the others.
    answering: Arc<Quota>,
}

impl Door {
    /// `connections` are the most at once.
    pub(super) fn new(gate: Option<Gate>, audit: Option<Audit>, connections: usize) -> Self {
        let limits = Limits { all: connections, of_one: connections / 2 };
        Self { gate, audit, answering: Quota::new(limits, REFUSALS) }
    }

    /// A request of a caller begins; it counts until the share is dropped.
    pub(super) fn enter(&self, caller: &Caller) -> Result<Share, Problem> {
        self.answering.take(caller.name())
    }

    /// Who sends a request.
    pub(super) fn caller(&self, request: &Request) -> Result<Caller, Denied> {
        let Some(gate) = &self.gate else { return Ok(Caller::anybody()) };
        let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' '));
        let known = |scheme: &str| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let token = shown.filter(|(scheme, _)| known(scheme)).map(|(_, token)| token);
        let caller = gate.caller(token);
        if let Some(problem) = gate.take_problem() {
            warn!("{problem}");
        }
        caller
    }

    /// A request begins, which is noted when it ends.
    pub(super) fn begin(self: &Arc<Self>, request: &Request) -> RequestNote {
        let path = request.extensions().get::<MatchedPath>().map_or("unknown path", MatchedPath::as_str);
        let action = self.audit.as_ref().map(|_| format!("{} {path}", request.method()));
        RequestNote { door: Arc::clone(self), action, caller: None, token: None, status: None }
    }
}

/// A request that is noted when this is dropped.
pub(super) struct RequestNote {
    door: Arc<Door>,
    /// The method and the pattern of the path, where requests are noted.
    action: Option<String>,
    /// Who sends it, once that is known.
    caller: Option<Arc<Caller>>,
    /// The name of a token that was refused.
    token: Option<String>,
    /// The status of the response, once there is one.
    status: Option<StatusCode>,
}

impl RequestNote {
    /// It is sent by a caller.
    pub(super) fn is_by(&mut self, caller: &Arc<Caller>) {
        self.caller = Some(Arc::clone(caller));
    }

    /// Its token was refused.
    pub(super) fn is_denied(&mut self, denied: &Denied) {
        self.token = denied.name().map(str::to_owned);
    }

    /// It ends with a response.
    pub(super) fn end(mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for RequestNote {
    fn drop(&mut self) {
        let (Some(audit), Some(action)) = (&self.door.audit, &self.action) else { return };
        let asked = self.caller.as_deref().map(Caller::asked).unwrap_or_default();
        let AskedRight { right, bank, is_denied } = asked;
        let status = match self.status {
            None => LEFT,
            Some(status) if is_denied && status.is_success() => StatusCode::FORBIDDEN.as_u16(),
            Some(status) => status.as_u16(),
        };
        audit.note(&AuditEntry {
            time: jiff::Timestamp::now(),
            token: self.caller.as_deref().and_then(Caller::name).or(self.token.as_deref()),
            action,
            right,
            bank: bank.as_ref(),
            status,
        });
    }
}
