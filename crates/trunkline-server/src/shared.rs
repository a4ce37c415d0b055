//! What all connections of a server share, and what it is started with.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use trunkline_query::Instance;

use crate::cancel_keys::CancelKeys;
use crate::client_ends::ClientEnds;
use crate::password_file::PasswordFile;
use crate::scram::Users;
use crate::tls::TlsIdentity;

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where the unix socket is created; `None` for no socket.
    pub socket_directory: Option<PathBuf>,
    /// The port, which is also part of the socket's name.
    pub port: u16,
    /// TCP addresses without their port.
    pub addresses: Vec<std::net::IpAddr>,
    /// The users of TCP connections.
    pub passwords: Option<PasswordFile>,
    /// The certificate, without which nothing is encrypted.
    pub tls: Option<TlsIdentity>,
    /// How many sessions there may be.
    pub max_connections: usize,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) instance: Arc<Instance>,
    pub(crate) options: ServerOptions,
    pub(crate) users: Users,
    pub(crate) keys: CancelKeys,
    pub(crate) ends: ClientEnds,
    /// Places of sessions.
    pub(crate) places: Arc<Semaphore>,
    /// Places of connections that have no session yet.
    pub(crate) starting: Arc<Semaphore>,
    pub(crate) stopping: watch::Sender<bool>,
}
