//! Who may send requests, and where each is noted.
//!
//! In: a request. Out: its caller, or why it is refused; a line of the audit log once it has ended. What a
//! caller may do is the call's to decide.

use axum::{
    extract::{MatchedPath, Request},
    http::{StatusCode, header},
};
use crossbeam_channel::Sender;

use crate::serve::access::{Audit, AuditEntry, Caller, Denied, Gate};

/// The schemes under which a token is shown: the usual one, and that of Mem0's client.
const SCHEMES: [&str; 2] = ["bearer", "token"];

/// Who may send requests, and where each is noted.
pub(super) struct Door {
    /// Checks tokens, where they are asked for.
    gate: Option<Gate>,
    /// Notes requests, where that is asked for.
    audit: Option<Audit>,
    /// Takes messages for people.
    say: Sender<String>,
}

impl Door {
    pub(super) fn new(gate: Option<Gate>, audit: Option<Audit>, say: Sender<String>) -> Self {
        Self { gate, audit, say }
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
            self.tell(problem);
        }
        caller
    }

    /// The method and the pattern of the path, where requests are noted.
    pub(super) fn action(&self, request: &Request) -> Option<String> {
        let path = request.extensions().get::<MatchedPath>().map_or("unknown path", MatchedPath::as_str);
        self.audit.as_ref().map(|_| format!("{} {path}", request.method()))
    }

    /// Notes a request that has ended.
    pub(super) fn note(&self, action: Option<&str>, caller: Option<&Caller>, status: StatusCode) {
        let (Some(audit), Some(action)) = (&self.audit, action) else { return };
        let (right, bank) = caller.map(Caller::asked).unwrap_or_default();
        audit.note(&AuditEntry {
            time: jiff::Timestamp::now(),
            token: caller.and_then(Caller::name),
            action,
            right,
            bank: bank.as_ref(),
            status: status.as_u16(),
        });
    }

    fn tell(&self, message: String) {
        // While nobody listens, what has been said is enough.
        drop(self.say.try_send(message));
    }
}
