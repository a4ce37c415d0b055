//! Outcomes: the result of an I/O in compact form, packed into eight bytes. This is our equivalent
//! of PostgreSQL's `PgAioResult`.
//!
//! A completion can run in any thread and must not allocate memory, so it can't build an error
//! message. Instead, we pack the result into a single word, which can be stored atomically. Later,
//! the issuer asks the callback that decided the outcome to convert that word to text.
//!
//! ```text
//!   63            32 31          6 5      3 2      0
//!  +----------------+-------------+--------+--------+
//!  | count (bytes)  | detail      |reporter| status |
//!  +----------------+-------------+--------+--------+
//! ```
//!
//! The count has room for even more than a full combined I/O (128 blocks of 8 KiB), and the detail
//! has 26 bits. PostgreSQL stores the number of damaged blocks in a seven-bit field, which can't
//! represent 128 blocks.

use crate::named_enum::named_enum;

named_enum! {
    /// How an I/O ended.
    #[derive(Default)]
    enum Status {
        /// Not complete yet.
        #[default]
        Unknown = "UNKNOWN",
        /// All bytes were transferred.
        Ok = "OK",
        /// Fewer bytes than requested, without an error. A count of 0 on a read means end of file.
        Partial = "PARTIAL",
        /// Usable, but a callback repaired or ignored something.
        Warning = "WARNING",
        /// Failed.
        Error = "ERROR",
    }
    /// All statuses, in the order of their numbers.
    const STATUSES;
    /// The text of `pg_aios.result`.
    fn name;
}

/// Largest value of [`Outcome::detail`].
pub const DETAIL_MAX: u32 = (1 << 26) - 1;

/// The result of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// How the I/O ended.
    pub status: Status,
    /// Identifies what decided the outcome: 0 means the method, and n means the n-th callback of
    /// the slot set, counting from 1. That callback can describe the outcome.
    pub reporter: u8,
    /// The errno, if the method decided the outcome. If a callback decided it, that callback
    /// defines what this value means.
    pub detail: u32,
    /// Number of bytes transferred. A callback may lower it, for example to exclude invalid pages.
    pub count: u32,
}

impl Outcome {
    /// Converts a raw result (bytes, or minus errno) of an I/O that asked for `length` bytes.
    pub fn from_raw(raw: i32, length: u32) -> Self {
        match u32::try_from(raw) {
            Ok(count) if count >= length => Self::new(Status::Ok, 0, count),
            Ok(count) => Self::new(Status::Partial, 0, count),
            // No errno exceeds 26 bits, but a custom method may return anything.
            Err(_) => Self::new(Status::Error, raw.unsigned_abs().min(DETAIL_MAX), 0),
        }
    }

    /// Creates an outcome with reporter 0. Callbacks call this too, and their number is filled in
    /// later.
    ///
    /// # Panics
    /// If `detail` exceeds [`DETAIL_MAX`].
    pub fn new(status: Status, detail: u32, count: u32) -> Self {
        assert!(detail <= DETAIL_MAX, "outcome detail {detail} does not fit 26 bits");
        Self { status, reporter: 0, detail, count }
    }

    /// The errno, if the method itself failed.
    pub fn errno(self) -> Option<i32> {
        (self.status == Status::Error && self.reporter == 0).then_some(self.detail as i32)
    }

    /// Whether a read found end of file.
    pub fn is_end_of_file(self) -> bool {
        self.status == Status::Partial && self.count == 0
    }

    /// Packs the outcome into a word. The inverse of [`Outcome::unpack`].
    pub(crate) fn pack(self) -> u64 {
        self.status as u64
            | u64::from(self.reporter & 7) << 3
            | u64::from(self.detail & DETAIL_MAX) << 6
            | u64::from(self.count) << 32
    }

    pub(crate) fn unpack(word: u64) -> Self {
        Self {
            status: Status::from_number((word & 7) as u8),
            reporter: (word >> 3 & 7) as u8,
            detail: (word >> 6) as u32 & DETAIL_MAX,
            count: (word >> 32) as u32,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_every_field_at_its_limit() {
        for status in [Status::Ok, Status::Partial, Status::Warning, Status::Error] {
            let full = Outcome { status, reporter: 4, detail: DETAIL_MAX, count: u32::MAX };
            assert_eq!(Outcome::unpack(full.pack()), full);
        }
    }

    #[test]
    fn raw_results_become_outcomes() {
        assert_eq!(Outcome::from_raw(8192, 8192).status, Status::Ok);
        assert_eq!(Outcome::from_raw(8191, 8192).status, Status::Partial);
        assert!(Outcome::from_raw(0, 8192).is_end_of_file());
        assert_eq!(Outcome::from_raw(0, 0).status, Status::Ok, "an fsync has no length");
        assert_eq!(Outcome::from_raw(-5, 8192).errno(), Some(5));
    }
}
