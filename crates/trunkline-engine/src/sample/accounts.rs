//! A sample of one large relation: the accounts of a pgbench database, with balances that add up to
//! a sum which is known without reading them.
//!
//! ```text
//!   DIR/base/5/16385        blocks 0 to 131,071 of the relation
//!   DIR/base/5/16385.1 …    the next 131,072 each, the last one shorter
//!   DIR/trunkline-accounts  says that it is complete, with version and scale
//! ```
//!
//! As in pgbench there are 100,000 accounts per unit of scale, 61 in a page: scale 100 is 1.34 GB.
//! Every page has its checksum, all rows are frozen and all pages marked all-visible. There is no
//! control file and no catalog: whoever reads it brings the names along.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::Aio;
use trunkline_format::{BLOCK_SIZE, Oid, RelationFile, SEGMENT_BLOCKS};

use super::directory::{self, DATABASE, Directory, TABLESPACE};
use super::write::{self, BRANCH_ROWS, NewFile, PAGE_ROWS};
use crate::datadir::FileEntry;

/// The file that says that the sample is complete.
const MARKER: &str = "trunkline-accounts";

/// Changes when pages or layout do, so that old samples are made anew.
const VERSION: u32 = 1;

/// The relation's file number.
const RELATION: u32 = 16_385;

/// The largest scale: accounts are numbered by an `int4`.
pub const SCALE_MAX: u32 = i32::MAX as u32 / BRANCH_ROWS;

/// The accounts on disk.
#[derive(Debug)]
pub struct Accounts {
    /// The directory that `base` is in.
    pub path: PathBuf,
    /// Units of 100,000 accounts, 1 to [`SCALE_MAX`].
    pub scale: u32,
    /// The relation's segments, in order.
    pub files: Vec<FileEntry>,
    /// Whether it was there already.
    pub reused: bool,
}

impl Accounts {
    /// The tablespace that the relation is in: `pg_default`, whose files are under `base`.
    pub const TABLESPACE: Oid = TABLESPACE;
    /// The database that the relation is in.
    pub const DATABASE: Oid = DATABASE;
    /// The relation's file number.
    pub const RELATION: u32 = RELATION;

    /// How many accounts there are.
    pub fn rows(&self) -> u64 {
        rows(self.scale)
    }

    /// Blocks of the relation, over all segments.
    pub fn blocks(&self) -> u32 {
        blocks(self.scale)
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        bytes(self.scale)
    }

    /// Asks the system to forget what it has cached of the files, as
    /// [`Sample::evict`](super::Sample::evict) does.
    ///
    /// # Errors
    /// A file cannot be opened, or written to disk.
    pub fn evict(&self) -> io::Result<()> {
        directory::evict(&self.files)
    }
}

/// Bytes that accounts of this scale take, 1 to [`SCALE_MAX`].
pub fn bytes(scale: u32) -> u64 {
    u64::from(blocks(scale)) * BLOCK_SIZE as u64
}

/// The largest scale whose accounts take no more than `bytes`, but at least 1.
pub fn scale_within(bytes: u64) -> u32 {
    let rows = bytes / BLOCK_SIZE as u64 * u64::from(PAGE_ROWS);
    let scale = rows / u64::from(BRANCH_ROWS);
    scale.clamp(1, u64::from(SCALE_MAX)) as u32
}

/// What `sum(abalance)` is at this scale. Computed from the numbers of the accounts, not from any
/// page; some tens of milliseconds for a scale of 100.
///
/// ```
/// # use trunkline_engine::sample::accounts::accounts_sum;
/// assert_eq!(accounts_sum(1), 1_345_949);
/// ```
pub fn accounts_sum(scale: u32) -> i64 {
    let last = rows(scale).min(u64::from(u32::MAX)) as u32;
    (1..=last).map(|aid| i64::from(write::balance(aid))).sum()
}

/// Makes the accounts in `directory`, or finds those that are there already. Tells `progress` how
/// many bytes are written; it returns false to give up.
///
/// # Errors
/// Whatever the file system says; [`io::ErrorKind::InvalidInput`] for a scale that is not 1 to
/// [`SCALE_MAX`]; [`io::ErrorKind::AlreadyExists`] if the directory holds anything else;
/// [`io::ErrorKind::Interrupted`] when told to give up. Without its marker an unfinished sample is
/// made anew the next time.
pub fn create(
    aio: &Aio,
    directory: &Path,
    scale: u32,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Accounts> {
    if !(1..=SCALE_MAX).contains(&scale) {
        let text = format!("scale {scale} is outside the valid range (1 .. {SCALE_MAX})");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let text = format!("version {VERSION}\nscale {scale}\n");
    let place = Directory::new(directory, MARKER);
    let plan = plan(&place.base(), scale);
    let made = |files, reused| Accounts { path: directory.to_owned(), scale, files, reused };
    if place.is_complete(&text)
        && let Ok(files) = directory::entries(&plan)
    {
        return Ok(made(files, true));
    }
    place.claim(&text)?;
    // Of a larger scale there may be more segments.
    segments(&place.base()).iter().try_for_each(|path| directory::unlink(path))?;
    write::files(aio, &plan, progress)?;
    place.complete()?;
    Ok(made(directory::entries(&plan)?, false))
}

/// Removes the accounts in `directory`, complete or not, and the directory if nothing else is in
/// it.
///
/// # Errors
/// As unlink(2); [`io::ErrorKind::AlreadyExists`] if it holds something and no accounts.
pub fn remove(directory: &Path) -> io::Result<()> {
    Directory::new(directory, MARKER).remove(segments)
}

fn rows(scale: u32) -> u64 {
    u64::from(scale) * u64::from(BRANCH_ROWS)
}

fn blocks(scale: u32) -> u32 {
    // At most 35 million.
    rows(scale).div_ceil(u64::from(PAGE_ROWS)) as u32
}

fn plan(base: &Path, scale: u32) -> Vec<NewFile> {
    let blocks = blocks(scale);
    let segment = |segment: u32| {
        let name = match segment {
            0 => RELATION.to_string(),
            _ => format!("{RELATION}.{segment}"),
        };
        let first = segment * SEGMENT_BLOCKS;
        let blocks = SEGMENT_BLOCKS.min(blocks - first);
        NewFile { path: base.join(name), first, blocks, rows: rows(scale) }
    };
    (0..blocks.div_ceil(SEGMENT_BLOCKS)).map(segment).collect()
}

/// The relation's files that are there.
fn segments(base: &Path) -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(RelationFile::parse).is_some_and(|file| file.relfilenode == RELATION)
    };
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_ours).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_one_another() {
        let name = |new: &NewFile| new.path.file_name().map(|name| name.to_owned());
        for (scale, last, left) in [(1, "16385", 1640), (79, "16385", 129_509), (80, "16385.1", 76)]
        {
            let plan = plan(Path::new("base/5"), scale);
            let found = plan.last().expect("one at least");
            assert_eq!((name(found), found.blocks), (Some(last.into()), left), "{scale}");
        }
        let plan = plan(Path::new("base/5"), SCALE_MAX);
        for (segment, new) in (0..).zip(&plan) {
            assert_eq!(new.first, segment * SEGMENT_BLOCKS);
            assert_eq!(new.rows, 2_147_400_000);
            assert!(new.blocks == SEGMENT_BLOCKS || usize::try_from(segment) == Ok(plan.len() - 1));
        }
        let blocks: u32 = plan.iter().map(|new| new.blocks).sum();
        assert_eq!(u64::from(blocks), 2_147_400_000_u64.div_ceil(61));
        assert_eq!(bytes(100), 163_935 * 8192);
        for (room, scale) in [(0, 1), (bytes(7), 7), (bytes(7) - 8192, 6), (u64::MAX, SCALE_MAX)] {
            assert_eq!(scale_within(room), scale, "{room}");
        }
    }

    #[test]
    fn sums() {
        assert_eq!(accounts_sum(0), 0);
        let mut sum = 0;
        for aid in 1..=200_000 {
            sum += i64::from(write::balance(aid));
        }
        assert_eq!(accounts_sum(2), sum);
    }
}
