//! Clusters that a test makes with a real server: what the server says of them before it is stopped
//! is what we read from their files afterwards.
//!
//! ```text
//!   Server::start() ── sql ──▶ answers ── stop() ──▶ data directory ── trunkline ──▶ the same?
//! ```
//!
//! These tests want an installed PostgreSQL, and another user to run it as if this is root. Without,
//! they say `skipped:` and why, or fail if `CI=true`. They run on Debian's 15 and on those that
//! `cargo xtask fixtures` fetches (16, 17, 18), or on those that `TRUNKLINE_SERVERS` names: directories
//! with `initdb`, `pg_ctl` and `postgres`, with colons between them.
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
