//! Storage manager (`smgr.c`, `md.c`): stores each fork of a relation in segment files of 1 GiB.
//!
//! PostgreSQL keeps each fork of a relation in files named after its relfilenode: `base/5/16384`,
//! `base/5/16384.1`, `base/5/16384_vm`. Given a relation, fork and block number, this module
//! returns an open file and the block's offset in that file. It also extends and truncates forks,
//! and keeps track of the segments that still need an fsync.
//!
//! The commit log and multixacts (SLRUs) have files of their own kind, `pg_xact/0000`. They are used like those of a
//! relation.
//!
//! In PostgreSQL, the relation locator is enough to identify a relation. Here a process may have
//! several clusters open at the same time, so we assign a number to each cluster and make it part
//! of the buffer tag.
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
//! If the cluster is read through its log, some blocks are not in their files. `replayed_pages` builds
//! them and puts them into a scratch file, whose location is then returned.
//!
//! Otherwise, this module never reads or writes blocks itself. [`Relation::locate`] only returns the location
//! of a block, and the caller then starts the I/O through a handle. All of a cluster's files are
//! opened in the same mode, either direct or buffered, because mixing direct and buffered I/O on
//! one file can return stale data. For the same reason, if the file system doesn't support direct
//! I/O, we report an error instead of silently falling back to buffered I/O.
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

mod built_pages;
mod cluster;
mod error;
mod file_system;
mod file_table;
mod kernel;
mod locator;
mod open_files;
mod opener;
mod pending_fsyncs;
mod read_times;
mod relation;
mod replayed_pages;

pub use self::cluster::{Layout, Storage};
pub use self::error::StorageError;
pub use self::file_system::{FileSystem, WritableFiles};
pub use self::kernel::KernelFiles;
pub use self::locator::RelationLocator;
pub use self::open_files::OpenFiles;
pub(crate) use self::opener::SegmentOpener;
pub(crate) use self::pending_fsyncs::{FsyncCallback, PendingFsync, SegmentName};
pub use self::read_times::ReadTimes;
pub use self::relation::{Located, Relation};
pub use self::replayed_pages::PageOrigin;
pub use crate::datadir::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
