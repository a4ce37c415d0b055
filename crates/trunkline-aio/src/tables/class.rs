//! I/O classes: the purpose of an I/O, which determines how many handles it may take, and which
//! queued I/O goes first.
//!
//! Handles are a shared and limited resource. Without classes, a large scan with read-ahead could
//! take all of them, and a commit would then have to wait for a handle just to flush the log. To
//! prevent that, we keep two reserves: one that only the log may use, and one that is shared by the
//! log and foreground reads. PostgreSQL doesn't need classes, because each backend has its own
//! handles.
//!
//! An I/O that has a handle may still have to wait for a worker or for a place in a ring. The log
//! goes first there as well, and has a reserve (`completion/lanes.rs`).

use crate::named_enum::named_enum;

named_enum! {
    /// The purpose of an I/O. The class determines which of the two reserves of handles the I/O may
    /// draw on, and in which counters we record it.
    #[derive(Hash, PartialOrd, Ord)]
    enum Class {
        /// The write-ahead log. May use every handle. Its I/O overtakes all queued I/O, and places
        /// among the workers and in rings are reserved for it.
        Log = "log",
        /// A read a session is waiting for. May use all handles except the log's reserve. It
        /// overtakes queued I/O of the classes below, up to three times in a row.
        Foreground = "foreground",
        /// Read-ahead. Like all classes below, it may use neither reserve.
        LookAhead = "look-ahead",
        /// Flushes of victims: dirty pages that must be written before their buffers can be reused.
        Eviction = "eviction",
        /// Writes of a checkpoint.
        Checkpoint = "checkpoint",
        /// Verification, prewarming and other bulk work.
        Maintenance = "maintenance",
    }
    /// All classes, most important first.
    pub const CLASSES;
    /// The name shown in views.
    fn name;
}
