//! Storage manager errors: why a relation's file can't be used.
//!
//! There is one variant for each possible reaction: retry as another user, read through the page
//! cache, or skip a relation that has lost a segment. Every message includes the file, what we
//! found and what we expected.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use trunkline_aio::file_system_name;
use trunkline_format::{BLOCK_SIZE, BlockNo};

use crate::Location;

/// Why a relation's file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// A system call failed. It may succeed as another user, on another mount, or with a higher
    /// limit.
    #[error("could not {operation} \"{}\": {source}", path.display())]
    Io {
        /// What failed, as in "could not ... ".
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The system call's error.
        source: io::Error,
    },
    /// The segment file doesn't exist: the relation was removed or truncated, or has lost a
    /// segment.
    #[error("{location} does not exist: the segment file is missing")]
    SegmentMissing {
        /// The requested block.
        location: Location,
    },
    /// The file is a symbolic link, which might lead out of the cluster.
    #[error(
        "\"{}\" is a symbolic link, expected a file of the cluster; not followed",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The file system doesn't support direct I/O, but the cluster can still be read through the
    /// page cache.
    #[error(
        "\"{}\" cannot be opened for direct I/O: the file system, {file_system}, does not support it",
        path.display()
    )]
    Direct {
        /// A file on that file system.
        path: PathBuf,
        /// The file system type.
        file_system: String,
    },
    /// Direct I/O needs a coarser alignment than a block, but the cluster can still be read through
    /// the page cache.
    #[error(
        "\"{}\" cannot be read by direct I/O: the file system, {file_system}, wants multiples of \
         {alignment} bytes, expected at most {BLOCK_SIZE}",
        path.display()
    )]
    Alignment {
        /// A file on that file system.
        path: PathBuf,
        /// The file system type.
        file_system: String,
        /// The required alignment of offsets and lengths in bytes.
        alignment: u32,
    },
    /// A segment file is larger than a segment: it was created with a different segment size, or is
    /// damaged.
    #[error(
        "segment \"{}\" has {bytes} bytes, expected at most {most} ({} blocks of {BLOCK_SIZE})",
        path.display(),
        most / BLOCK_SIZE as u64
    )]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        bytes: u64,
        /// The maximum valid length in bytes.
        most: u64,
    },
    /// The cluster was opened read-only.
    #[error("\"{}\" was opened for reading only; nothing in it is changed", path.display())]
    ReadOnly {
        /// The cluster's directory.
        path: PathBuf,
    },
    /// Truncating or removing a relation failed after its pages had been invalidated. All changes
    /// since those pages were last flushed are lost, and the file still contains older versions of
    /// the pages. The caller must not use the relation until it has successfully truncated or
    /// removed it.
    #[error(
        "could not {operation} \"{}\": {source}; changes from block {} on are lost, the relation is \
         damaged",
        location.path().display(),
        location.block().unwrap_or_default()
    )]
    Damaged {
        /// What failed, as in "could not ... ".
        operation: &'static str,
        /// The first block whose changes are lost.
        location: Location,
        /// The system call's error.
        source: io::Error,
    },
    /// The block is beyond the end of the relation.
    #[error("{location} does not exist: the relation has {blocks} blocks")]
    BeyondEnd {
        /// The requested block.
        location: Location,
        /// The relation's length in blocks, or the maximum length.
        blocks: BlockNo,
    },
}

impl StorageError {
    /// Classifies an open(2) error. If we opened the file with `O_DIRECT`, `EINVAL` means that the
    /// file system doesn't support that; otherwise we report `EINVAL` unchanged.
    pub(super) fn opening(location: Location, direct: bool, source: io::Error) -> Self {
        let path = location.path().to_owned();
        match Errno::from_io_error(&source) {
            _ if source.kind() == io::ErrorKind::NotFound => Self::SegmentMissing { location },
            Some(Errno::LOOP) => Self::Link { path },
            Some(Errno::INVAL | Errno::OPNOTSUPP) if direct => Self::direct(path),
            _ => Self::Io { operation: "open file", path, source },
        }
    }

    /// Classifies an fstat(2) or lstat(2) error.
    pub(super) fn examining(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match Errno::from_io_error(&source) {
            Some(Errno::LOOP) => Self::Link { path },
            _ => Self::Io { operation: "examine file", path, source },
        }
    }

    /// The error for a file that can't be opened for direct I/O.
    pub(super) fn direct(path: PathBuf) -> Self {
        Self::Direct { file_system: file_system_of(&path), path }
    }

    /// The error for a file that needs a coarser direct I/O alignment than a block.
    pub(super) fn alignment(path: PathBuf, alignment: u32) -> Self {
        Self::Alignment { file_system: file_system_of(&path), path, alignment }
    }

    /// Whether the process or the system is out of file descriptors, so that closing another file
    /// may help.
    pub(super) fn is_out_of_descriptors(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Link { path }
            | Self::Direct { path, .. }
            | Self::Alignment { path, .. }
            | Self::TooLong { path, .. }
            | Self::ReadOnly { path } => path,
            Self::SegmentMissing { location }
            | Self::Damaged { location, .. }
            | Self::BeyondEnd { location, .. } => location.path(),
        }
    }

    /// What to do about it, without a trailing period.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("run as the user that owns the data directory")
            }
            Self::Io { .. } if self.is_out_of_descriptors() => {
                Some("raise the limit of open files (ulimit -n)")
            }
            Self::Damaged { .. } => Some("try again before the relation is used"),
            Self::Direct { .. } | Self::Alignment { .. } => {
                Some("read through the cache: leave io_direct empty")
            }
            _ => None,
        }
    }
}

/// Look up the directory's file system, because the file itself may no longer exist.
fn file_system_of(path: &Path) -> String {
    file_system_name(path.parent().unwrap_or(path))
}
