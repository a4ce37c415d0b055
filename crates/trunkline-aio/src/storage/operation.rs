//! The operations of an I/O: read, write, fsync, fdatasync, writeback.
//!
//! They are the operations of PostgreSQL's asynchronous I/O plus those that a checkpoint needs, so
//! that a checkpoint can have many fsyncs in flight.

/// What an I/O does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Scattered read into memory.
    Readv = 0,
    /// Gathered write from memory.
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
