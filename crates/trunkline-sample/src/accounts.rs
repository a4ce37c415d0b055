//! Creates the accounts table of a pgbench database. This is a single large relation, and the sum
//! of all balances in it is known.
//!
//! ```text
//!   DIR/base/5/16385        blocks 0 to 131,071 of the relation
//!   DIR/base/5/16385.1 …    the next 131,072 blocks each; the last segment is shorter
//!   DIR/trunkline-accounts  marks the sample as complete, with version and scale
//! ```
//!
//! As in pgbench, there are 100,000 accounts for each unit of the scale factor. A page contains 61
//! accounts, so the table is 1.34 GB at scale 100. Every page has a checksum and is marked
//! all-visible, and all rows are frozen. Since there is no control file and no catalog, readers
//! must use the constants in [`Accounts`] to find the relation.
//!
//! Tests and benchmarks compare the sum of all balances with the known sum to verify that a scan
//! worked correctly. If the scan skips a page, reads a page twice, or reads the wrong block, the
//! sum will be different.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::Aio;
use trunkline_engine::datadir::FileEntry;
use trunkline_format::{BLOCK_SIZE, Oid, RelationFile, SEGMENT_BLOCKS};

use crate::directory::{self, DATABASE, Directory, TABLESPACE};
use crate::page_writer::{BRANCH_ROWS, NewFile, PAGE_ROWS, balance, write_files};

/// The file that marks a complete sample.
const MARKER: &str = "trunkline-accounts";

/// Version of the page and file layout. We store it in the marker file, so that a sample that was
/// written with an older layout is replaced with a new one.
const VERSION: u32 = 1;

/// The relation's file number.
const RELATION: u32 = 16_385;

/// The largest scale, because accounts are numbered by an `int4`.
pub const SCALE_MAX: u32 = i32::MAX as u32 / BRANCH_ROWS;

/// The accounts on disk.
#[derive(Debug)]
pub struct Accounts {
    /// The directory that contains `base`.
    pub path: PathBuf,
    /// Units of 100,000 accounts, 1 to [`SCALE_MAX`].
    pub scale: u32,
    /// The relation's segments, in order.
    pub files: Vec<FileEntry>,
    /// Whether we found a complete table, so that nothing was written.
    pub reused: bool,
}

impl Accounts {
    /// The relation's tablespace: `pg_default`, whose files are under `base`.
    pub const TABLESPACE: Oid = TABLESPACE;
    /// The relation's database.
    pub const DATABASE: Oid = DATABASE;
    /// The relation's file number.
    pub const RELATION: u32 = RELATION;

    /// The number of accounts.
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

    /// Drops the files from the page cache after writing out their dirty pages.
    ///
    /// # Errors
    /// A file cannot be opened or fsynced.
    pub fn evict(&self) -> io::Result<()> {
        directory::evict(&self.files)
    }
}

/// Size in bytes of the accounts at this scale, 1 to [`SCALE_MAX`].
pub fn bytes(scale: u32) -> u64 {
    u64::from(blocks(scale)) * BLOCK_SIZE as u64
}

/// The largest scale at which the accounts fit into `bytes`, but at least 1.
pub fn scale_within(bytes: u64) -> u32 {
    let rows = bytes / BLOCK_SIZE as u64 * u64::from(PAGE_ROWS);
    let scale = rows / u64::from(BRANCH_ROWS);
    scale.clamp(1, u64::from(SCALE_MAX)) as u32
}

/// Returns what `sum(abalance)` should be at this scale. We compute it from the account numbers,
/// without reading any pages. This takes a few tens of milliseconds at scale 100.
///
/// ```
/// # use trunkline_sample::accounts::accounts_sum;
/// assert_eq!(accounts_sum(1), 1_345_949);
/// ```
pub fn accounts_sum(scale: u32) -> i64 {
    let last = rows(scale).min(u64::from(u32::MAX)) as u32;
    (1..=last).map(|aid| i64::from(balance(aid))).sum()
}

/// Writes the accounts table to `directory`, unless the directory already contains a complete one.
/// We call `progress` from time to time with the number of bytes written so far. If it returns
/// false, we stop.
///
/// # Errors
/// Any file system error. In addition, [`io::ErrorKind::InvalidInput`] if the scale is not between
/// 1 and [`SCALE_MAX`], [`io::ErrorKind::AlreadyExists`] if the directory contains anything else,
/// and [`io::ErrorKind::Interrupted`] if `progress` returned false. If we fail while writing the
/// table, it has no marker file, so the next call will start from the beginning.
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
    // An earlier sample with a larger scale factor may have left behind more segments than we are
    // about to write.
    segments(&place.base()).iter().try_for_each(|path| directory::unlink(path))?;
    write_files(aio, &plan, progress)?;
    place.complete()?;
    Ok(made(directory::entries(&plan)?, false))
}

/// Removes the accounts table from `directory`, whether it is complete or not. If the directory is
/// empty after that, it is removed too.
///
/// # Errors
/// As unlink(2); [`io::ErrorKind::AlreadyExists`] if the directory contains something else.
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

/// The relation's segments at this scale. All but the last have 131,072 blocks.
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

/// The relation's existing segments.
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
    fn the_plan_covers_all_blocks_without_gaps() {
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
    fn the_sum_is_that_of_all_balances() {
        assert_eq!(accounts_sum(0), 0);
        let mut sum = 0;
        for aid in 1..=200_000 {
            sum += i64::from(balance(aid));
        }
        assert_eq!(accounts_sum(2), sum);
    }
}
