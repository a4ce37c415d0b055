//! **Input data**: a relation of valid PostgreSQL pages with checksums, stored in segments.
//!
//! We name and size the segments like those of a real relation, so that the engine's checksum
//! verification can read them too. We write them only once and reuse them in later runs, because
//! generating them takes longer than most measurements. This module also evicts the data from the
//! page cache, and reports how much of it the kernel nevertheless kept cached.

use crate::failure::Result;
use crate::work::Random;
use rustix::fs::Advice;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use trunkline_aio::{Aio, Builder, MethodKind, OpenOptions, Residency, residency};
use trunkline_engine::datadir::FileEntry;
use trunkline_engine::storage::{DEFAULT_TABLESPACE, Relation, RelationLocator, Storage};
use trunkline_format::{
    BLOCK_SIZE, BlockNo, Fork, HeapPageBuilder, Oid, PageBytes, PageHeader, SEGMENT_BLOCKS,
    page_checksum,
};
use trunkline_sample::push_account;

/// Subdirectory of `--dir` that holds the data.
const FOLDER: &str = "trunkline-bench-data";
/// The relation's database. Its directory is laid out as in a data directory.
const DATABASE: Oid = Oid(5);
/// The relfilenode. The value is arbitrary; this is the first OID that PostgreSQL assigns to user
/// objects.
const RELATION: u32 = 16_384;
/// Length of every segment except the last, in bytes.
pub(crate) const SEGMENT: u64 = SEGMENT_BLOCKS as u64 * BLOCK_SIZE as u64;
/// Largest fraction of the data that may still be cached in a run that we call cold.
const COLD: f64 = 0.01;

/// The prepared segments, and an observer of their page cache residency.
pub(crate) struct Data {
    /// Root of the layout; the engine's storage treats it as a data directory.
    pub(crate) root: PathBuf,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) bytes: u64,
    /// Used only to query page cache residency.
    aio: Aio,
    /// The largest fraction of the data that was still cached after an eviction. We print it in the
    /// report, so that a reader can judge how cold the cold runs really were.
    warmest: Cell<f64>,
    dropped: Cell<bool>,
}

impl Data {
    /// Creates files under `dir` with the given amount of data, rounded down to whole blocks. If
    /// there are complete segments from an earlier run, we reuse them.
    pub(crate) fn prepare(dir: &Path, bytes: u64) -> Result<Self> {
        let root = dir.join(FOLDER);
        let folder = root.join(format!("base/{}", DATABASE.0));
        fs::create_dir_all(&folder)?;
        let blocks = BlockNo::try_from(bytes / BLOCK_SIZE as u64)?.max(1);
        let mut paths = Vec::new();
        for first in (0..blocks).step_by(SEGMENT_BLOCKS as usize) {
            let name = match first / SEGMENT_BLOCKS {
                0 => RELATION.to_string(),
                segment => format!("{RELATION}.{segment}"),
            };
            let path = folder.join(name);
            let end = blocks.min(first + SEGMENT_BLOCKS);
            if !is_made(&path, first, end) {
                make(&path, first, end)?;
            }
            paths.push(path);
        }
        let aio =
            Builder::new().method(MethodKind::Sync).handles(4, 0, 0).region_bytes(0).start()?;
        let bytes = u64::from(blocks) * BLOCK_SIZE as u64;
        Ok(Self { root, paths, bytes, aio, warmest: Cell::new(0.0), dropped: Cell::new(false) })
    }

    /// Length of the relation in blocks.
    pub(crate) fn blocks(&self) -> BlockNo {
        (self.bytes / BLOCK_SIZE as u64) as BlockNo
    }

    /// The relation, in a storage over [`Data::root`].
    pub(crate) fn relation(&self, storage: &Storage) -> Relation {
        let (tablespace, database) = (DEFAULT_TABLESPACE, DATABASE);
        let locator = RelationLocator { tablespace, database, relfilenode: RELATION };
        storage.relation(locator, Fork::Main)
    }

    /// Evicts the data from the page cache. We first try `posix_fadvise(DONTNEED)`, which the
    /// kernel is free to ignore. If too much is still cached after that, we write to
    /// `/proc/sys/vm/drop_caches`, provided that we have permission to do so.
    pub(crate) fn evict(&self) -> Result<()> {
        for path in &self.paths {
            rustix::fs::fadvise(&File::open(path)?, 0, None, Advice::DontNeed)?;
        }
        let mut left = self.cached()?;
        if left > COLD && fs::write("/proc/sys/vm/drop_caches", "1").is_ok() {
            self.dropped.set(true);
            left = self.cached()?;
        }
        self.warmest.set(self.warmest.get().max(left));
        Ok(())
    }

    /// Reads all data once, so that it is in the page cache.
    pub(crate) fn warm(&self) -> Result<()> {
        let mut buffer = vec![0; 1 << 20];
        for path in &self.paths {
            let file = File::open(path)?;
            let mut at = 0;
            while let count @ 1.. = file.read_at(&mut buffer, at)? {
                at += count as u64;
            }
        }
        Ok(())
    }

    /// The fraction of the data that is in the page cache.
    pub(crate) fn cached(&self) -> Result<f64> {
        let mut sum = Residency::default();
        for path in &self.paths {
            sum.add(residency(&self.aio.open(path, OpenOptions::default())?)?);
        }
        Ok(sum.fraction())
    }

    /// A note for the report: how the data was evicted, and how much of it stayed cached.
    pub(crate) fn coldness(&self) -> String {
        let how = if self.dropped.get() { "dropping all caches" } else { "advice (DONTNEED)" };
        let warmest = self.warmest.get() * 100.0;
        format!("cold runs: at most {warmest:.1} % of the data was in the page cache, by {how}")
    }

    /// The segments as directory entries, in the form in which the engine's verification takes
    /// them.
    pub(crate) fn entries(&self) -> Result<Vec<FileEntry>> {
        let entry = |(segment, path): (u32, &PathBuf)| {
            let metadata = fs::metadata(path)?;
            Ok(FileEntry {
                path: path.clone(),
                tablespace: DEFAULT_TABLESPACE,
                database: DATABASE,
                relfilenode: RELATION,
                fork: Fork::Main,
                segment,
                bytes: metadata.len(),
                device: metadata.dev(),
            })
        };
        (0..).zip(&self.paths).map(entry).collect()
    }
}

/// Is this segment complete? We check only its length and its last page. A segment is written from
/// front to back and the checksum includes the block number, so if the last page is valid, the
/// writer must have reached the end.
fn is_made(path: &Path, first: BlockNo, end: BlockNo) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let length = u64::from(end - first) * BLOCK_SIZE as u64;
    let mut page = [0; BLOCK_SIZE];
    file.metadata().is_ok_and(|metadata| metadata.len() == length)
        && file.read_exact_at(&mut page, length - BLOCK_SIZE as u64).is_ok()
        && is_sound(&page, end - 1)
}

/// Does the stored checksum match the page's contents?
pub(crate) fn is_sound(page: &PageBytes, block: BlockNo) -> bool {
    PageHeader::parse(page).checksum == page_checksum(page, block)
}

fn make(path: &Path, first: BlockNo, end: BlockNo) -> Result<()> {
    eprintln!("making {} ({} MB)", path.display(), u64::from(end - first) * 8192 / 1_000_000);
    let mut random = Random(u64::from(first) << 1 | 1);
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for block in first..end {
        let mut page = HeapPageBuilder::new(block);
        while push_account(&mut page, random.next() as i32, block as i32, random.next() as i32)
            .is_ok()
        {}
        writer.write_all(&page.finish(true))?;
    }
    Ok(writer.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?)
}
