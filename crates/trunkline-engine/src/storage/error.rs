//! Why a relation's file cannot be used, by what the caller can do about it.
//!
//! Texts name the file, what was found and what was expected.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use trunkline_aio::file_system_name;
use trunkline_format::{BLOCK_SIZE, BlockNo, SEGMENT_BLOCKS};

/// See the module.
#[derive(Debug)]
pub enum StorageError {
    /// The operating system refused. Another user, mount or limit may help.
    Io {
        /// What was tried, as in "could not ... ".
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file of a segment is not there: the relation is gone, was cut off, or has lost a part.
    SegmentMissing {
        /// Where it should be.
        path: PathBuf,
        /// The block that was wanted, counted over all segments.
        block: BlockNo,
    },
    /// A symbolic link is where the file should be: it may lead out of the cluster.
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The file system does not offer direct I/O. The cluster can be read through the page cache.
    Direct {
        /// A file on it.
        path: PathBuf,
        /// What kind of file system it is.
        file_system: String,
    },
    /// Direct I/O wants coarser pieces than blocks. The cluster can be read through the page cache.
    Alignment {
        /// A file on it.
        path: PathBuf,
        /// What kind of file system it is.
        file_system: String,
        /// What offsets and lengths must be multiples of there, in bytes.
        alignment: u32,
    },
    /// A segment is longer than a segment can be: it was made with other sizes, or is damaged.
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        bytes: u64,
        /// The most it may have, in bytes.
        most: u64,
    },
    /// The cluster was opened for reading only.
    ReadOnly {
        /// Its directory.
        path: PathBuf,
    },
    /// A relation could not be cut off or removed after its pages had been forgotten: what was changed
    /// in them since they were last written is lost, and the file still has what they were before. It
    /// must not be used until cutting it off, or removing it, has gone well.
    Damaged {
        /// What was tried, as in "could not ... ".
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The first block whose changes are lost, counted over all segments.
        block: BlockNo,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no such block.
    BeyondEnd {
        /// The file that it would be in.
        path: PathBuf,
        /// The block that was wanted, counted over all segments.
        block: BlockNo,
        /// Blocks that there are, or can be.
        blocks: BlockNo,
    },
}

impl StorageError {
    /// What an error at opening means.
    pub(super) fn opening(path: PathBuf, block: BlockNo, direct: bool, source: io::Error) -> Self {
        match errno(&source) {
            _ if source.kind() == io::ErrorKind::NotFound => Self::SegmentMissing { path, block },
            Some(Errno::LOOP) => Self::Link { path },
            Some(Errno::INVAL | Errno::OPNOTSUPP) if direct => Self::direct(path),
            _ => Self::Io { operation: "open file", path, source },
        }
    }

    /// What an error at asking for the length means.
    pub(super) fn examining(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match errno(&source) {
            Some(Errno::LOOP) => Self::Link { path },
            _ => Self::Io { operation: "examine file", path, source },
        }
    }

    /// Direct I/O is refused.
    pub(super) fn direct(path: PathBuf) -> Self {
        Self::Direct { file_system: file_system_of(&path), path }
    }

    /// Direct I/O is too coarse.
    pub(super) fn alignment(path: PathBuf, alignment: u32) -> Self {
        Self::Alignment { file_system: file_system_of(&path), path, alignment }
    }

    /// Whether closing another file may help.
    pub(super) fn is_shortage(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(errno(source), Some(Errno::MFILE | Errno::NFILE))
    }

    /// The file that it is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::SegmentMissing { path, .. }
            | Self::Link { path }
            | Self::Direct { path, .. }
            | Self::Alignment { path, .. }
            | Self::TooLong { path, .. }
            | Self::ReadOnly { path }
            | Self::Damaged { path, .. }
            | Self::BeyondEnd { path, .. } => path,
        }
    }

    /// What to do about it, without full stop.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("run as the user that owns the data directory")
            }
            Self::Io { .. } if self.is_shortage() => {
                Some("raise the limit of open files (ulimit -n)")
            }
            Self::Damaged { .. } => Some("try again before anybody uses the relation"),
            Self::Direct { .. } | Self::Alignment { .. } => {
                Some("read through the cache: leave io_direct empty")
            }
            _ => None,
        }
    }
}

fn errno(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}

/// The file itself may not be there any more, its directory rather is.
fn file_system_of(path: &Path) -> String {
    file_system_name(path.parent().unwrap_or(path))
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path().display();
        match self {
            Self::Io { operation, source, .. } => {
                write!(f, "could not {operation} \"{name}\": {source}")
            }
            Self::SegmentMissing { block, .. } => {
                write!(f, "segment \"{name}\" is missing, block {block} was wanted from it")
            }
            Self::Link { .. } => write!(
                f,
                "\"{name}\" is a symbolic link, expected a file of the cluster; not followed"
            ),
            Self::Direct { file_system, .. } => write!(
                f,
                "\"{name}\" cannot be opened for direct I/O: the file system, {file_system}, does \
                 not support it"
            ),
            Self::Alignment { file_system, alignment, .. } => write!(
                f,
                "\"{name}\" cannot be read by direct I/O: the file system, {file_system}, wants \
                 multiples of {alignment} bytes, expected at most {BLOCK_SIZE}"
            ),
            Self::TooLong { bytes, most, .. } => write!(
                f,
                "segment \"{name}\" has {bytes} bytes, expected at most {most} \
                 ({} blocks of {BLOCK_SIZE})",
                most / BLOCK_SIZE as u64
            ),
            Self::ReadOnly { .. } => {
                write!(f, "\"{name}\" was opened for reading only; nothing in it is changed")
            }
            Self::Damaged { operation, block, source, .. } => write!(
                f,
                "could not {operation} \"{name}\": {source}; changes from block {block} on are lost, \
                 the relation is damaged"
            ),
            Self::BeyondEnd { block, blocks, .. } => write!(
                f,
                "block {block} is beyond the end, \"{name}\": the relation has {blocks} blocks, \
                 {SEGMENT_BLOCKS} to a segment"
            ),
        }
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::Damaged { source, .. } => Some(source),
            _ => None,
        }
    }
}
