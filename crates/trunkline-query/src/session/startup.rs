//! What a session is opened with.

use std::net::SocketAddr;

/// The parameters of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Startup {
    /// The database.
    pub database: String,
    /// The user. It need not be a role of the directory.
    pub user: String,
    /// `application_name`.
    pub application_name: String,
    /// Settings, as names and values.
    pub settings: Vec<(String, String)>,
    /// The client's address; `None` for a local socket, or without a client.
    pub client_address: Option<SocketAddr>,
}
