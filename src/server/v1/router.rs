//! The routes of `route_table`, behind the checks of every request.
//!
//! In: requests. Out: JSON, events, or a problem if there is no answer. Every request is checked first: its Host, its
//! Origin and its token. Each call decides what its caller may do.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{MatchedPath, Request, State as Shared},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use tracing::Instrument as _;

use super::{
    api_route::{ApiRoute, RouteState},
    auth_layer::AuthLayer,
    call_response::{CallResponse, HolderUrl},
    cross_origin, event_stream,
    openapi::openapi,
    request_body::{BodyReader, SEND_PLAIN},
    response_gzip::gzip_response,
    route_table,
};
use crate::{
    access::AccessDenial,
    allowed_hosts::AllowedHosts,
    api::{ApiProblem, MemoryApi, ProblemCode, ServiceOperations},
    request_trace,
    service_state::ServiceState,
    telemetry::RefusalStatusLabel,
};
use types::trace_parent::TraceParent;

/// A response must begin within this time, whatever the request waits for. Events may follow for longer.
const TIMEOUT: Duration = Duration::from_secs(660);

/// What checks a request before anything else.
#[derive(Clone)]
pub(super) struct RequestChecks {
    hosts: AllowedHosts,
    door: Arc<AuthLayer>,
    state: Arc<ServiceState>,
}

impl RequestChecks {
    pub(super) fn new(hosts: AllowedHosts, door: Arc<AuthLayer>, state: Arc<ServiceState>) -> Self {
        Self { hosts, door, state }
    }
}

/// All routes, and `more` routes of other interfaces, behind the checks. Without `api`, `/v1` has only the operations
/// of the service and the OpenAPI document.
pub(super) fn routes(
    api: Option<Arc<MemoryApi>>,
    operations: &Arc<ServiceOperations>,
    entrance: RequestChecks,
    bodies: BodyReader,
    more: Router,
) -> Router {
    let of_memory = api.map_or_else(Router::new, |calls| {
        with_routes(route_table::memory_routes(), RouteState { calls, bodies: bodies.clone() })
    });
    let of_service =
        with_routes(route_table::service_routes(openapi), RouteState { calls: Arc::clone(operations), bodies });
    Router::new()
        .merge(more.with_state(()))
        .merge(of_memory)
        .merge(of_service)
        .method_not_allowed_fallback(|| async {
            CallResponse::<()>::Problem(ApiProblem::new(ProblemCode::Method, METHODS))
        })
        .fallback(|| async { CallResponse::<()>::Problem(ApiProblem::new(ProblemCode::NotFound, PATHS)) })
        .layer(middleware::from_fn(gzip_response))
        .layer(middleware::from_fn(known_encodings))
        .layer(middleware::from_fn_with_state(entrance, check_request))
}

/// Refuses a request whose `Content-Encoding` is neither `identity` nor gzip.
async fn known_encodings(request: Request, next: Next) -> Response {
    let encodings = request.headers().get_all(header::CONTENT_ENCODING).iter();
    let names = encodings.flat_map(|value| value.to_str().unwrap_or("unreadable").split(',')).map(str::trim);
    let is_known =
        |name: &str| name.is_empty() || ["identity", "gzip", "x-gzip"].iter().any(|k| k.eq_ignore_ascii_case(name));
    let unknown = names.filter(|name| !is_known(name)).map(str::to_owned).next();
    match unknown {
        None => next.run(request).await,
        Some(name) => {
            let detail = format!("content-encoding: a body in {name} is not read; {SEND_PLAIN}");
            CallResponse::<()>::Problem(ApiProblem::new(ProblemCode::MediaType, detail)).into_response()
        }
    }
}

fn with_routes<C: Send + Sync + 'static>(routes: Vec<ApiRoute<C>>, served: RouteState<C>) -> Router {
    let add = |router: Router<RouteState<C>>, route: ApiRoute<C>| router.route(route.entry.path, route.serves);
    routes.into_iter().fold(Router::new(), add).with_state(served)
}

const PATHS: &str = "the paths are in /v1/openapi.json";
const METHODS: &str = "the methods of each path are in /v1/openapi.json";

async fn check_request(Shared(entrance): Shared<RequestChecks>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("unknown path", MatchedPath::as_str);
    let shown = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let trace = shown.and_then(TraceParent::parse);
    let span = request_trace::request_span(request.method().as_str(), path, trace.as_ref());
    let origin = cross_origin::named_origin(&entrance.hosts, &request);
    let mut response =
        request_trace::with_trace(trace, authenticate_and_answer(&entrance, request, next)).instrument(span).await;
    // A browser must not treat remembered text as a script or a page.
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Nor store it: a token may expire, and what was said may be deleted.
    if !event_stream::disable_proxy_buffering(response.headers_mut()) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if let Some(origin) = origin {
        cross_origin::show_to_origin(response.headers_mut(), origin);
    }
    if let status @ (401 | 403 | 429) = response.status().as_u16() {
        entrance.state.metrics.requests_refused.get_or_create(&RefusalStatusLabel { status }).inc();
    }
    response
}

async fn authenticate_and_answer(entrance: &RequestChecks, mut request: Request, next: Next) -> Response {
    let mut noted = entrance.door.begin(&request);
    if let Some(problem) = entrance.hosts.refusal(&request) {
        let response = CallResponse::<()>::Problem(ApiProblem::new(ProblemCode::Forbidden, problem)).into_response();
        noted.end(response.status());
        return response;
    }
    if cross_origin::named_origin(&entrance.hosts, &request).is_some()
        && let Some(response) = cross_origin::preflight_response(&request)
    {
        noted.end(response.status());
        return response;
    }
    let caller = match entrance.door.caller(&request) {
        Ok(caller) => Arc::new(caller),
        Err(denied) => {
            noted.note_denial(&denied);
            let response = denial_response(denied);
            noted.end(response.status());
            return response;
        }
    };
    noted.note_caller(&caller);
    let _share = match entrance.door.enter(&caller) {
        Ok(share) => share,
        Err(problem) => {
            let response = CallResponse::<()>::Problem(problem).into_response();
            noted.end(response.status());
            return response;
        }
    };
    request.extensions_mut().insert(caller);
    let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let mut response = match tokio::time::timeout(TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => CallResponse::<()>::Problem(ApiProblem::new(ProblemCode::Deadline, "the request took too long"))
            .into_response(),
    };
    if let Some(HolderUrl(holder)) = response.extensions().get()
        && let Ok(location) = HeaderValue::from_str(&format!("{}{target}", holder.trim_end_matches('/')))
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    noted.end(response.status());
    response
}

fn denial_response(denied: AccessDenial) -> Response {
    let retry_after = if let AccessDenial::TooMany { retry_after, .. } = &denied { Some(*retry_after) } else { None };
    let mut response = CallResponse::<()>::Problem(denied.into()).into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(after) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs() + 1));
    }
    response
}
