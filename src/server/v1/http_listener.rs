//! Connections: each takes a permit, has a time limit for its headers, and ends gracefully.
//!
//! In: an address and routes. Out: a thread that serves them until it is asked to end. Then it accepts no connections,
//! gives requests that have begun some seconds to end, and cuts off the rest.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, thread::JoinHandle, time::Duration};

use axum::Router;
use futures_util::future::{Either, select};
use hyper::{
    Method, Request,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::JoinError,
};
use tokio_rustls::TlsAcceptor;

use super::connection_limit::{ConnectionLimit, HttpConnection};
use crate::ServeError;

/// The time in which a request's headers must arrive; an idle connection ends after it.
const HEADERS: Duration = Duration::from_secs(15);
/// Largest headers.
const HEADER_BYTES: usize = 64 << 10;
/// The longest handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long requests that have begun may still take once the listener is asked to end.
const DRAIN: Duration = Duration::from_secs(10);
/// Connections that wait to be accepted.
const BACKLOG: u32 = 4_096;
/// The pause after a connection could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running listener; it ends when it is dropped.
pub(crate) struct HttpListener {
    /// Its address.
    pub(crate) address: SocketAddr,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Listens on an address, and serves the routes that `routes` makes for it, over TLS if `tls` is given. At most
/// `connections` are open at once. `key` is the name of the setting, for errors.
///
/// # Errors
/// [`ServeError::Listen`] if the address is taken, wrong or not an address of this machine.
pub(crate) fn listen(
    key: &'static str,
    listen: &str,
    tls: Option<TlsAcceptor>,
    connections: usize,
    routes: impl FnOnce(SocketAddr) -> Router,
) -> Result<HttpListener, ServeError> {
    let failed = |e: io::Error| ServeError::cannot_listen(key, listen, &e);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let listener = {
        let _runtime = runtime.enter();
        bind(listen).map_err(failed)?
    };
    let address = listener.local_addr().map_err(failed)?;
    let (router, (stop, stopped)) = (routes(address), watch::channel(()));
    let serving = move || {
        runtime.block_on(async move {
            serve(listener, tls, router, ConnectionLimit::of(connections), stopped).await;
        });
        // Blocking calls that still run are not waited for.
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name("http-v1".to_owned()).spawn(serving).map_err(failed)?;
    Ok(HttpListener { address, stop: Some(stop), thread: Some(thread) })
}

/// Binds an address, with a queue for a burst of connections that are not accepted yet.
fn bind(listen: &str) -> io::Result<TcpListener> {
    let address: SocketAddr = listen.parse().map_err(io::Error::other)?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart need not wait until the previous run's connections are closed.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl HttpListener {
    /// Tells the thread to accept no more connections, and to end once the requests that have begun are answered.
    pub(super) fn end(&mut self) {
        self.stop = None;
    }
}

impl Drop for HttpListener {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Serves until the other end of `stopped` is dropped.
async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    places: Arc<ConnectionLimit>,
    stopped: watch::Receiver<()>,
) {
    let mut ended = stopped.clone();
    let mut stop = pin!(async move { while ended.changed().await.is_ok() {} });
    loop {
        let next = pin!(async {
            // Accepts before it takes a permit, so that a connection gives way only if another client waits.
            let accepted = listener.accept().await;
            (places.take().await, accepted)
        });
        let (place, accepted) = match select(next, &mut stop).await {
            Either::Left((next, _)) => next,
            Either::Right(_) => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // So that small responses are sent at once.
        drop(stream.set_nodelay(true));
        let (router, stopped, tls) = (router.clone(), stopped.clone(), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => serve_connection(stream, router, &place.connection, stopped).await,
                // A client that fails the TLS handshake gets no answer.
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                        serve_connection(stream, router, &place.connection, stopped).await;
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    drop(tokio::time::timeout(DRAIN, places.all_free()).await);
}

/// Answers the requests of one connection until it ends, has to give way, or the other end of `stopped` is
/// dropped.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    here: &Arc<HttpConnection>,
    mut stopped: watch::Receiver<()>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request: Request<Incoming>| {
        let (busy, deletes) = (here.begin(), request.method() == Method::DELETE);
        let answering = router.call(request);
        // Hyper drops a request whose client has left, even before it is polled; a deletion is carried out all the
        // same.
        let answering = if deletes { Either::Left(tokio::spawn(answering)) } else { Either::Right(answering) };
        async move {
            let Ok(answer) = match answering {
                Either::Left(task) => task.await?,
                Either::Right(answering) => answering.await,
            };
            Ok::<_, JoinError>(answer.map(|body| busy.until_read(body)))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let stop = pin!(async move {
        let stop = pin!(async { while stopped.changed().await.is_ok() {} });
        matches!(select(pin!(here.ended()), stop).await, Either::Left(_))
    });
    if let Either::Right((gives_way, _)) = select(&mut connection, stop).await {
        // A graceful shutdown would wait for the rest of the headers.
        if gives_way && here.is_unused() {
            return;
        }
        connection.as_mut().graceful_shutdown();
        drop(tokio::time::timeout(DRAIN, connection).await);
    }
}
