//! The operations of an I/O: read, write, fsync, fdatasync, writeback.
//!
//! PostgreSQL's asynchronous I/O has only `readv` and `writev`. The others are what a checkpoint
//! needs, so that it can have many fsyncs in flight instead of calling them one after the other.

/// What an I/O does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Reads from consecutive offsets of the file into several pieces of memory (preadv(2)).
    Readv = 0,
    /// Writes several pieces of memory to consecutive offsets of the file (pwritev(2)).
    Writev = 1,
    /// fsync(2): makes data and metadata durable.
    Fsync = 2,
    /// fdatasync(2): makes the data durable, and the metadata needed to read it.
    Fdatasync = 3,
    /// sync_file_range(2): asks the kernel to start writing back the dirty page-cache pages of a
    /// range. It makes nothing durable.
    BeginWriteback = 4,
}

/// All operations, in the order of their numbers.
pub const OPERATIONS: [Operation; 5] = [
    Operation::Readv,
    Operation::Writev,
    Operation::Fsync,
    Operation::Fdatasync,
    Operation::BeginWriteback,
];

impl Operation {
    /// The text of `pg_aios.operation`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Readv => "readv",
            Operation::Writev => "writev",
            Operation::Fsync => "fsync",
            Operation::Fdatasync => "fdatasync",
            Operation::BeginWriteback => "sync_file_range",
        }
    }

    /// Whether it moves bytes between the file and memory, so that its result is a byte count.
    pub(crate) fn transfers(self) -> bool {
        matches!(self, Operation::Readv | Operation::Writev)
    }

    pub(crate) fn from_number(number: u8) -> Self {
        OPERATIONS.get(usize::from(number)).copied().unwrap_or(Operation::Readv)
    }
}
