//! I/O operations: read, write, fsync, fdatasync, writeback.
//!
//! PostgreSQL's asynchronous I/O only has `readv` and `writev`. The other operations are for
//! checkpoints, which can thus have many fsyncs in flight instead of calling them one after
//! another.

/// What an I/O does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Reads consecutive bytes of the file into several pieces of memory (preadv(2)).
    Readv = 0,
    /// Writes several pieces of memory to consecutive bytes of the file (pwritev(2)).
    Writev = 1,
    /// fsync(2): makes data and metadata durable.
    Fsync = 2,
    /// fdatasync(2): makes the data durable, along with the metadata needed to read it.
    Fdatasync = 3,
    /// sync_file_range(2): asks the kernel to start writing back a range's dirty page-cache pages.
    /// It doesn't make anything durable.
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

    /// Whether the operation moves bytes between the file and memory, so that its result is a byte
    /// count.
    pub(crate) fn transfers(self) -> bool {
        matches!(self, Operation::Readv | Operation::Writev)
    }

    pub(crate) fn from_number(number: u8) -> Self {
        OPERATIONS.get(usize::from(number)).copied().unwrap_or(Operation::Readv)
    }
}
