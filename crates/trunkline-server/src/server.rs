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
use crate::client_ends::ClientEnds;
use crate::error::ServerError;
use crate::listener::LocalSocket;
use crate::scram::Users;
use crate::shared::{ServerOptions, Shared};
use crate::startup::{Accepted, serve};
use crate::tls::TlsIdentity;

/// How long a stop waits for sessions that don't end, such as those whose statement doesn't notice it.
const STOP_TIME: Duration = Duration::from_secs(5);

/// The most connections that are starting, for each session that there may be, as in PostgreSQL. Cancel
/// requests, and clients that are refused, are among them.
const STARTING_FACTOR: usize = 2;

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
            ends: ClientEnds::new().map_err(ServerError::ClientEnds)?,
            places: Arc::new(Semaphore::new(options.max_connections)),
            starting: Arc::new(Semaphore::new(
                options.max_connections.saturating_mul(STARTING_FACTOR),
            )),
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

    /// What the operator should know about the options, although the server works.
    pub fn warnings(&self) -> Vec<String> {
        let reason = self.shared.users.unbound_reason().into_iter();
        reason.map(|reason| format!("channel binding is not available: {reason}")).collect()
    }

    /// Serves clients until the server is stopped and all sessions have ended. Returns how many
    /// connections had to be cut off, because they hadn't ended in time.
    ///
    /// Each session has one of the threads for blocking work of the runtime `statements`, so there must be
    /// more of them than sessions. The other threads of that runtime execute the tasks of statements. It
    /// must not be the one that runs this: cancel requests and the ends of clients must be noticed while
    /// statements keep its threads busy.
    pub async fn run(self, statements: Handle) -> usize {
        let Self { shared, socket, listeners } = self;
        let mut connections = JoinSet::new();
        let mut stopping = shared.stopping.subscribe();
        let ends = shared.ends.clone();
        let mut ends = std::pin::pin!(async move { ends.run().await });
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => break,
                accepted = accept(socket.as_ref(), &listeners) => accepted,
                Some(_ended) = connections.join_next() => continue,
                // A server that doesn't notice the ends of clients can't go on.
                _failed = &mut ends => break,
            };
            let Some(accepted) = accepted else {
                // Out of file descriptors, most likely. Some may be closed soon.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            // Beyond the limit, the connection is just closed.
            let Ok(starting) = Arc::clone(&shared.starting).try_acquire_owned() else { continue };
            connections.spawn(serve(Arc::clone(&shared), accepted, starting, statements.clone()));
        }
        // No new clients find the socket.
        drop((socket, listeners));
        shared.keys.terminate_all();
        let ended = async {
            tokio::select! {
                () = async { while connections.join_next().await.is_some() {} } => {}
                _failed = &mut ends => {}
            }
        };
        if tokio::time::timeout(STOP_TIME, ended).await.is_ok() {
            return 0;
        }
        let left = connections.len();
        connections.shutdown().await;
        left
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
            // A client whose machine has gone is noticed, if only after hours.
            let _set = rustix::net::sockopt::set_socket_keepalive(&stream, true);
            Some(Accepted::Tcp(stream, address))
        }
    }
}

/// Whether a directory is the data directory or inside it.
fn is_inside(directory: &Path, data: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(directory).starts_with(real(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_looks_after_tcp_clients() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let _client = tokio::net::TcpStream::connect(address).await.unwrap();
            let accepted = accept(None, &[listener]).await;
            let Some(Accepted::Tcp(stream, _)) = accepted else { panic!("a connection") };
            assert!(rustix::net::sockopt::socket_keepalive(&stream).unwrap());
            assert!(stream.nodelay().unwrap());
        });
    }
}
