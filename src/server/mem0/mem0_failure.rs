//! Why a request of Mem0's client fails, in the one form that it reads.
//!
//! In: a problem. Out: a status, and `detail` as `application/json`; the client reads no other type.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::api::ApiProblem;

/// Why a request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mem0Failure {
    pub(super) status: u16,
    pub(super) detail: String,
}

impl Mem0Failure {
    /// The request is wrong.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self { status: 400, detail: detail.into() }
    }

    /// There is no such thing.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self { status: 404, detail: detail.into() }
    }

    /// It cannot be done the same way here.
    pub(super) fn unsupported(what: impl AsRef<str>) -> Self {
        let detail = format!("{}: not offered here; docs/mem0.md says what is, and what to do instead", what.as_ref());
        Self { status: 501, detail }
    }
}

impl From<ApiProblem> for Mem0Failure {
    fn from(problem: ApiProblem) -> Self {
        Self { status: problem.status, detail: problem.detail }
    }
}

impl IntoResponse for Mem0Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::json!({ "detail": self.detail }).to_string();
        let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
