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
//! Written through I/O handles, many writes in flight, and made durable at the end. One page is
//! built in full, the others are copies with their own numbers, addresses and checksum, so that the
//! device and not the processor sets the pace.

mod write;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
use trunkline_aio::Aio;
use trunkline_format::{BLOCK_SIZE, Fork, Oid, SEGMENT_BLOCKS};

use crate::datadir::FileEntry;

/// The file that says that the sample is complete.
const MARKER: &str = "trunkline-sample";

/// The same file while the sample is being made.
const CLAIM: &str = "trunkline-sample.new";

/// Changes when pages or layout do, so that old samples are made anew.
const VERSION: u32 = 1;

/// The relations' shares of the whole, in sixty-fourths.
const SHARES: [u64; 6] = [24, 16, 12, 8, 3, 1];

const _: () = assert!(SHARES[0] + SHARES[1] + SHARES[2] + SHARES[3] + SHARES[4] + SHARES[5] == 64);

const FIRST_RELATION: u32 = 16_384;
const DATABASE: u32 = 5;

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
        for file in &self.files {
            let file = fs::File::open(&file.path)?;
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }
}

/// Removes the sample in `directory`, complete or not, and the directory if nothing else is in it.
///
/// # Errors
/// As unlink(2); [`io::ErrorKind::AlreadyExists`] if it holds no sample.
pub fn remove(directory: &Path) -> io::Result<()> {
    claimed(directory)?;
    for (path, _) in plan(directory, BYTES_MIN) {
        unlink(&path)?;
    }
    unlink(&directory.join(MARKER))?;
    unlink(&directory.join(CLAIM))?;
    for inner in ["base/5", "base", ""] {
        match fs::remove_dir(directory.join(inner)) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
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
    let marker = directory.join(MARKER);
    let text = format!("version {VERSION}\nbytes {bytes}\n");
    if let Ok(found) = fs::read_to_string(&marker)
        && found == text
        && let Ok(files) = entries(directory, bytes)
    {
        return Ok(Sample { path: directory.to_owned(), files, reused: true });
    }
    fs::create_dir_all(directory)?;
    claimed(directory)?;
    let claim = directory.join(CLAIM);
    let file = fs::File::create(&claim)?;
    io::Write::write_all(&mut &file, text.as_bytes())?;
    file.sync_all()?;
    // An older sample is no longer one from here on.
    unlink(&marker)?;
    fs::create_dir_all(directory.join("base/5"))?;
    let plan: Vec<(PathBuf, u32)> = plan(directory, bytes).collect();
    plan.iter().try_for_each(|(path, _)| unlink(path))?;
    write::relations(aio, &plan, progress)?;
    fs::rename(&claim, &marker)?;
    fs::File::open(directory)?.sync_all()?;
    let files = entries(directory, bytes)?;
    Ok(Sample { path: directory.to_owned(), files, reused: false })
}

/// Makes sure that nobody else's files are in the directory, above all no cluster's: it is empty, or
/// a sample is in it already.
fn claimed(directory: &Path) -> io::Result<()> {
    let ours = [MARKER, CLAIM].iter().any(|name| directory.join(name).is_file());
    if ours || fs::read_dir(directory)?.next().is_none() {
        return Ok(());
    }
    let text = format!("\"{}\" is not empty and holds no sample", directory.display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
}

/// Removes a file if it is there.
fn unlink(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The files and their blocks.
fn plan(directory: &Path, bytes: u64) -> impl Iterator<Item = (PathBuf, u32)> {
    let blocks = bytes / BLOCK_SIZE as u64;
    let base = directory.join("base/5");
    (FIRST_RELATION..).zip(SHARES).map(move |(number, share)| {
        let blocks = (blocks * share / 64).clamp(1, u64::from(SEGMENT_BLOCKS));
        (base.join(number.to_string()), blocks as u32)
    })
}

/// The files, if they are there and whole.
fn entries(directory: &Path, bytes: u64) -> io::Result<Vec<FileEntry>> {
    use std::os::unix::fs::MetadataExt;
    let entry = |(number, (path, blocks)): (u32, (PathBuf, u32))| {
        let metadata = fs::symlink_metadata(&path)?;
        let expected = u64::from(blocks) * BLOCK_SIZE as u64;
        if !metadata.is_file() || metadata.len() != expected {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(FileEntry {
            path,
            tablespace: Oid(1663),
            database: Oid(DATABASE),
            relfilenode: number,
            fork: Fork::Main,
            segment: 0,
            bytes: expected,
            device: metadata.dev(),
        })
    };
    (FIRST_RELATION..).zip(plan(directory, bytes)).map(entry).collect()
}
