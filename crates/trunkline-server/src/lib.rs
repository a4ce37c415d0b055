//! **Server**: sessions for psql and drivers, over PostgreSQL's protocol 3.0 and 3.2.
//!
//! ```text
//!   Listener ──▶ startup: TLS, user, password ──▶ Connection ──▶ trunkline_query::Session
//!                                                     │
//!       message (what clients send)  reply (what they receive)  rows, copy_out
//! ```
//!
//! A connection has a thread. It reads a message, lets the session execute it, and sends the rows while
//! they are computed: one buffer of 64 KiB, and no more rows until the client has taken it. If the client
//! goes away while a statement runs, the thread of the network notices that, and cancels the statement.
//!
//! What statements mean is not known here. The directory's roles are data: every client is the one
//! operator, and privileges aren't enforced.

#![forbid(unsafe_code)]

mod authentication;
mod cancel_keys;
mod client_ends;
mod connection;
mod copy_out;
mod error;
mod extended;
mod io;
mod listener;
mod lock_file;
mod message;
mod password_file;
mod reply;
mod rows;
mod scram;
mod secret_file;
mod server;
mod session_thread;
mod shared;
mod simple;
mod socket;
mod startup;
mod startup_packet;
mod tls;

pub use error::ServerError;
pub use password_file::PasswordFile;
pub use server::{Server, Stopper};
pub use shared::ServerOptions;
pub use tls::TlsIdentity;
