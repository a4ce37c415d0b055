//! trunkline's storage engine: relations, buffer pool and read streams, and later log and recovery,
//! on top of the I/O core.
//!
//! `trunkline-aio` knows file descriptors and memory, `trunkline-format` knows PostgreSQL's bytes;
//! this crate joins the two. Its modules, in reading order:
//!
//! - [`settings`]: what a user may tune, under PostgreSQL's names and with its units and messages;
//! - [`datadir`]: opening a PostgreSQL data directory read-only, refusing what is not safe to read,
//!   and listing every relation file in it;
//! - [`storage`]: relations as forks of segments, and the table of open files;
//! - [`log`]: up to where the write-ahead log is durable;
//! - [`pool`]: pages that everybody shares, read through I/O handles;
//! - [`read_stream`]: block numbers in, pinned pages out, with look-ahead;
//! - [`write_stream`]: changed pages in, combined writes in flight;
//! - [`checkpoint`]: checkpoints, and the two threads that write before anybody has to;
//! - [`job`]: background jobs: worker threads, progress, cancellation;
//! - [`seq_scan`]: parallel sequential scans of a table through the pool;
//! - [`file_scan`]: raw scans of relation files, around the pool;
//! - [`transactions`]: which transactions committed: the commit log and multixacts of a cluster;
//! - [`btree`]: searching and walking B-tree indexes through the pool;
//! - [`heap`]: the rows of a table through the pool, and their TOASTed values;
//! - [`catalog`]: what a cluster holds: databases, schemas, relations, columns, types, indexes;
//! - [`copy`]: rows as `COPY` prints them;
//! - [`verify`]: checking every page of a directory;
//! - [`prewarm`]: relations into the pool or into the operating system's cache.
//!
//! Nothing in this crate ever writes into a PostgreSQL data directory.
// One file has a right to it (`pool/frame.rs`); tidy keeps it the only one.
#![deny(unsafe_code)]
#![cfg_attr(loom, expect(dead_code, reason = "only the lock-free pieces are modelled"))]

#[cfg(not(loom))]
mod location;

#[cfg(not(loom))]
pub use self::location::Location;

#[cfg(not(loom))]
pub mod settings;

#[cfg(not(loom))]
pub mod datadir;

#[cfg(not(loom))]
pub mod storage;

#[cfg(not(loom))]
pub mod log;

#[cfg(not(loom))]
pub mod pool;

/// The pool's lock-free pieces, and their models.
#[cfg(loom)]
#[path = "pool/loom.rs"]
mod pool;

#[cfg(not(loom))]
mod waiting;

#[cfg(not(loom))]
mod window;

#[cfg(not(loom))]
pub mod read_stream;

#[cfg(not(loom))]
pub mod write_stream;

#[cfg(not(loom))]
pub mod checkpoint;

#[cfg(not(loom))]
pub mod job;

#[cfg(not(loom))]
pub mod seq_scan;

#[cfg(not(loom))]
pub mod file_scan;

#[cfg(not(loom))]
pub mod transactions;

#[cfg(not(loom))]
pub mod btree;

#[cfg(not(loom))]
pub mod heap;

#[cfg(not(loom))]
pub mod catalog;

#[cfg(not(loom))]
pub mod copy;

#[cfg(not(loom))]
pub mod verify;

#[cfg(not(loom))]
pub mod prewarm;

#[cfg(not(loom))]
pub mod engine;

#[cfg(not(loom))]
pub use self::engine::{Cluster, Engine, EngineBuilder, EngineError, OpenDatabase, OpenRelation};
