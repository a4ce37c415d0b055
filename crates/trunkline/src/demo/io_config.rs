//! An I/O configuration: the combination of an I/O method with either buffered or direct I/O. Each
//! line of the demo's tables starts with its configuration.

use std::fmt;

use serde::Serialize;
use trunkline_aio::MethodKind;
use trunkline_engine::settings::IoMethod;

use crate::output::{cache_mode, object};

/// Length of the longest bar in characters.
pub(super) const BAR_WIDTH: usize = 20;

/// An I/O method, and whether I/O bypasses the operating system's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IoConfig {
    pub(super) requested: IoMethod,
    pub(super) used: MethodKind,
    pub(super) direct: bool,
}

impl IoConfig {
    /// Every method, first buffered and then direct.
    pub(super) fn all() -> impl Iterator<Item = (IoMethod, bool)> {
        IoMethod::ALL.into_iter().flat_map(|method| [(method, false), (method, true)])
    }

    /// Returns the first two cells of a line. They are left empty if they would repeat the cells of
    /// the previous line.
    pub(super) fn cells(self, previous: &mut Option<IoConfig>) -> Vec<String> {
        match previous.replace(self) == Some(self) {
            true => vec![String::new(); 2],
            false => vec![self.method_name(), cache_mode(self.direct).to_owned()],
        }
    }

    /// The requested method, and the method in use if it differs.
    fn method_name(self) -> String {
        match self.requested.name() == self.used.name() {
            true => self.requested.name().to_owned(),
            false => format!("{} ({})", self.requested, self.used),
        }
    }

    pub(super) fn json(self) -> impl Serialize {
        object! {
            io_method: self.requested.name(),
            io_method_used: self.used.name(),
            io_direct: self.direct,
        }
    }
}

impl fmt::Display for IoConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method_name(), cache_mode(self.direct))
    }
}

/// Why a line has no numbers.
#[derive(Debug)]
pub(super) enum NotRun {
    /// The run would have taken too long.
    Skipped,
    /// The file system doesn't support direct I/O. The value is the file system's type.
    NoDirect(String),
}

impl NotRun {
    /// The cell of the line that says so.
    pub(super) fn cell(&self) -> String {
        match self {
            NotRun::Skipped => "skipped".to_owned(),
            NotRun::NoDirect(file_system) => format!("not on {file_system}"),
        }
    }

    pub(super) fn json(&self) -> impl Serialize + use<> {
        object! {
            unavailable: match self {
                NotRun::Skipped => "skipped to save time".to_owned(),
                NotRun::NoDirect(file_system) => format!("no direct I/O on {file_system}"),
            },
        }
    }
}

/// Formats a time in milliseconds or seconds.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}
