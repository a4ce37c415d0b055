//! I/O operations: read, write, fsync, fdatasync, writeback.
//!
//! PostgreSQL's asynchronous I/O supports only `readv` and `writev`. We added the other operations
//! for checkpoints, so that a checkpoint can keep many fsyncs in flight instead of issuing them one
//! after another.

use crate::named_enum::named_enum;

named_enum! {
    /// What an I/O does to its file.
    #[derive(Hash, PartialOrd, Ord)]
    enum Operation {
        /// Reads consecutive bytes of the file into several pieces of memory (preadv(2)).
        Readv = "readv",
        /// Writes several pieces of memory to consecutive bytes of the file (pwritev(2)). With
        /// [`Io::durable`](crate::Io::durable), the data is durable when the write completes.
        Writev = "writev",
        /// fsync(2): makes data and metadata durable.
        Fsync = "fsync",
        /// fdatasync(2): makes the data durable, along with the metadata needed to read it.
        Fdatasync = "fdatasync",
        /// sync_file_range(2): asks the kernel to start writing back a range's dirty page-cache
        /// pages. It doesn't make anything durable.
        BeginWriteback = "sync_file_range",
    }
    /// All operations, in the order of their numbers.
    pub const OPERATIONS;
    /// The text of `pg_aios.operation`.
    fn name;
}

impl Operation {
    /// Whether the operation moves bytes between the file and memory, so that its result is a byte
    /// count.
    pub(crate) fn transfers(self) -> bool {
        matches!(self, Operation::Readv | Operation::Writev)
    }
}
