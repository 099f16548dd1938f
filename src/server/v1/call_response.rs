//! The result of a call, as a response.
//!
//! In: a value or a problem. Out: JSON, or `application/problem+json` with its status and when to try again.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::api::ApiProblem;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The URL of the instance that holds the bank of a request.
#[derive(Clone)]
pub(super) struct HolderUrl(pub(super) String);

/// The result of a call, as a response.
pub(super) enum CallResponse<T> {
    Json(T),
    Problem(ApiProblem),
}

impl From<ApiProblem> for CallResponse<()> {
    fn from(problem: ApiProblem) -> Self {
        Self::Problem(problem)
    }
}

impl<T: Serialize> IntoResponse for CallResponse<T> {
    fn into_response(self) -> Response {
        let holder = if let Self::Problem(problem) = &self { problem.holder.clone() } else { None };
        let (status, kind, body) = match self {
            Self::Json(value) => (200, JSON, serde_json::to_vec(&value)),
            Self::Problem(problem) => (problem.status, PROBLEM, serde_json::to_vec(&problem)),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let Ok(body) = body else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if let Some(holder) = holder {
            response.extensions_mut().insert(HolderUrl(holder));
        }
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
