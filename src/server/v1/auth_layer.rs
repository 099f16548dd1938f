//! Who may send requests, and the audit log of requests.
//!
//! In: a request. Out: its caller and its share of the requests that may be answered at once, or why it is refused; a
//! line of the audit log once it has ended. The line is written even if the client leaves before the response, because
//! a write that has begun is carried out all the same. Each call decides what its caller may do.

use crate::log_events;
use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request},
    http::{StatusCode, header},
};

use crate::{
    access::{AccessDenial, AuditEntry, AuditLog, Caller, CheckedRight, TokenAuthenticator},
    api::ApiProblem,
    quota::{Quota, QuotaLimits, QuotaRefusals, QuotaShare},
};

/// The schemes of an `Authorization` header with a token: the usual scheme, and the scheme of Mem0's client.
const SCHEMES: [&str; 2] = ["bearer", "token"];

/// The status that the audit log has for a request whose client left before the response.
const LEFT: u16 = 499;

/// The messages when too many requests are being answered.
const REFUSALS: QuotaRefusals = QuotaRefusals {
    all: "requests are being answered already; send it again in a moment",
    of_one: "requests of this token are being answered already; wait for some of them",
};

/// Checks tokens, limits requests, and notes them in the audit log.
pub(super) struct AuthLayer {
    /// Checks tokens, if they are required.
    gate: Option<TokenAuthenticator>,
    /// The audit log, if it is set.
    audit: Option<AuditLog>,
    /// One share for each request that is being answered. A token has at most half, so it leaves connections to others.
    answering: Arc<Quota>,
}

impl AuthLayer {
    /// At most `connections` requests are answered at once.
    pub(super) fn new(gate: Option<TokenAuthenticator>, audit: Option<AuditLog>, connections: usize) -> Self {
        let limits = QuotaLimits { all: connections, of_one: connections / 2 };
        Self { gate, audit, answering: Quota::new(limits, REFUSALS) }
    }

    /// Counts a caller's request, until the share is dropped.
    pub(super) fn enter(&self, caller: &Caller) -> Result<QuotaShare, ApiProblem> {
        self.answering.take(caller.name())
    }

    /// Who sends a request.
    pub(super) fn caller(&self, request: &Request) -> Result<Caller, AccessDenial> {
        let Some(gate) = &self.gate else { return Ok(Caller::anybody()) };
        let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' '));
        let known = |scheme: &str| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let token = shown.filter(|(scheme, _)| known(scheme)).map(|(_, token)| token);
        let caller = gate.caller(token);
        if let Some(problem) = gate.take_problem() {
            log_events::request_denied(&problem);
        }
        caller
    }

    /// Begins the audit log's note of a request; it is written when the note is dropped.
    pub(super) fn begin(self: &Arc<Self>, request: &Request) -> AuditNote {
        let path = request.extensions().get::<MatchedPath>().map_or("unknown path", MatchedPath::as_str);
        let action = self.audit.as_ref().map(|_| format!("{} {path}", request.method()));
        AuditNote { door: Arc::clone(self), action, caller: None, token: None, status: None }
    }
}

/// The audit log's note of a request, written when this is dropped.
pub(super) struct AuditNote {
    door: Arc<AuthLayer>,
    /// The method and the route's pattern, if there is an audit log.
    action: Option<String>,
    /// The caller, once it is known.
    caller: Option<Arc<Caller>>,
    /// The name of a token that was refused.
    token: Option<String>,
    /// The status of the response, once there is one.
    status: Option<StatusCode>,
}

impl AuditNote {
    /// Notes who sends the request.
    pub(super) fn note_caller(&mut self, caller: &Arc<Caller>) {
        self.caller = Some(Arc::clone(caller));
    }

    /// Notes the name of the token that was refused.
    pub(super) fn note_denial(&mut self, denied: &AccessDenial) {
        self.token = denied.name().map(str::to_owned);
    }

    /// Ends the request with the status of its response.
    pub(super) fn end(mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for AuditNote {
    fn drop(&mut self) {
        let (Some(audit), Some(action)) = (&self.door.audit, &self.action) else { return };
        let asked = self.caller.as_deref().map(Caller::asked).unwrap_or_default();
        let CheckedRight { right, bank, is_denied } = asked;
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
