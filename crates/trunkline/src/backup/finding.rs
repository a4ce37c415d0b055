//! What is wrong with a backup: one file, and what was found in place of what.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::exit::plain;

/// The name of a manifest.
pub(super) const MANIFEST: &str = "backup_manifest";

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Finding {
    /// The file, relative to the backup.
    file: String,
    kind: &'static str,
    text: String,
}

impl Finding {
    pub(super) fn new(file: &Path, kind: &'static str, text: impl fmt::Display) -> Finding {
        Finding { file: file.display().to_string(), kind, text: plain(text) }
    }

    /// A finding about the log, whose text names the segment.
    pub(super) fn of_log(kind: &'static str, text: impl fmt::Display) -> Finding {
        Finding::new(Path::new("pg_wal"), kind, text)
    }

    /// A finding about the manifest.
    pub(super) fn of_manifest(kind: &'static str, text: impl fmt::Display) -> Finding {
        Finding::new(Path::new(MANIFEST), kind, text)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.text)
    }
}
