//! Clusters created with a real server. What `trunkline` reads from their files must be what the server
//! returned before it was stopped.
//!
//! ```text
//!   Server::start() ── sql ──▶ answers ── stop() ──▶ data directory ── trunkline ──▶ the same?
//! ```
//!
//! These tests need an installed PostgreSQL and, if run as root, another user to run it. Otherwise they
//! print `skipped:` and the reason, or fail if `CI=true`. They use Debian's version 15 and the servers
//! that `cargo xtask fixtures` fetches (16, 17, 18). `TRUNKLINE_SERVERS` names others: directories with
//! `initdb`, `pg_ctl` and `postgres`, separated by colons.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod compound;
mod history;
mod server;
mod values;

mod amcheck;
mod catalogs;
mod copies;
mod differential;
mod names;
mod oddities;
mod starts;
