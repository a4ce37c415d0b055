//! The I/O methods, as values of the setting `io_method`.
//!
//! Handles record the method they were submitted through, so this type is in a layer below the
//! methods.

use crate::named_enum::named_enum;
use std::fmt;

named_enum! {
    /// An I/O method (`io_method`).
    #[derive(Hash)]
    enum MethodKind {
        /// The issuing thread executes its I/O itself, one I/O after another.
        Sync = "sync",
        /// A pool of worker threads that adapts its size to the load.
        Worker = "worker",
        /// Linux io_uring. A driver thread submits I/O and reaps completions.
        IoUring = "io_uring",
        /// A method supplied by the embedder (`Builder::custom_method`, feature `sim`).
        Custom = "custom",
    }
    /// All methods.
    const METHODS;
    /// The value of `io_method`.
    fn name;
}

impl fmt::Display for MethodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
