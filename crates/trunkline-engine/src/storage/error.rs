//! Storage manager errors: why a relation's file can't be used.
//!
//! We have a separate variant for each error that the caller can react to differently, for example
//! by retrying as another user, by reading through the page cache, or by skipping a relation that
//! has lost a segment. Every message says which file is affected, what we found and what we
//! expected.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use trunkline_aio::file_system_name;
use trunkline_format::{BLOCK_SIZE, BlockNo};

use crate::Location;
use crate::replay::PageRedoError;

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
    #[error(
        "could not open file \"{}\"{}: No such file or directory",
        location.path().display(),
        target_block(location)
    )]
    SegmentMissing {
        /// The requested block.
        location: Location,
    },
    /// The file is a symbolic link, which might point to a file outside the cluster.
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
    /// Direct I/O requires an alignment larger than a block, but the cluster can still be read
    /// through the page cache.
    #[error(
        "\"{}\" cannot be read by direct I/O: the file system, {file_system}, requires multiples \
         of {alignment} bytes, expected at most {BLOCK_SIZE}",
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
    /// A segment file is larger than a segment can be: it is damaged or was created with a
    /// different segment size.
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
    /// The page can't be built from the log. Other pages of the relation may be readable.
    #[error("{location}: {source}")]
    Replay {
        /// The page.
        location: Location,
        /// What is wrong.
        source: Box<PageRedoError>,
    },
    /// The cluster was opened read-only.
    #[error("\"{}\" was opened for reading only; nothing in it is changed", path.display())]
    ReadOnly {
        /// The cluster's directory.
        path: PathBuf,
    },
    /// Truncating or removing a relation failed after we had already invalidated its pages. Any
    /// changes that had not been flushed by then are lost, so the file still contains old versions
    /// of the pages. The caller must not use the relation until an attempt to truncate or remove it
    /// has succeeded.
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
    /// Turns an error from open(2) into a [`StorageError`]. If we tried to open the file with
    /// `O_DIRECT`, `EINVAL` means that the file system doesn't support direct I/O. Otherwise, we
    /// report `EINVAL` like any other error.
    pub(super) fn opening(location: Location, direct: bool, source: io::Error) -> Self {
        let path = location.path().to_owned();
        match Errno::from_io_error(&source) {
            _ if source.kind() == io::ErrorKind::NotFound => Self::SegmentMissing { location },
            Some(Errno::LOOP) => Self::Link { path },
            _ if direct && Self::is_direct_unsupported(&source) => Self::direct(path),
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

    /// Whether this error from open(2) with `O_DIRECT` means that the file system doesn't support direct I/O.
    pub(crate) fn is_direct_unsupported(source: &io::Error) -> bool {
        matches!(Errno::from_io_error(source), Some(Errno::INVAL | Errno::OPNOTSUPP))
    }

    /// The error for a file that can't be opened for direct I/O.
    pub(crate) fn direct(path: PathBuf) -> Self {
        Self::Direct { file_system: file_system_of(&path), path }
    }

    /// The error for a file whose direct I/O alignment is larger than a block.
    pub(crate) fn alignment(path: PathBuf, alignment: u32) -> Self {
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
            | Self::Replay { location, .. }
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

/// The requested block, as in PostgreSQL's message, unless it is the first one of the relation.
fn target_block(location: &Location) -> String {
    let block = location.block().filter(|block| *block > 0);
    block.map(|block| format!(" (target block {block})")).unwrap_or_default()
}

/// Look up the directory's file system, because the file itself may no longer exist.
fn file_system_of(path: &Path) -> String {
    file_system_name(path.parent().unwrap_or(path))
}
