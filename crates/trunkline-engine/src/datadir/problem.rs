//! Problems with individual files of a data directory. We report the problem with the name of the
//! file, and the job continues with the other files. In contrast, a [`super::DataDirError`] means
//! that we can't read the directory at all.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};

/// A problem with a file or directory.
#[derive(Debug, Error)]
#[error("{}: {kind}", path.display())]
pub struct Problem {
    /// The file or directory; for a missing segment, its expected path.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: ProblemKind,
}

/// Kinds of problems.
#[derive(Debug, Error)]
pub enum ProblemKind {
    /// The file or directory can't be read or examined, so we can't list what is in it.
    #[error("could not be read: {0}")]
    Unreadable(io::Error),
    /// There is a symbolic link where we expected a file or directory. We don't follow it, because
    /// it could lead out of the cluster.
    #[error("is a symbolic link, expected a file or directory of the cluster; not followed")]
    Symlink,
    /// A pipe, socket or device.
    #[error("is not a regular file; skipped")]
    NotAFile,
    /// A link in `pg_tblspc` points to something that isn't a tablespace of this cluster, because a
    /// directory is missing from it.
    #[error("is not a tablespace of this cluster: it has no directory {expected}")]
    NotATablespace {
        /// `PG_<major>_<catalog version>`.
        expected: String,
    },
    /// The target of a link in `pg_tblspc` doesn't exist. Either the tablespace was moved, or it
    /// isn't mounted.
    #[error("points to \"{}\", which does not exist; skipped", target.display())]
    Dangling {
        /// The link's target.
        target: PathBuf,
    },
    /// The file ends in a partial block. We list only the whole blocks before it.
    #[error(
        "size {bytes} is not a multiple of {BLOCK_SIZE}: block {} of the file has {} bytes",
        bytes / BLOCK_SIZE as u64,
        bytes % BLOCK_SIZE as u64
    )]
    PartialBlock {
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// The file is larger than a segment.
    #[error(
        "size {bytes} is more than a segment holds, expected at most {}",
        u64::from(SEGMENT_BLOCKS) * BLOCK_SIZE as u64
    )]
    TooLong {
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// This segment does not exist, but a later one does.
    #[error("segment is missing, while segment {next} exists")]
    MissingSegment {
        /// The later segment's number.
        next: u32,
    },
    /// This segment is not full, but a later one has blocks.
    #[error(
        "segment has {} blocks, expected {SEGMENT_BLOCKS}, since segment {next} has blocks",
        bytes / BLOCK_SIZE as u64
    )]
    ShortSegment {
        /// Size of the file in bytes.
        bytes: u64,
        /// The later segment's number.
        next: u32,
    },
    /// The catalog references the file, but it doesn't exist.
    #[error("is missing, but the catalog refers to it")]
    Missing,
    /// The catalog names files in the directory, but the directory doesn't exist.
    #[error(
        "is missing, but the catalog refers to {} in it",
        match relations {
            1 => "a relation".to_owned(),
            relations => format!("{relations} relations"),
        }
    )]
    MissingDirectory {
        /// The number of relations.
        relations: u64,
    },
    /// A server never uses this name here. Not listed.
    #[error("does not have a name that PostgreSQL uses here; skipped")]
    UnknownName,
}

impl ProblemKind {
    /// Whether we lack the permission to read it.
    pub fn is_denied(&self) -> bool {
        let ProblemKind::Unreadable(error) = self else { return false };
        error.kind() == io::ErrorKind::PermissionDenied
    }

    /// Whether the problem means that data may be missing or unread. A file with an unknown name,
    /// for example, doesn't.
    pub fn is_finding(&self) -> bool {
        !matches!(self, ProblemKind::UnknownName)
    }
}
