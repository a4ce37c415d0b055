//! The SLRUs that we read, and where their segments are.

use std::path::{Path, PathBuf};

use super::commit_log;
use super::multixact::{self, MultixactLayout};

/// One of the three SLRUs that we read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slru {
    /// `pg_xact`: the commit log.
    CommitLog,
    /// `pg_multixact/offsets`.
    Offsets,
    /// `pg_multixact/members`.
    Members,
}

impl Slru {
    /// The directory of the segments, relative to the data directory.
    pub fn directory(self) -> &'static str {
        match self {
            Self::CommitLog => commit_log::DIRECTORY,
            Self::Offsets => multixact::OFFSETS_DIRECTORY,
            Self::Members => multixact::MEMBERS_DIRECTORY,
        }
    }

    /// The path of a segment in the data directory. The length of its name depends on the PostgreSQL
    /// version.
    pub fn path(self, layout: MultixactLayout, segment: u64) -> PathBuf {
        let name = match self {
            Self::CommitLog => commit_log::segment_name(segment),
            Self::Offsets => layout.offsets_name(segment),
            Self::Members => layout.members_name(segment),
        };
        Path::new(self.directory()).join(name)
    }
}
