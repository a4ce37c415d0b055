//! I/O classes: the purpose of an I/O, which determines how many handles it may take.
//!
//! Handles are a shared, bounded resource. Without classes, a large scan that reads ahead could
//! take all of them, and a commit would then have to wait for a handle just to flush the log. We
//! therefore keep two reserves: one for the log alone, and one for the log and foreground reads.
//! PostgreSQL doesn't need classes, because each backend has its own handles.

/// The purpose of an I/O. The class determines how much of the handle table it may use, and which
/// counters it is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// The write-ahead log. May use every handle.
    Log = 0,
    /// A read a session is waiting for. May use all handles except the log's reserve.
    Foreground = 1,
    /// Read-ahead. Like all classes below, it may use neither reserve.
    LookAhead = 2,
    /// Flushes of victims: dirty pages that must be written before their buffers can be reused.
    Eviction = 3,
    /// Writes of a checkpoint.
    Checkpoint = 4,
    /// Verification, prewarming and other bulk work.
    Maintenance = 5,
}

/// All classes, most important first.
pub const CLASSES: [Class; 6] = [
    Class::Log,
    Class::Foreground,
    Class::LookAhead,
    Class::Eviction,
    Class::Checkpoint,
    Class::Maintenance,
];

impl Class {
    /// The name shown in views.
    pub fn name(self) -> &'static str {
        match self {
            Class::Log => "log",
            Class::Foreground => "foreground",
            Class::LookAhead => "look-ahead",
            Class::Eviction => "eviction",
            Class::Checkpoint => "checkpoint",
            Class::Maintenance => "maintenance",
        }
    }

    pub(crate) fn from_number(number: u8) -> Self {
        CLASSES.get(usize::from(number)).copied().unwrap_or(Class::Maintenance)
    }
}
