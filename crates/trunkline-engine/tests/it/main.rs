//! Integration tests for the engine. They create their own data directories. If
//! `TRUNKLINE_FIXTURE_DIR` is set, they also use data directories created by PostgreSQL.
//!
//! `fake` builds a minimal data directory, `jobs` starts I/O instances that inject faults, and
//! `child` reruns a test in a process with different privileges or limits.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod btree;
mod btree_writer;
mod btree_writer_refusals;
mod catalog;
mod child;
mod copy;
mod crafted;
mod damaged_copy;
mod datadir;
mod engine;
mod expression_catalogs;
mod fake;
mod files;
mod fixtures;
mod heap;
mod heap_fuzz;
mod heap_writes;
mod index_cancel;
mod index_damage;
mod index_reads;
mod index_scan;
mod jobs;
mod multixacts;
mod polled;
mod pool;
mod prepared;
mod prewarm;
mod replayed_cluster;
mod replayed_damage;
mod replayed_prewarm;
mod storage;
mod storage_table;
mod tables;
mod toast;
mod toast_damage;
mod transactions;
mod tree_check;
mod verify;
mod verify_contents;
mod verify_damage;
mod verify_fixtures;
mod verify_index_damage;
mod writable_cluster;
mod writes;
