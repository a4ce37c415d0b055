//! References to an I/O that never keep its handle from being reused.
//! The handle is freed by whoever completes it; a reference only notices that it is gone.

/// A handle index and a generation: names one I/O of one instance, for ever.
///
/// Any number of copies may exist. When the I/O is complete the handle goes into its next
/// generation, and every copy of the old reference is simply stale. It can be taken only before
/// the I/O is submitted: afterwards the handle may already serve somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaitRef {
    pub(crate) index: u32,
    pub(crate) generation: u64,
}

impl WaitRef {
    /// Index of the handle (`pg_aios.io_id`).
    pub fn io_id(self) -> u32 {
        self.index
    }

    /// Generation of the handle (`pg_aios.io_generation`).
    pub fn generation(self) -> u64 {
        self.generation
    }
}
