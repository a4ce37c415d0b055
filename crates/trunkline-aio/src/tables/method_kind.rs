//! The I/O methods, as values of the setting `io_method`.
//!
//! Handles record the method they were submitted through, so this type is in a layer below the
//! methods.

use std::fmt;

/// An I/O method (`io_method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MethodKind {
    /// The issuing thread executes its I/O itself, one I/O after another.
    Sync = 0,
    /// A pool of worker threads that adapts its size to the load.
    Worker = 1,
    /// Linux io_uring. A driver thread submits I/O and reaps completions.
    IoUring = 2,
    /// A method supplied by the embedder (`Builder::custom_method`, feature `sim`).
    Custom = 3,
}

impl MethodKind {
    /// The value of `io_method`.
    pub fn name(self) -> &'static str {
        match self {
            MethodKind::Sync => "sync",
            MethodKind::Worker => "worker",
            MethodKind::IoUring => "io_uring",
            MethodKind::Custom => "custom",
        }
    }

    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            1 => MethodKind::Worker,
            2 => MethodKind::IoUring,
            3 => MethodKind::Custom,
            _ => MethodKind::Sync,
        }
    }
}

impl fmt::Display for MethodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
