//! Why a server doesn't start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server doesn't start. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A directory for the socket would be inside the cluster, which is never written.
    #[error("the socket directory {} is inside the data directory; choose another one", .0.display())]
    SocketInCluster(PathBuf),
    /// Another server has the socket.
    #[error("another server listens on {}; choose another port or socket directory", .0.display())]
    SocketInUse(PathBuf),
    /// The socket can't be created.
    #[error("cannot create the socket {}: {error}", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The lock file of the socket can't be used.
    #[error("cannot use the lock file {}: {error}", path.display())]
    LockFile {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The address can't be listened on.
    #[error("cannot listen on {address}: {error}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The ends of clients couldn't be noticed.
    #[error("cannot create an epoll instance: {0}; allow more open files")]
    ClientEnds(io::Error),
    /// TCP without passwords.
    #[error(
        "cannot listen on {0} without a password file, because every user of the network could read the directory"
    )]
    NoPasswords(SocketAddr),
    /// TCP without encryption to other machines.
    #[error("cannot listen on {0} without a TLS certificate, because it isn't a loopback address")]
    NoTls(SocketAddr),
    /// The password file can't be read.
    #[error("cannot read the password file {}: {reason}", path.display())]
    PasswordFile {
        /// Its path.
        path: PathBuf,
        /// Why, with the line.
        reason: String,
    },
    /// The private key can't be used.
    #[error("cannot use the private key {}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The certificate can't be used.
    #[error("cannot use the TLS certificate {}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}
