//! A method and a way, buffered or direct: what each line of the demo's tables begins with, for people
//! and for programs.
//!
//! The table of reads and that of checkpoints are made from it alike, and measure bars and times alike.

use std::fmt;

use serde::Serialize;
use trunkline_aio::MethodKind;
use trunkline_engine::settings::IoMethod;

/// Characters of the longest bar.
pub(super) const BAR_WIDTH: usize = 20;

/// A method, and whether past the system's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) asked: IoMethod,
    pub(super) used: MethodKind,
    pub(super) direct: bool,
}

impl Config {
    pub(super) fn way(self) -> &'static str {
        if self.direct { "direct" } else { "buffered" }
    }

    /// The first cells of a line: both names, empty if they are those of the line before.
    pub(super) fn cells(self, previous: &mut Option<Config>) -> Vec<String> {
        match previous.replace(self) == Some(self) {
            true => vec![String::new(); 2],
            false => vec![self.method_name(), self.way().to_owned()],
        }
    }

    /// The method that was asked for, and that in force if it is another.
    fn method_name(self) -> String {
        match self.asked.name() == self.used.name() {
            true => self.asked.name().to_owned(),
            false => format!("{} ({})", self.asked, self.used),
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method_name(), self.way())
    }
}

/// What stands in the place of numbers where a file system has no direct I/O.
pub(super) fn not_on(file_system: &str) -> String {
    format!("not on {file_system}")
}

/// The same for programs.
pub(super) fn no_direct(file_system: &str) -> String {
    format!("no direct I/O on {file_system}")
}

/// A time in words, with two digits that count.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// The configuration, for programs.
#[derive(Serialize)]
pub(super) struct JsonConfig {
    io_method: &'static str,
    io_method_used: &'static str,
    io_direct: bool,
}

impl JsonConfig {
    pub(super) fn new(config: Config) -> JsonConfig {
        JsonConfig {
            io_method: config.asked.name(),
            io_method_used: config.used.name(),
            io_direct: config.direct,
        }
    }
}
