//! Problems with the files of a data directory. A problem is reported with the file's name, and the
//! job continues with the other files. In contrast, a [`super::DataDirError`] means that we can't
//! read the directory at all.

use std::fmt;
use std::io;
use std::path::PathBuf;

use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};

/// A problem with a file or directory.
#[derive(Debug)]
pub struct Problem {
    /// The file or directory; for a missing segment, its expected path.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: ProblemKind,
}

/// Kinds of problems.
#[derive(Debug)]
pub enum ProblemKind {
    /// It can't be read or examined, so nothing in it is listed.
    Unreadable(io::Error),
    /// A symbolic link in place of a file or directory. We don't follow it, because it could lead
    /// out of the cluster.
    Symlink,
    /// A pipe, socket or device.
    NotAFile,
    /// A link in `pg_tblspc` whose target is not a tablespace of this cluster: it lacks a
    /// directory.
    NotATablespace {
        /// `PG_<major>_<catalog version>`.
        expected: String,
    },
    /// The target of a link in `pg_tblspc` doesn't exist: the tablespace was moved, or isn't
    /// mounted.
    Dangling {
        /// The link's target.
        target: PathBuf,
    },
    /// The file ends in a partial block. We list only the whole blocks before it.
    PartialBlock {
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// The file is larger than a segment.
    TooLong {
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// This segment does not exist, but a later one does.
    MissingSegment {
        /// The later segment's number.
        next: u32,
    },
    /// This segment is not full, but a later one has blocks.
    ShortSegment {
        /// Size of the file in bytes.
        bytes: u64,
        /// The later segment's number.
        next: u32,
    },
    /// The catalog references the file, but it doesn't exist.
    Missing,
    /// A server never uses this name here. Not listed.
    UnknownName,
}

impl ProblemKind {
    /// Whether data may be missing or unread. A file with an unknown name is just a curiosity.
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
