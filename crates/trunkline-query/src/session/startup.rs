//! What a session is opened with.

use trunkline_sql::catalog::Addresses;

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
    /// Both ends of the connection; `None` for a local socket, or without a client.
    pub addresses: Option<Addresses>,
}
