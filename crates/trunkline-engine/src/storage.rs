//! Storage manager (`smgr.c`, `md.c`): relations as forks cut into segment files of 1 GiB.
//!
//! PostgreSQL keeps each fork of a relation in files named after its relfilenode: `base/5/16384`,
//! `base/5/16384.1`, `base/5/16384_vm`. This module turns a relation, fork and block number into an
//! open file and an offset, extends and truncates forks, and records which segments still need an
//! fsync.
//!
//! A process may have several clusters open, so every cluster has a number, which is part of the
//! buffer tag. In PostgreSQL, a relation locator alone identifies a relation.
//!
//! ```text
//!   Storage ── relation(locator, fork) ──▶ Relation ── locate(block) ──▶ file, offset, blocks left
//!   a cluster   1663/5/16384, vm                          │
//!                                                         ▼
//!                        OpenFiles: a bounded number of open segments, of all clusters together
//!                                                         │ not open
//!                                                         ▼
//!                        FileSystem: the kernel's files, or a simulated disk's
//! ```
//!
//! This module never reads or writes blocks itself: [`Relation::locate`] only returns the block's
//! location, and the caller then starts the I/O through a handle. We open all of a cluster's files
//! in the same mode, direct or buffered. If the file system doesn't support direct I/O, we report
//! an error rather than silently switching modes, because mixing direct and buffered I/O on one
//! file can return stale data.
//!
//! ```no_run
//! # use std::path::Path;
//! # use trunkline_aio::Builder;
//! # use trunkline_engine::datadir::{DataDir, OpenOptions};
//! use trunkline_engine::storage::{OpenFiles, RelationLocator, Storage};
//! use trunkline_format::{Fork, Oid};
//!
//! let aio = Builder::new().start()?;
//! let dir = DataDir::open(Path::new("data"), OpenOptions::default())?;
//! let storage = Storage::of_datadir(&dir, &OpenFiles::kernel(&aio, 1000), false);
//! let locator = RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode: 16384 };
//! let relation = storage.relation(locator, Fork::Main);
//! println!("{} blocks", relation.blocks()?);
//! let located = relation.locate(7)?;
//! println!("block 7 is at byte {} of {}", located.offset, located.file.path().display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cluster;
mod error;
mod file_system;
mod file_table;
mod kernel;
mod locator;
mod open_files;
mod pending_fsyncs;
mod relation;

pub use self::cluster::{Layout, Storage};
pub use self::error::StorageError;
pub use self::file_system::{FileSystem, WritableFiles};
pub use self::kernel::KernelFiles;
pub use self::locator::RelationLocator;
pub use self::open_files::OpenFiles;
pub(crate) use self::pending_fsyncs::{FsyncCallback, PendingFsync, SegmentName};
pub use self::relation::{Located, Relation};
pub use crate::datadir::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
