//! What is sent to a page of another origin, where `http.origins` names it.
//!
//! In: a request, and the origins of the settings. Out: the answer to a preflight, and the headers with which a browser
//! shows a response to such a page (the Fetch standard, CORS). No cookie takes part: a page shows a token, as any client
//! does. Whether the request may be made at all is decided by `allowed_hosts`.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};

use crate::allowed_hosts::AllowedHosts;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static("Authorization, Content-Type, Last-Event-ID");
const EXPOSED: HeaderValue = HeaderValue::from_static("Location, Retry-After, Server-Timing");
/// For how many seconds a browser need not ask again.
const SECONDS: HeaderValue = HeaderValue::from_static("600");

/// The origin of a page that the settings name; `None` for a request of any other.
pub(super) fn named_origin(hosts: &AllowedHosts, request: &Request) -> Option<HeaderValue> {
    let origin = request.headers().get(header::ORIGIN)?;
    hosts.names_origin(origin.to_str().ok()?).then(|| origin.clone())
}

/// The answer to a browser that asks, before it sends a request, whether it may. It shows no token.
pub(super) fn preflight_response(request: &Request) -> Option<Response> {
    let is_preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    is_preflight.then(|| {
        let headers = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
            (header::ACCESS_CONTROL_MAX_AGE, SECONDS),
        ];
        (StatusCode::NO_CONTENT, headers).into_response()
    })
}

/// Lets the browser show a response to a page of this origin.
pub(super) fn show_to_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}
