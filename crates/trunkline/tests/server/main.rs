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
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends, also in its helpers"
)]

mod binary;
mod compound;
#[path = "../environment/fuse.rs"]
#[expect(dead_code, reason = "shared with the tests of hostile environments, which need all of it")]
mod fuse;
mod history;
#[path = "../../../trunkline-engine/examples/compare_replay/pages.rs"]
mod pages;
mod server;
#[path = "../../../trunkline-engine/tests/it/tree_check.rs"]
mod tree_check;
mod values;

mod amcheck;
mod backups;
mod bench;
mod calibrate;
mod catalogs;
mod checksums;
mod configuration;
mod copies;
mod crashed_files;
mod damaged_log;
mod differential;
mod extension_types;
mod faulty_log;
mod heap_load;
mod index_amcheck;
mod index_load;
mod killed_writers;
mod load_script;
mod loads;
mod missing;
mod moments;
mod names;
mod new_log;
mod oddities;
mod page_history;
mod patterns;
mod prepared;
mod redo;
mod replay;
mod segment_archive;
mod standby;
mod starts;
mod status_files;
mod timelines;
mod wal;
mod writer_process;
