//! Why the files of a log can't be used.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_format::Lsn;
use trunkline_format::wal::SegmentName;

/// A file or folder of the log that can't be used, or one that is missing.
#[derive(Debug, thiserror::Error)]
pub enum LogFilesError {
    /// A system call failed.
    #[error("could not {operation} \"{}\": {source}", path.display())]
    Io {
        /// What failed, as in "could not ... ".
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system call's error.
        source: io::Error,
    },
    /// There are no segment files.
    #[error("{text}")]
    NoSegments {
        /// Where there are none, as a whole sentence.
        text: String,
    },
    /// Two files that were named are the same segment.
    #[error("\"{}\" and \"{}\" are the same segment", path.display(), other.display())]
    Duplicate {
        /// The first.
        path: PathBuf,
        /// The second.
        other: PathBuf,
    },
    /// A directory where a segment file was expected.
    #[error("\"{}\" is a directory", path.display())]
    Directory {
        /// Its path.
        path: PathBuf,
    },
    /// The file's name is that of a segment, but not of one of this size.
    #[error("\"{}\" is not a name of segments of {bytes} bytes", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The segment size.
        bytes: u32,
    },
    /// The file doesn't begin like a segment.
    #[error("\"{}\" is not a log segment: {reason}", path.display())]
    NotASegment {
        /// The file.
        path: PathBuf,
        /// What is wrong with its first page.
        reason: String,
    },
    /// The file is shorter than the header of a page.
    #[error("\"{}\" has {bytes} bytes, too few for a log segment", path.display())]
    TooShort {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// A compressed file can't be decompressed, or contains more than a segment.
    #[error("\"{}\" can't be decompressed: {reason}", path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A history file has a line that no server writes.
    #[error("\"{}\": invalid line {line:?}", path.display())]
    History {
        /// The file.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// A segment that is needed doesn't exist.
    #[error("{0}")]
    Missing(#[from] MissingSegment),
}

/// A segment that doesn't exist, and its neighbours that do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no segment {name}, which contains {place}; {}", neighbours(before, behind))]
pub struct MissingSegment {
    /// The name that it would have on the newest timeline it may be on.
    pub name: SegmentName,
    /// The position that was to be read.
    pub place: Lsn,
    /// The last segment before it.
    pub before: Option<SegmentName>,
    /// The first segment behind it.
    pub behind: Option<SegmentName>,
}

fn neighbours(before: &Option<SegmentName>, behind: &Option<SegmentName>) -> String {
    match (before, behind) {
        (None, None) => "there are no segments at all".to_owned(),
        (Some(before), None) => format!("the last segment is {before}"),
        (None, Some(behind)) => format!("the first segment is {behind}"),
        (Some(before), Some(behind)) => {
            format!("there are {before} before it and {behind} behind it")
        }
    }
}

impl LogFilesError {
    pub(super) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), source }
    }

    /// Whether all files could be read, so that what is wrong is what they contain, or that one is missing.
    pub fn is_readable(&self) -> bool {
        self.is_damage() || matches!(self, Self::NoSegments { .. } | Self::Missing(_))
    }

    /// Whether the log itself is wrong, and not only out of reach.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Name { .. }
                | Self::NotASegment { .. }
                | Self::TooShort { .. }
                | Self::Compressed { .. }
                | Self::History { .. }
        )
    }
}
