//! Clusters created with a real server. What `trunkline` reads from their files must equal what the
//! server returned before it was stopped.
//!
//! ```text
//!   Server::start() ── sql ──▶ answers ── stop() ──▶ data directory ── trunkline ──▶ the same?
//! ```
//!
//! These tests need an installed PostgreSQL and, if run as root, another user to run it. Otherwise
//! they print `skipped:` and the reason, or fail if `CI=true`. They use Debian's version 15 and the
//! servers fetched by `cargo xtask fixtures` (16, 17, 18). To use other servers, set
//! `TRUNKLINE_SERVERS` to a colon-separated list of directories that contain `initdb`, `pg_ctl` and
//! `postgres`.
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
