//! The server: what it listens on, how many clients it has, how it stops.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use trunkline_query::Instance;

use crate::cancel_keys::CancelKeys;
use crate::error::ServerError;
use crate::listener::LocalSocket;
use crate::scram::Users;
use crate::shared::{ServerOptions, Shared};
use crate::startup::{Accepted, serve};
use crate::tls::TlsIdentity;

/// How long a stop waits for sessions that don't end, such as those whose client takes nothing.
const STOP_TIME: Duration = Duration::from_secs(5);

/// Connections beyond the limit are accepted, to send the client an error, but no more than this many
/// at a time.
const REFUSALS: usize = 16;

/// A server that listens.
pub struct Server {
    shared: Arc<Shared>,
    socket: Option<LocalSocket>,
    listeners: Vec<TcpListener>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Stops a server, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Ends all sessions. [`Server::run`] then returns.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Creates the socket and listens on the addresses. This must be called in a runtime of tokio.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub async fn bind(
        instance: Arc<Instance>,
        options: ServerOptions,
    ) -> Result<Self, ServerError> {
        let data = instance.cluster().dir().path().to_owned();
        let mut socket = None;
        if let Some(directory) = &options.socket_directory {
            if is_inside(directory, &data) {
                return Err(ServerError::SocketInCluster(directory.clone()));
            }
            socket = Some(LocalSocket::bind(directory, options.port, &data)?);
        }
        let mut listeners = Vec::new();
        for ip in &options.addresses {
            let address = SocketAddr::new(*ip, options.port);
            if options.passwords.is_none() {
                return Err(ServerError::NoPasswords(address));
            }
            if !ip.is_loopback() && options.tls.is_none() {
                return Err(ServerError::NoTls(address));
            }
            let listener = TcpListener::bind(address).await;
            listeners.push(listener.map_err(|error| ServerError::Address { address, error })?);
        }
        let shared = Shared {
            instance,
            users: Users::new(
                options.passwords.clone().unwrap_or_default(),
                options.tls.as_ref().map(TlsIdentity::pem),
            ),
            keys: CancelKeys::default(),
            places: Semaphore::new(options.max_connections),
            stopping: watch::Sender::new(false),
            options,
        };
        Ok(Self { shared: Arc::new(shared), socket, listeners })
    }

    /// The path of the unix socket.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_ref().map(LocalSocket::path)
    }

    /// The TCP addresses. If the port of the options is 0, the system has chosen theirs.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Stops this server.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.shared.stopping.clone())
    }

    /// Serves clients until the server is stopped and all sessions have ended.
    ///
    /// Sessions are tasks of the runtime `statements`, which must not be the one that runs this: cancel
    /// requests and the ends of clients must be noticed while statements keep its threads busy.
    pub async fn run(self, statements: Handle) {
        let Self { shared, socket, listeners } = self;
        let mut connections = JoinSet::new();
        let mut stopping = shared.stopping.subscribe();
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => break,
                accepted = accept(socket.as_ref(), &listeners) => accepted,
                Some(_ended) = connections.join_next() => continue,
            };
            let Some(accepted) = accepted else {
                // Out of file descriptors, most likely. Some may be closed soon.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let (shared, refusals) = (Arc::clone(&shared), Arc::clone(&refusals));
            let statements = statements.clone();
            connections.spawn(async move {
                match shared.places.try_acquire() {
                    Ok(_place) => serve(Arc::clone(&shared), accepted, true, statements).await,
                    Err(_full) => {
                        let Ok(_one) = refusals.try_acquire() else { return };
                        serve(Arc::clone(&shared), accepted, false, statements).await;
                    }
                }
            });
        }
        // No new clients find the socket.
        drop((socket, listeners));
        shared.keys.terminate_all();
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_TIME, ended).await.is_err() {
            connections.shutdown().await;
        }
    }
}

/// The next connection; `None` if it can't be accepted.
async fn accept(socket: Option<&LocalSocket>, listeners: &[TcpListener]) -> Option<Accepted> {
    let local = async {
        match socket {
            Some(socket) => socket.listener.accept().await,
            None => std::future::pending().await,
        }
    };
    let remote = std::future::poll_fn(|context| {
        for listener in listeners {
            if let std::task::Poll::Ready(accepted) = listener.poll_accept(context) {
                return std::task::Poll::Ready(accepted);
            }
        }
        std::task::Poll::Pending
    });
    tokio::select! {
        accepted = local => accepted.ok().map(|(stream, _)| Accepted::Unix(stream)),
        accepted = remote => {
            let (stream, address) = accepted.ok()?;
            // Messages are collected here, so the kernel need not.
            let _set = stream.set_nodelay(true);
            Some(Accepted::Tcp(stream, address))
        }
    }
}

/// Whether a directory is the data directory or inside it.
fn is_inside(directory: &Path, data: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(directory).starts_with(real(data))
}
