//! Integration tests of the engine, on directories made here and, if `TRUNKLINE_FIXTURE_DIR` is
//! set, on directories made by PostgreSQL.
//!
//! `fake` builds a small data directory, `jobs` starts instances with faults, and `child` runs a
//! test again in a process with other rights or limits.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod btree;
mod catalog;
mod child;
mod copy;
mod crafted;
mod datadir;
mod engine;
mod fake;
mod files;
mod fixtures;
mod heap;
mod heap_fuzz;
mod jobs;
mod pool;
mod prewarm;
mod storage;
mod storage_table;
mod tables;
mod toast;
mod toast_damage;
mod transactions;
mod verify;
mod verify_contents;
mod verify_damage;
mod verify_fixtures;
mod writes;
