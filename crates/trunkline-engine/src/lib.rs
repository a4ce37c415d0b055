//! trunkline-engine: a PostgreSQL storage engine to embed.
//!
//! PostgreSQL reads and writes its pages through a shared buffer pool, asynchronous I/O and
//! read-ahead. This crate provides the same machinery as a library, without a server and without
//! SQL. It can read data directories of PostgreSQL 15 to 19, but it never writes to them. It can
//! also create and change relations of its own, which use the same page format.
//!
//! # Example
//!
//! ```no_run
//! use trunkline_engine::{Engine, settings::Settings};
//!
//! let engine = Engine::open(&Settings::default())?;
//! let cluster = engine.cluster("/var/lib/postgresql/18/main")?;
//! let accounts = cluster.database("bench")?.relation("public.pgbench_accounts")?;
//! let mut session = engine.session()?;
//!
//! // One page: pinned in the pool, then locked.
//! let pin = accounts.read(&mut session, 7)?;
//! let page = session.read_lock(pin.page())?;
//! println!("{:02x?}", &page[..24]);
//! drop(page);
//!
//! // All visible rows, with many reads in flight.
//! let mut scan = accounts.scan(&session)?;
//! while let Some(page) = scan.next_page(&mut session)? {
//!     for row in page.rows() {
//!         println!("{}", row?.tid);
//!     }
//! }
//!
//! // Write every dirty page and fsync the files.
//! engine.checkpoint(&mut session)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! There are four programs in the `examples` folder: they read a page, stream a table, read rows,
//! and run a checkpoint.
//!
//! # Concepts
//!
//! - An [`Engine`] owns everything that sessions share: the I/O instance, the buffer pool and the
//!   open-file table. There is no global state, so you can have several independent engines in one
//!   process.
//! - A **session** ([`pool::Backend`]) issues I/O, holds pins and waits, like a PostgreSQL backend.
//!   It can only be used by one thread at a time.
//! - A **pin** ([`pool::Pin`]) keeps a page in its buffer. To access the bytes of the page, you
//!   also need its **content lock**, either shared ([`pool::Page`]) or exclusive
//!   ([`pool::PageMut`]). As in PostgreSQL, a page must be pinned before it can be locked, and you
//!   may hold a pin much longer than a lock.
//! - A [`Cluster`] is a data directory. Its catalog maps names to relations
//!   ([`OpenDatabase::relation`]). A [`storage::Relation`] is one fork of a relation, identified by
//!   number.
//! - Errors about a file include a [`Location`]: path, block and line pointer.
//!
//! # Where it differs from PostgreSQL
//!
//! - Sessions are threads rather than processes. This means that everything PostgreSQL keeps in
//!   shared memory is just ordinary memory for us. File descriptors belong to the whole process, so
//!   any thread can complete the I/O of any session.
//! - Only the relations in an [`Engine::writable_storage`] can be changed, and those changes aren't
//!   WAL-logged yet (see [`log`]).
//! - Catalogs are read only once, when a database is opened. We don't need any cache invalidation,
//!   because a data directory doesn't change while its server is stopped.
//!
//! # Reference
//!
//! In reading order; each module uses only those above it:
//!
//! | | |
//! |---|---|
//! | **Files** | |
//! | [`settings`] | settings with PostgreSQL's names, units and messages |
//! | [`log_files`] | segments, timelines and archives of a write-ahead log |
//! | [`replay`] | reading crashed, copied and backed-up directories through their log |
//! | [`datadir`] | opening a data directory safely, and listing its files |
//! | [`storage`] | relations as forks and segment files; open files; pending fsyncs |
//! | [`log`] | the interface to the write-ahead log: how far it is durable |
//! | **Pages** | |
//! | [`pool`] | the shared buffer pool: pins, content locks, clock sweep, access strategies |
//! | [`read_stream`] | block numbers in, pinned pages out, with read-ahead |
//! | [`read_timer`] | how long reads take, for planners |
//! | [`write_stream`] | dirty pages in, combined writes in flight |
//! | [`checkpoint`] | checkpoints, the checkpointer and the background writer |
//! | **Rows** | |
//! | [`transactions`] | commit log and multixacts: which transactions committed |
//! | [`btree`] | searching and walking B-tree indexes |
//! | [`heap`] | heap scans, visible rows, TOASTed values |
//! | [`index_scan`] | rows through an index: in order, from the index alone, by bitmap, by many keys |
//! | [`catalog`] | databases, schemas, relations, columns, types and indexes |
//! | **Jobs** | |
//! | [`job`] | worker threads, progress and cancellation |
//! | [`seq_scan`] | parallel sequential scans through the pool |
//! | [`file_scan`] | scans of whole files that bypass the pool |
//! | [`copy`] | rows in the text format of `COPY` |
//! | [`verify`] | checksums, heap and index verification |
//! | [`prewarm`] | loading relations into the pool or the page cache |
//! | **Front door** | |
//! | [`engine`] | [`Engine`], [`Cluster`], [`OpenRelation`] |
//!
//! The layer below this one is `trunkline-aio`, which deals with files and memory but knows nothing
//! about pages. `trunkline-format` decodes the bytes of pages and tuples, but doesn't do any I/O.

// `unsafe` is allowed in only one file, `pool/frame.rs`, which tidy enforces.
#![deny(unsafe_code)]
#![cfg_attr(loom, expect(dead_code, reason = "only the lock-free pieces are modelled"))]

// Under loom, we only build the lock-free parts of the pool. Everything else needs files and
// threads, which `trunkline-aio` doesn't provide under loom.
cfg_if::cfg_if! {
    if #[cfg(loom)] {
        #[path = "pool/loom.rs"]
        mod pool;
        #[path = "log_writer/loom.rs"]
        mod log_writer;
    } else {
        mod location;
        pub mod settings;
        pub mod time_zone;
        mod small_file;
        pub mod new_cluster;
        pub mod scratch_file;
        pub mod log_files;
        pub mod replay;
        pub mod datadir;
        pub mod log_check;
        pub mod storage;
        pub mod log;
        pub mod log_writer;
        mod page_reader;
        mod control_writer;
        pub mod recovery;
        mod waiting;
        mod window;
        pub mod pool;
        pub mod read_stream;
        pub mod read_timer;
        pub mod write_stream;
        pub mod checkpoint;
        pub mod transactions;
        pub mod btree;
        pub mod heap;
        pub mod index_scan;
        pub mod catalog;
        pub mod job;
        pub mod seq_scan;
        pub mod file_scan;
        pub mod copy;
        pub mod verify;
        pub mod prewarm;
        pub mod engine;
        pub mod page_change;
        pub mod heap_writer;
        pub mod btree_writer;
        pub mod writable_cluster;
    }
}

#[cfg(not(loom))]
pub use self::{
    engine::{Cluster, Engine, EngineBuilder, EngineError, OpenDatabase, OpenRelation},
    location::Location,
};
