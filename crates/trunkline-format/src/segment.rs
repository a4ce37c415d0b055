//! Relation file names, and the file that contains a given block.
//!
//! ```text
//!   16384            main fork, blocks 0 to 131071
//!   16384.1          main fork, blocks 131072 to 262143
//!   16384_fsm        free space map; likewise _vm and _init; each has its own segments
//!   t2_16864_vm.1    what a crashed session left of a temporary relation
//! ```
//!
//! The number in the name is the relation's file number, which is no longer the same as its OID
//! once the relation has been rewritten. We only accept names that a server would use, so a name
//! must not contain a sign or leading zeros, must not end in `.0`, and must not have a segment
//! number that is too large. This ensures that there is exactly one file name for each
//! [`RelationFile`].
//!
//! Mirrors PostgreSQL's `common/relpath.c` and `storage/smgr/md.c`.

use crate::control::PgVersion;
use crate::ids::{BLOCK_SIZE, BlockNo, Fork, SEGMENT_BLOCKS};
use std::fmt;

/// The highest segment number, which contains the highest block number.
pub const LAST_SEGMENT: u32 = BlockNo::MAX / SEGMENT_BLOCKS;

/// One file of a relation.
///
/// ```
/// use trunkline_format::{Fork, RelationFile};
/// let file = RelationFile { relfilenode: 16384, fork: Fork::Vm, segment: 2 };
/// assert_eq!(RelationFile::parse("16384_vm.2"), Some(file));
/// assert_eq!(file.to_string(), "16384_vm.2");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RelationFile {
    /// The relation's file number, from 1.
    pub relfilenode: u32,
    /// The fork.
    pub fork: Fork,
    /// The segment number within the fork: 0 to 32767.
    pub segment: u32,
}

impl RelationFile {
    /// Parses a file name, which must not include the directory. Returns `None` if this is not the
    /// name of a relation file, or if the relation is temporary.
    pub fn parse(name: &str) -> Option<Self> {
        let (stem, segment) = match name.split_once('.') {
            None => (name, 0),
            Some((stem, segment)) => (stem, number(segment).filter(|&segment| segment > 0)?),
        };
        let (digits, fork) = match stem.find('_') {
            None => (stem, Fork::Main),
            Some(at) => {
                let (digits, suffix) = stem.split_at_checked(at)?;
                (digits, Fork::ALL.into_iter().find(|fork| fork.suffix() == suffix)?)
            }
        };
        let relfilenode = number(digits).filter(|&number| number > 0)?;
        (segment <= LAST_SEGMENT).then_some(Self { relfilenode, fork, segment })
    }

    /// The file's first block number, counted across all segments of the fork.
    pub fn first_block(&self) -> Option<BlockNo> {
        first_block(self.segment)
    }
}

impl fmt::Display for RelationFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.relfilenode, self.fork.suffix())?;
        if self.segment > 0 {
            write!(f, ".{}", self.segment)?;
        }
        Ok(())
    }
}

/// A file of a temporary relation. If we find one in a stopped cluster, it was left behind by a
/// crash. The server will remove it the next time it starts, so readers should ignore it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TempRelationFile {
    /// The backend ID of the session that created it: 0 to 2 147 483 647.
    pub backend: u32,
    /// The rest of the name, parsed like an ordinary relation file's.
    pub file: RelationFile,
}

impl TempRelationFile {
    /// Parses a file name without its directory; `None` if it isn't a temporary relation's.
    pub fn parse(name: &str) -> Option<Self> {
        let (backend, file) = name.strip_prefix('t')?.split_once('_')?;
        let backend = number(backend).filter(|&backend| backend <= i32::MAX as u32)?;
        Some(Self { backend, file: RelationFile::parse(file)? })
    }
}

impl fmt::Display for TempRelationFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}_{}", self.backend, self.file)
    }
}

/// The segment that contains `block`, and the block's byte offset in the segment file.
///
/// ```
/// use trunkline_format::segment::segment_of;
/// assert_eq!(segment_of(131_071), (0, 1_073_733_632));
/// assert_eq!(segment_of(131_072), (1, 0));
/// ```
pub fn segment_of(block: BlockNo) -> (u32, u64) {
    (block / SEGMENT_BLOCKS, u64::from(block % SEGMENT_BLOCKS) * BLOCK_SIZE as u64)
}

/// The first block of segment `segment`; `None` beyond [`LAST_SEGMENT`].
pub fn first_block(segment: u32) -> Option<BlockNo> {
    segment.checked_mul(SEGMENT_BLOCKS)
}

/// The directory that a server of `version` creates inside a tablespace, such as `PG_18_202506291`.
pub fn tablespace_directory(version: PgVersion) -> String {
    format!("PG_{}_{}", version.major(), version.catalog_version())
}

/// Returns the version of the server that uses the tablespace directory `name`. Returns `None` if
/// that is not a version we support. Servers of several versions can share a tablespace.
pub fn parse_tablespace_directory(name: &str) -> Option<PgVersion> {
    let (major, catalog) = name.strip_prefix("PG_")?.split_once('_')?;
    let (major, catalog) = (number(major)?, number(catalog)?);
    PgVersion::ALL
        .into_iter()
        .find(|version| version.major() == major && version.catalog_version() == catalog)
}

/// Parses a decimal number in the form in which PostgreSQL prints it. It must consist of digits
/// only, must not have leading zeros, and must fit into a u32.
fn number(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    if !plain || leading_zero {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::XorShift;

    #[test]
    fn names_round_trip() {
        let seed = 0x0016_3840;
        let mut random = XorShift(seed);
        for _ in 0..10_000 {
            let file = RelationFile {
                relfilenode: (random.next() as u32).max(1),
                fork: Fork::ALL[random.below(4)],
                segment: [0, 1, random.next() as u32 % (LAST_SEGMENT + 1)][random.below(3)],
            };
            let name = file.to_string();
            assert_eq!(RelationFile::parse(&name), Some(file), "seed {seed}: {name}");
            assert_eq!(TempRelationFile::parse(&name), None, "{name}");

            let temp = TempRelationFile { backend: random.next() as u32 >> 1, file };
            let name = temp.to_string();
            assert_eq!(TempRelationFile::parse(&name), Some(temp), "seed {seed}: {name}");
            assert_eq!(RelationFile::parse(&name), None, "{name}");
        }
    }

    #[test]
    fn odd_names_are_refused() {
        for name in [
            "",
            "0",
            "01",
            "+1",
            "-1",
            " 1",
            "1 ",
            "4294967296",
            "99999999999999999999",
            "1.0",
            "1.",
            ".1",
            "1.01",
            "1.+1",
            "1.32768",
            "1.4294967296",
            "1.1.1",
            "1_",
            "1_main",
            "1_fsm_vm",
            "1_FSM",
            "1.1_fsm",
            "1_fsm.0",
            "_fsm",
            "pg_filenode.map",
            "PG_VERSION",
            "pg_internal.init",
            "t1",
            "t_1",
            "t1_",
            "t01_1",
            "t1_0",
            "t2147483648_1",
            "t-1_1",
            "١",
            "1_é",
            "16384.bak",
            "16384\0",
        ] {
            assert_eq!(RelationFile::parse(name), None, "{name:?}");
            assert_eq!(TempRelationFile::parse(name), None, "{name:?}");
        }
        assert_eq!(
            RelationFile::parse("4294967295_init.32767").map(|file| file.segment),
            Some(32767)
        );
        assert!(TempRelationFile::parse("t0_1").is_some());
    }

    #[test]
    fn blocks_and_segments() {
        for (block, expected) in [
            (0, (0, 0)),
            (1, (0, 8192)),
            (131_071, (0, (1 << 30) - 8192)),
            (131_072, (1, 0)),
            (u32::MAX, (LAST_SEGMENT, (1 << 30) - 8192)),
        ] {
            assert_eq!(segment_of(block), expected, "block {block}");
            let first = first_block(expected.0).unwrap_or(u32::MAX);
            assert_eq!(u64::from(first) + expected.1 / 8192, u64::from(block));
        }
        assert_eq!(first_block(LAST_SEGMENT + 1), None);
    }

    #[test]
    fn tablespace_directories() {
        assert_eq!(tablespace_directory(PgVersion::V18), "PG_18_202506291");
        for version in PgVersion::ALL {
            assert_eq!(parse_tablespace_directory(&tablespace_directory(version)), Some(version));
        }
        for name in ["", "PG_18", "PG_18_202506290", "PG_17_202506291", "PG_018_202506291", "18_2"]
        {
            assert_eq!(parse_tablespace_directory(name), None, "{name}");
        }
    }
}
