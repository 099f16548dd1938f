//! The routes of the page.
//!
//! In: requests, and below which path the page is. Out: its files, packed where the browser reads that, and 304 where
//! it has them; `/` leads there. Who asks under another host's name is refused before.

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header},
    response::{IntoResponse, Redirect},
    routing::get,
};

use super::files::{ConsoleFile, FILES};
use crate::v1::reads_gzip;

/// What the page may do: load and ask what is of this service. It is shown in no other page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' \
                      data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    // Another version of the program has other files under the same names.
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (header::VARY, HeaderValue::from_static("accept-encoding")),
];

/// The page of a service, and the ways to it.
pub(in super::super) fn routes() -> Router {
    page("/console")
}

/// The page below a path, and the ways to it.
pub(super) fn page(path: &str) -> Router {
    let folder = format!("{path}/");
    let to_page = {
        let folder = folder.clone();
        move || {
            let folder = folder.clone();
            async move { Redirect::to(&folder) }
        }
    };
    let routes = Router::new().route("/", get(to_page.clone())).route(path, get(to_page));
    FILES.iter().fold(routes, |routes, file| {
        let path = format!("{folder}{}", file.name);
        routes.route(&path, get(move |headers: HeaderMap| async move { file_response(file, &headers) }))
    })
}

fn file_response(file: &ConsoleFile, asked: &HeaderMap) -> Response<Body> {
    let listed = |name| asked.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
    let is_known = listed(header::IF_NONE_MATCH).any(|tag| {
        let tag = tag.trim();
        tag.strip_prefix("W/").unwrap_or(tag) == file.tag
    });
    let reads_packed = reads_gzip(asked);
    let mut response = match &file.packed {
        _ if is_known => StatusCode::NOT_MODIFIED.into_response(),
        Some(packed) if reads_packed => {
            let packed = Body::from(packed.clone());
            ([(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))], packed).into_response()
        }
        _ => Body::from(file.plain.clone()).into_response(),
    };
    let headers = response.headers_mut();
    headers.extend(HEADERS);
    headers.insert(header::CONTENT_TYPE, file.kind.clone());
    if let Ok(tag) = HeaderValue::from_str(&file.tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
