//! A sample of relation files: valid pages of a made-up `pgbench_accounts`, for demonstrations and
//! measurements where no cluster is at hand.
//!
//! It is no data directory (nobody could start a server on it), only files that look like those in
//! one:
//!
//! ```text
//!   DIR/base/5/16384 …          a few relations of unequal size, each within one segment
//!   DIR/trunkline-sample.new    written first: this directory is ours to write
//!   DIR/trunkline-sample        the same, renamed last: the sample is complete
//! ```
//! Another kind is one large relation, a pgbench database's accounts: see [`accounts`].
//!
//! Written through I/O handles, many writes in flight, and made durable at the end. One page is
//! built in full, the others are copies with their own numbers, addresses and checksum, so that the
//! device and not the processor sets the pace.

pub mod accounts;
mod directory;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::Aio;
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};

use crate::datadir::FileEntry;

use self::directory::Directory;
use self::write::{NewFile, PAGE_ROWS};

/// The file that says that the sample is complete.
const MARKER: &str = "trunkline-sample";

/// Changes when pages or layout do, so that old samples are made anew.
const VERSION: u32 = 2;

/// The relations' shares of the whole, in sixty-fourths.
const SHARES: [u64; 6] = [24, 16, 12, 8, 3, 1];

const _: () = assert!(SHARES[0] + SHARES[1] + SHARES[2] + SHARES[3] + SHARES[4] + SHARES[5] == 64);

const FIRST_RELATION: u32 = 16_384;

/// Bytes of the smallest sample: a block in each relation.
pub const BYTES_MIN: u64 = 64 * BLOCK_SIZE as u64;

/// Bytes of the largest sample: the first relation fills a segment.
pub const BYTES_MAX: u64 = SEGMENT_BLOCKS as u64 * BLOCK_SIZE as u64 / SHARES[0] * 64;

/// A sample on disk.
#[derive(Debug)]
pub struct Sample {
    /// Its directory.
    pub path: PathBuf,
    /// Its relation files.
    pub files: Vec<FileEntry>,
    /// Whether it was there already.
    pub reused: bool,
}

impl Sample {
    /// Bytes in all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Asks the system to forget what it has cached of the files. Pages that are not yet on disk
    /// would stay, so they are written first. How far that went is for
    /// [`cached_part`](crate::prewarm::cached_part) to say.
    ///
    /// # Errors
    /// A file cannot be opened, or written to disk.
    pub fn evict(&self) -> io::Result<()> {
        directory::evict(&self.files)
    }
}

/// Removes the sample in `directory`, complete or not, and the directory if nothing else is in it.
///
/// # Errors
/// As unlink(2); [`io::ErrorKind::AlreadyExists`] if it holds no sample.
pub fn remove(directory: &Path) -> io::Result<()> {
    let files = |base: &Path| plan(base, BYTES_MIN).map(|new| new.path).collect();
    Directory::new(directory, MARKER).remove(files)
}

/// Room for a sample in the file system that is to hold it: bytes that may be used while as many
/// again stay free.
///
/// # Errors
/// As statvfs(3), for the nearest directory that exists.
pub fn room(directory: &Path) -> io::Result<u64> {
    let existing = directory.ancestors().find(|path| path.is_dir());
    let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stat = rustix::fs::statvfs(existing)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize) / 2)
}

/// Makes a sample of about `bytes` in `directory`, or finds the one that is there already. Tells
/// `progress` how many bytes are written; it returns false to give up.
///
/// # Errors
/// Whatever the file system says; [`io::ErrorKind::Interrupted`] when told to give up. Without its
/// marker an unfinished sample is made anew the next time.
pub fn create(
    aio: &Aio,
    directory: &Path,
    bytes: u64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Sample> {
    let bytes = bytes.clamp(BYTES_MIN, BYTES_MAX);
    let text = format!("version {VERSION}\nbytes {bytes}\n");
    let place = Directory::new(directory, MARKER);
    let plan: Vec<NewFile> = plan(&place.base(), bytes).collect();
    if place.is_complete(&text)
        && let Ok(files) = directory::entries(&plan)
    {
        return Ok(Sample { path: directory.to_owned(), files, reused: true });
    }
    place.claim(&text)?;
    plan.iter().try_for_each(|new| directory::unlink(&new.path))?;
    write::files(aio, &plan, progress)?;
    place.complete()?;
    let files = directory::entries(&plan)?;
    Ok(Sample { path: directory.to_owned(), files, reused: false })
}

/// The files and their blocks, all of them full.
fn plan(base: &Path, bytes: u64) -> impl Iterator<Item = NewFile> {
    let blocks = bytes / BLOCK_SIZE as u64;
    (FIRST_RELATION..).zip(SHARES).map(move |(number, share)| {
        let blocks = (blocks * share / 64).clamp(1, u64::from(SEGMENT_BLOCKS));
        let rows = blocks * u64::from(PAGE_ROWS);
        NewFile { path: base.join(number.to_string()), first: 0, blocks: blocks as u32, rows }
    })
}
