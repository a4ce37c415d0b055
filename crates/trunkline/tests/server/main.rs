//! Tests with clusters that a real server created. Whatever `trunkline` reads from their files must
//! match what the server returned before it was stopped.
//!
//! ```text
//!   Server::start() ── sql ──▶ answers ── stop() ──▶ data directory ── trunkline ──▶ the same?
//! ```
//!
//! These tests need an installed PostgreSQL and, if they are run as root, another user that can run
//! it. If either is missing, they print `skipped:` and the reason. They use Debian's version 15 and
//! the servers that `cargo xtask fixtures` fetches (16, 17, 18). To test with other servers, set
//! `TRUNKLINE_SERVERS` to a colon-separated list of directories that contain `initdb`, `pg_ctl` and
//! `postgres`.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod binary;
mod compound;
mod history;
mod server;
mod values;

mod amcheck;
mod bench;
mod calibrate;
mod catalogs;
mod checksums;
mod configuration;
mod copies;
mod differential;
mod extension_types;
mod load_script;
mod loads;
mod missing;
mod names;
mod oddities;
mod patterns;
mod starts;
mod status_files;
mod wal;
