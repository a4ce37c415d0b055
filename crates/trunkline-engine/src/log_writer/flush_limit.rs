//! How many flushes may be in flight at once: a number, or what is measured when the log is opened.

use std::fmt;

/// The most flushes in flight that are tried.
const MEASURED_MAX: usize = 8;

/// How many flushes of the WAL may be in flight at once. Each takes a session and 256 kB of the page region.
///
/// More than 1 pays only where the storage syncs one file for several callers in parallel, and takes long for it
/// (decision 0046).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushLimit {
    /// This number. 0 counts as 1.
    Fixed(usize),
    /// 1, 2, 4 or 8, measured when the log is opened ([`FlushRates`](super::FlushRates)), which takes up to half a second.
    Auto,
}

impl FlushLimit {
    /// The largest number that this can mean.
    pub fn most(self) -> usize {
        match self {
            Self::Fixed(number) => number.max(1),
            Self::Auto => MEASURED_MAX,
        }
    }
}

impl Default for FlushLimit {
    /// One flush at a time.
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl fmt::Display for FlushLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(_) => write!(f, "{}", self.most()),
            Self::Auto => f.write_str("auto"),
        }
    }
}
