//! Findings: problems and their locations.
//!
//! A finding names the file and, if known, the relation, block and line pointer.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use trunkline_aio::facade::Arc;
use trunkline_format::{BlockNo, Finding as PageFinding};

use super::content_problem::ContentProblem;
use super::length_bound::LengthProof;
use crate::datadir::ProblemKind;
use crate::replay::PageRedoError;

/// One problem.
#[derive(Debug)]
pub struct Finding {
    /// The file. The path includes the data directory.
    pub path: PathBuf,
    /// Database, schema and relation, quoted. `None` if the catalog was not read.
    pub relation: Option<Arc<str>>,
    /// The block number within the relation, which continues across segments. `None` if the problem
    /// concerns the whole file.
    pub block: Option<BlockNo>,
    /// The line pointer's number, starting at 1. `None` if the problem doesn't concern a line
    /// pointer, or if its text already includes the line pointer.
    pub item: Option<u16>,
    /// The problem.
    pub kind: FindingKind,
    /// Number of other problems of the same kind, on the same page of a table or in the same index,
    /// that we don't list.
    pub more: u64,
}

/// The kinds of problems.
#[derive(Debug, Error)]
pub enum FindingKind {
    /// A page is invalid.
    #[error("{0}")]
    Page(PageFinding),
    /// A block could not be read.
    #[error("could not be read: {0}")]
    Unreadable(io::Error),
    /// The file could not be opened.
    #[error("could not be opened: {0}")]
    NotOpened(io::Error),
    /// The page can't be built from the log.
    #[error("{0}")]
    NotReplayed(PageRedoError),
    /// Too many blocks of the file couldn't be read, so we skipped this block and all later ones.
    #[error("not read, as too many blocks before it could not be read")]
    GaveUp,
    /// The file was shorter when it was read than when it was listed.
    #[error("file ended while it was read: {found} bytes found, {expected} expected")]
    Shrank {
        /// Its size in bytes when it ended.
        found: u64,
        /// The file's size in bytes when it was listed.
        expected: u64,
    },
    /// Pages at the end of the relation are missing.
    #[error("relation has {found} blocks, expected at least {expected}: {proof}")]
    Short {
        /// The number of blocks of the relation.
        found: BlockNo,
        /// The least number of blocks that it must have.
        expected: BlockNo,
        /// The reference to the last of these blocks.
        proof: LengthProof,
    },
    /// A problem with the file itself, found in the listing.
    #[error("{0}")]
    File(ProblemKind),
    /// The pages are valid, but their contents are not.
    #[error("{0}")]
    Content(ContentProblem),
}

impl FindingKind {
    /// Whether `pg_checksums --check` counts this as a bad checksum.
    pub fn is_bad_checksum(&self) -> bool {
        matches!(self, FindingKind::Page(PageFinding::Checksum { .. }))
    }

    /// Whether this is an invalid page that `pg_checksums --check` doesn't report, either because
    /// the checksum is correct or because the page is considered new.
    pub fn is_beyond_checksums(&self) -> bool {
        matches!(self, FindingKind::Page(_)) && !self.is_bad_checksum()
    }

    /// Whether we lack the permission to read a file or directory, so that we know nothing about its
    /// contents.
    pub fn is_denied(&self) -> bool {
        match self {
            FindingKind::Unreadable(error) | FindingKind::NotOpened(error) => {
                error.kind() == io::ErrorKind::PermissionDenied
            }
            FindingKind::File(problem) => problem.is_denied(),
            _ => false,
        }
    }

    /// A name for the kind of finding, for programs that read the report. It must not change
    /// between releases.
    pub fn name(&self) -> &'static str {
        match self {
            FindingKind::Page(PageFinding::Checksum { .. }) => "checksum",
            FindingKind::Page(_) => "page",
            FindingKind::Unreadable(_) => "unreadable",
            FindingKind::NotOpened(_) => "not_opened",
            FindingKind::NotReplayed(_) => "not_replayed",
            FindingKind::GaveUp => "gave_up",
            FindingKind::Shrank { .. } => "shrank",
            FindingKind::Short { .. } => "short",
            FindingKind::File(_) => "file",
            FindingKind::Content(problem) => problem.name(),
        }
    }
}

impl Finding {
    /// Returns the file at fault. That is the file of the finding, unless a value is missing because
    /// a file of the TOAST table can't be used.
    pub fn file_at_fault(&self) -> &Path {
        match &self.kind {
            FindingKind::Content(ContentProblem::Toast { file: Some(file), .. }) => file,
            _ => &self.path,
        }
    }
}

/// The problem without the file name, for example `block 17: checksum 0x1234 found, 0x5678
/// expected`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(block) = self.block {
            write!(f, "block {block}: ")?;
        }
        if let Some(item) = self.item {
            write!(f, "line pointer {item}: ")?;
        }
        self.kind.fmt(f)?;
        match self.more {
            0 => Ok(()),
            more => write!(f, " (and {more} more like this)"),
        }
    }
}
