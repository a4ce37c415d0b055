//! I/O classes: what an I/O is for, which decides how many handles it may take.
//!
//! Handles are a shared, bounded resource. Without classes, a large scan that reads ahead could
//! take all of them, and a commit would then have to wait for a handle just to flush the log. We
//! therefore keep two reserves: one for the log alone, and one for the log and foreground reads.
//! PostgreSQL doesn't need classes, because each backend has its own handles.

/// What an I/O is for. The class decides which part of the handle table it may use, and how it is
/// counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// The write-ahead log. May use every handle.
    Log = 0,
    /// A read that a session is waiting for. May use all handles but the reserve of the log.
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

/// All classes, the most important first.
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
