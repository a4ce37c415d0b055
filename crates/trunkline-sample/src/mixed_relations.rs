//! A few relations of unequal size, each within one segment, with valid pages and checksums.
//!
//! Benchmarks and tests use it if they need files of a certain total size. The pages are written
//! with many writes in flight and fsynced at the end. We build only one page row by row. All other
//! pages are copies with their own account numbers, TIDs and checksum, so that the device limits
//! the speed, not the CPU.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::Aio;
use trunkline_engine::datadir::FileEntry;
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};

use crate::directory::{self, Directory};
use crate::page_writer::{NewFile, PAGE_ROWS, write_files};

/// The file that marks a complete sample.
const MARKER: &str = "trunkline-sample";

/// Version of the page and file layout. It is part of the marker, so that an older version's
/// samples are written again.
const VERSION: u32 = 2;

/// The relations' shares of the total size, in sixty-fourths.
const SHARES: [u64; 6] = [24, 16, 12, 8, 3, 1];

const _: () = assert!(SHARES[0] + SHARES[1] + SHARES[2] + SHARES[3] + SHARES[4] + SHARES[5] == 64);

const FIRST_RELATION: u32 = 16_384;

/// Size of the smallest sample, in bytes. The smallest relation then has one block.
pub const BYTES_MIN: u64 = 64 * BLOCK_SIZE as u64;

/// Size of the largest sample, in bytes. The first relation then fills a segment.
pub const BYTES_MAX: u64 = SEGMENT_BLOCKS as u64 * BLOCK_SIZE as u64 / SHARES[0] * 64;

/// A sample on disk.
#[derive(Debug)]
pub struct MixedRelations {
    /// Its directory.
    pub path: PathBuf,
    /// Its relation files.
    pub files: Vec<FileEntry>,
    /// Whether a complete sample was already there.
    pub reused: bool,
}

impl MixedRelations {
    /// Bytes in all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Drops the files from the page cache after writing out their dirty pages.
    /// [`cached_part`](trunkline_engine::prewarm::cached_part) reports how much the kernel kept.
    ///
    /// # Errors
    /// A file cannot be opened or fsynced.
    pub fn evict(&self) -> io::Result<()> {
        directory::evict(&self.files)
    }
}

/// Removes the sample in `directory`, complete or not, and then the directory if it is empty.
///
/// # Errors
/// As unlink(2); [`io::ErrorKind::AlreadyExists`] if the directory contains something else.
pub fn remove(directory: &Path) -> io::Result<()> {
    let files = |base: &Path| plan(base, BYTES_MIN).map(|new| new.path).collect();
    Directory::new(directory, MARKER).remove(files)
}

/// Writes a sample of about `bytes` to `directory`, unless it already contains a complete one.
/// `progress` receives the bytes written so far and returns false to stop.
///
/// # Errors
/// As the file system; [`io::ErrorKind::Interrupted`] after `progress` returned false. An
/// incomplete sample lacks its marker and is written anew the next time.
pub fn create(
    aio: &Aio,
    directory: &Path,
    bytes: u64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<MixedRelations> {
    let bytes = bytes.clamp(BYTES_MIN, BYTES_MAX);
    let text = format!("version {VERSION}\nbytes {bytes}\n");
    let place = Directory::new(directory, MARKER);
    let plan: Vec<NewFile> = plan(&place.base(), bytes).collect();
    if place.is_complete(&text)
        && let Ok(files) = directory::entries(&plan)
    {
        return Ok(MixedRelations { path: directory.to_owned(), files, reused: true });
    }
    place.claim(&text)?;
    plan.iter().try_for_each(|new| directory::unlink(&new.path))?;
    write_files(aio, &plan, progress)?;
    place.complete()?;
    let files = directory::entries(&plan)?;
    Ok(MixedRelations { path: directory.to_owned(), files, reused: false })
}

/// The files to write. All their pages are full.
fn plan(base: &Path, bytes: u64) -> impl Iterator<Item = NewFile> {
    let blocks = bytes / BLOCK_SIZE as u64;
    (FIRST_RELATION..).zip(SHARES).map(move |(number, share)| {
        let blocks = (blocks * share / 64).clamp(1, u64::from(SEGMENT_BLOCKS));
        let rows = blocks * u64::from(PAGE_ROWS);
        NewFile { path: base.join(number.to_string()), first: 0, blocks: blocks as u32, rows }
    })
}
