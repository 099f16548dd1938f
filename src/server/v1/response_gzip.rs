//! Packs long answers for clients that read gzip.
//!
//! In: a response. Out: the same; its JSON is in gzip if the client reads that and the JSON is long. Streams are never
//! packed: an event must arrive when it happens.

use std::io::Write;

use axum::{
    body::{Body, HttpBody, to_bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use flate2::{Compression, write::GzEncoder};

/// Shorter answers fit into a few packets as they are.
const MIN_BYTES: u64 = 8_192;

/// Packs the response if it is long JSON and the client reads gzip.
pub(super) async fn gzip_response(request: Request, next: Next) -> Response {
    let is_read = reads_gzip(request.headers());
    let mut response = next.run(request).await;
    let bytes = response.body().size_hint().exact().unwrap_or_default();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_json = kind.and_then(|kind| kind.to_str().ok()).is_some_and(|kind| kind.starts_with("application/json"));
    if !is_json || bytes < MIN_BYTES || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !is_read {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(plain) = to_bytes(body, usize::MAX).await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let packing = tokio::task::spawn_blocking(move || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&plain).and_then(|()| encoder.finish())
    });
    let Ok(Ok(short)) = packing.await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(short))
}

/// Whether the sender of a request reads gzip.
pub(crate) fn reads_gzip(asked: &HeaderMap) -> bool {
    let values = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(is_gzip)
}

/// Whether an entry of `Accept-Encoding` takes gzip. A weight of zero refuses it.
fn is_gzip(entry: &str) -> bool {
    let (name, weight) = entry.split_once(';').unwrap_or((entry, ""));
    let weight = weight.trim().trim_start_matches("q=").trim();
    name.trim().eq_ignore_ascii_case("gzip") && !weight.parse().is_ok_and(|weight: f64| weight == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_of_zero_refuses_gzip() {
        for (entry, takes) in
            [("gzip", true), (" GZIP;q=0.5", true), ("gzip; q=0", false), ("gzip;q=0.000", false), ("br", false)]
        {
            assert_eq!(is_gzip(entry), takes, "{entry}");
        }
    }
}
