//! A cluster on an instance's storage, with a pool over it: relations by number, and their bytes past
//! every instance.
//!
//! Relation `n` is file `16384 + n` of database 5. What is done to its segments here is durable at
//! once and nobody is told, as if another system had done it: so cases make relations, damage them,
//! cut them off, and look at what the engine has written.

use super::{Bench, Instance, pages};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;
use trunkline_aio::sync::Arc;
use trunkline_aio::{MethodKind, Observed};
use trunkline_engine::pool::{Backend, BackendType, BufferRow, Pool};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, Layout, OpenFiles, Relation, RelationLocator, Storage, WritableFiles,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid, SEGMENT_BLOCKS};

/// The device that relations lie on.
const DEVICE: u64 = 1;

/// The first relation's file.
const FIRST_FILE: u32 = 16_384;

/// Files that the table of a cluster keeps open.
const FILES_OPEN: usize = 16;

/// See the module.
#[derive(Debug)]
pub struct Cluster {
    /// Where it is.
    pub bench: Bench,
    /// The pool.
    pub pool: Pool,
    /// The relations.
    pub storage: Storage,
    pub(super) instance: Instance,
}

impl Deref for Cluster {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Cluster {
    /// Puts one together; it has no relations yet.
    pub fn new(bench: Bench, instance: Instance, storage: Storage, pool: Pool) -> Self {
        Self { bench, pool, storage, instance }
    }

    /// Whether I/O runs in other threads than the session's, unless it executes one itself.
    pub fn is_asynchronous(&self) -> bool {
        self.bench.method != MethodKind::Sync
    }

    /// A session.
    ///
    /// # Panics
    /// If there is none to be had.
    pub fn backend(&self) -> Backend {
        self.pool.backend(BackendType::Client).expect("a session")
    }

    /// Relations by number.
    pub fn relation(&self, number: u32) -> Relation {
        relation(&self.storage, number)
    }

    /// The pool's row of a block of a relation.
    pub fn row(&self, number: u32, block: BlockNo) -> Option<BufferRow> {
        let locator = locator(number);
        self.pool.rows().into_iter().find(|row| row.relation == locator && row.block == block)
    }

    /// Makes a relation, each block in version 0.
    ///
    /// # Panics
    /// If files cannot be written; so do the others.
    pub fn create(&self, number: u32, blocks: u32) {
        self.write_segment(number, 0, &pages(number, blocks));
    }

    /// Makes a segment of a relation.
    ///
    /// # Panics
    /// See [`Cluster::create`].
    pub fn write_segment(&self, number: u32, segment: u32, bytes: &[u8]) {
        let path = self.relation(number).path(segment);
        if self.is_simulated() {
            return self.disk.create(name(&path), DEVICE, bytes);
        }
        fs::create_dir_all(path.parent().expect("a directory")).expect("creates it");
        fs::write(&path, bytes).expect("writes");
    }

    /// Makes a relation's first segment so many blocks long.
    ///
    /// # Panics
    /// See [`Cluster::create`].
    pub fn set_blocks(&self, number: u32, blocks: u32) {
        let (path, length) = (self.relation(number).path(0), blocks as usize * BLOCK_SIZE);
        if self.is_simulated() {
            return self.disk.set_length(name(&path), length);
        }
        let file = fs::OpenOptions::new().write(true).open(path).expect("opens");
        file.set_len(length as u64).expect("truncates");
    }

    /// Changes a block of a relation's first segment.
    ///
    /// # Panics
    /// See [`Cluster::create`].
    pub fn put(&self, number: u32, block: BlockNo, page: &[u8]) {
        assert!(block < SEGMENT_BLOCKS);
        let (path, offset) = (self.relation(number).path(0), block as usize * BLOCK_SIZE);
        if self.is_simulated() {
            return self.disk.overwrite(name(&path), offset, page);
        }
        let file = fs::OpenOptions::new().write(true).open(path).expect("opens");
        file.write_all_at(page, offset as u64).expect("writes");
    }

    /// What a read of a relation's first segment finds; nothing if it is not there.
    pub fn on_disk(&self, number: u32) -> Vec<u8> {
        let path = self.relation(number).path(0);
        match self.is_simulated() {
            true => self.disk.content(name(&path)),
            false => fs::read(&path).unwrap_or_default(),
        }
    }
}

/// The disk's name of a path.
fn name(path: &Path) -> &str {
    path.to_str().expect("a name")
}

/// How clusters of the suites are laid out.
pub fn layout() -> Layout {
    Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() }
}

/// A cluster of our own, whose relations may be changed.
pub fn storage(root: &Path, files: Arc<dyn WritableFiles>, direct: bool) -> Storage {
    Storage::for_writing(root, layout(), &OpenFiles::writable(FILES_OPEN, files), direct)
}

/// Names of relations by number.
pub fn locator(number: u32) -> RelationLocator {
    let relfilenode = FIRST_FILE + number;
    RelationLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), relfilenode }
}

/// Relations by number.
pub fn relation(storage: &Storage, number: u32) -> Relation {
    storage.relation(locator(number), Fork::Main)
}

/// First block and number of blocks of an I/O.
pub fn extent(io: &Observed) -> (BlockNo, u32) {
    let size = BLOCK_SIZE as u64;
    ((io.offset / size) as BlockNo, io.length / BLOCK_SIZE as u32)
}

/// Whether an I/O includes a block.
pub fn includes(io: &Observed, block: BlockNo) -> bool {
    let (first, count) = extent(io);
    (first..first + count).contains(&block)
}
