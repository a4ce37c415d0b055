//! What is odd about the files of a data directory: reported by name, while the job goes on with
//! the others.

use std::fmt;
use std::io;
use std::path::PathBuf;

use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};

/// One odd file or directory.
#[derive(Debug)]
pub struct Problem {
    /// Which one; for a missing segment, where it should be.
    pub path: PathBuf,
    /// What is odd about it.
    pub kind: ProblemKind,
}

/// What is odd.
#[derive(Debug)]
pub enum ProblemKind {
    /// The system does not let us read or examine it; nothing in it was listed.
    Unreadable(io::Error),
    /// A symbolic link where none belongs: it may lead out of the directory, and is not followed.
    Symlink,
    /// A pipe, socket or device.
    NotAFile,
    /// A link in `pg_tblspc` that leads to no tablespace of this cluster: the directory it should
    /// hold.
    NotATablespace {
        /// `PG_<major>_<catalog version>`.
        expected: String,
    },
    /// A link in `pg_tblspc` that leads nowhere: the tablespace was moved, or is not mounted.
    Dangling {
        /// What the link says.
        target: PathBuf,
    },
    /// A size in the middle of a block. The whole blocks before are listed.
    PartialBlock {
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// More than a segment holds.
    TooLong {
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// A later segment exists, this one does not.
    MissingSegment {
        /// The later segment's number.
        next: u32,
    },
    /// A later segment has blocks, this one is not full.
    ShortSegment {
        /// Size of the file in bytes.
        bytes: u64,
        /// The later segment's number.
        next: u32,
    },
    /// It is not there, though the catalog says so.
    Missing,
    /// Not a name that a server gives to anything here; not listed.
    UnknownName,
}

impl ProblemKind {
    /// Whether data may be lost or unread. A file of unknown name is a curiosity only.
    pub fn is_finding(&self) -> bool {
        !matches!(self, ProblemKind::UnknownName)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.kind)
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block_size = BLOCK_SIZE as u64;
        match self {
            ProblemKind::Unreadable(error) => write!(f, "could not be read: {error}"),
            ProblemKind::Symlink => f.write_str(
                "is a symbolic link, expected a file or directory of the cluster; not followed",
            ),
            ProblemKind::NotAFile => f.write_str("is not a plain file; not read"),
            ProblemKind::NotATablespace { expected } => {
                write!(f, "is not a tablespace of this cluster: it has no directory {expected}")
            }
            ProblemKind::Dangling { target } => {
                write!(f, "leads to \"{}\", which is not there; not read", target.display())
            }
            ProblemKind::PartialBlock { bytes } => write!(
                f,
                "size {bytes} is not a multiple of {block_size}: block {} of the file has {} bytes",
                bytes / block_size,
                bytes % block_size
            ),
            ProblemKind::TooLong { bytes } => write!(
                f,
                "size {bytes} is more than a segment holds, expected at most {}",
                u64::from(SEGMENT_BLOCKS) * block_size
            ),
            ProblemKind::MissingSegment { next } => {
                write!(f, "segment is missing, while segment {next} exists")
            }
            ProblemKind::ShortSegment { bytes, next } => write!(
                f,
                "segment has {} blocks, expected {SEGMENT_BLOCKS}, since segment {next} has blocks",
                bytes / block_size
            ),
            ProblemKind::Missing => f.write_str("is missing, though the catalog names it"),
            ProblemKind::UnknownName => f.write_str("has a name that means nothing here; not read"),
        }
    }
}
