//! The public entry point: an engine (an I/O instance, a buffer pool and an open-file table) and
//! the clusters opened in it.
//!
//! Even to read a single page, a program needs an I/O instance, a buffer pool, an open-file table,
//! a data directory and a session. [`Engine::open`] takes the
//! [`Settings`](crate::settings::Settings) and creates everything that sessions share. After that,
//! opening a data directory or a session takes a single call.
//!
//! ```text
//!   Engine                      I/O instance, buffer pool, open files: shared by all sessions
//!     ├── session()             Backend: issues I/O, holds pins, waits; one per thread
//!     └── cluster(dir)          Cluster: a data directory and its catalog
//!           └── database(name)  OpenDatabase: a snapshot of its catalogs
//!                 └── relation(name)   OpenRelation: read a page, stream, scan rows
//! ```
//!
//! ```no_run
//! use trunkline_engine::{Engine, settings::Settings};
//!
//! let engine = Engine::open(&Settings::default())?;
//! let cluster = engine.cluster("/var/lib/postgresql/18/main")?;
//! let accounts = cluster.database("bench")?.relation("public.pgbench_accounts")?;
//! let mut session = engine.session()?;
//!
//! // One page.
//! let pin = accounts.read(&mut session, 7)?;
//! let page = session.read_lock(pin.page())?;
//! println!("page 7 starts with {:02x?}", &page[..8]);
//! drop(page);
//!
//! // All visible rows, with read-ahead.
//! let mut scan = accounts.scan(&session)?;
//! let mut rows = 0;
//! while let Some(page) = scan.next_page(&mut session)? {
//!     rows += page.len();
//! }
//! println!("{rows} rows");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! PostgreSQL data directories are always opened read-only. Relations of our own can be written
//! through [`Engine::writable_storage`], but they can only be addressed by number, because we don't
//! have a catalog for them yet. For anything that isn't a setting, such as a simulated disk or a
//! log, see [`Engine::builder`].
//!
//! **Lifetime.** Sessions, clusters and relations hold references to those parts of the engine that
//! they need, so you can drop them in any order.

mod builder;
mod cluster;
mod error;
mod instance;

pub use self::builder::EngineBuilder;
pub use self::cluster::{Cluster, OpenDatabase, OpenRelation};
pub use self::error::EngineError;
pub use self::instance::Engine;
