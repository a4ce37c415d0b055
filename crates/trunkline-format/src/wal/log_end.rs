//! **Where a log ends**, and why.
//!
//! A log has no end mark. It ends at the first place where no record can be read. After a crash
//! this is normal: the segment files that follow exist already, filled with zeros or with what they
//! contained before the server recycled them. The caller must decide whether an end is too early, from
//! what it knows about the log, such as the checkpoint in the control file. The reason here helps
//! to tell a log that just stops from one that is damaged.

use thiserror::Error;

use crate::ids::Lsn;

use super::page_header::LogPageError;
use super::record::RecordError;

/// The end of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEnd {
    /// Where the next record would begin.
    pub record: Lsn,
    /// The place that ended the log: `record` itself, or a later page on which the record should
    /// have continued.
    pub place: Lsn,
    /// The reason.
    pub reason: EndReason,
}

/// The reason why no record can be read at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum EndReason {
    /// There are zeros in place of a record. The log was written up to here.
    #[error("nothing has been written here")]
    Unwritten,
    /// The page is not the one that belongs here.
    #[error("{0}")]
    Page(LogPageError),
    /// The record is shorter than its header, or longer than any record.
    #[error("record has a length of {found} bytes, expected 24 to 1069547520")]
    Length {
        /// The length.
        found: u32,
    },
    /// No resource manager has this number.
    #[error("record is of resource manager {found}, which does not exist")]
    Manager {
        /// The number.
        found: u8,
    },
    /// The record doesn't follow the one that was read before it.
    #[error("record follows one at {found}, expected {expected}")]
    Previous {
        /// The previous record according to this one.
        found: Lsn,
        /// The record that was read.
        expected: Lsn,
    },
    /// The `xl_prev` of the first record that is read is not before the record itself.
    #[error("record at {start} has the previous link {found}, which is not before it")]
    PreviousNotBefore {
        /// The previous record according to this one.
        found: Lsn,
        /// The record.
        start: Lsn,
    },
    /// The checksum is wrong.
    #[error("record has the CRC 0x{found:08X}, computed 0x{computed:08X}")]
    Crc {
        /// The checksum in the record.
        found: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// The checksum is right, but the record contradicts itself.
    #[error("{0}")]
    Record(RecordError),
    /// A record should continue on this page, but the page doesn't begin with a continuation. The
    /// record was cut off by a crash.
    #[error("page does not continue the record")]
    NotContinued,
    /// The page continues a record, but of another length.
    #[error("page continues a record with {found} bytes, expected {expected}")]
    Remaining {
        /// Bytes to come, according to the page.
        found: u32,
        /// Bytes to come, according to the record.
        expected: u32,
    },
    /// A record should begin on this page, but the page begins with the rest of another.
    #[error("page begins with the rest of a record, but none was cut at its start")]
    UnexpectedContinuation,
    /// The record that explains why another was cut off names the wrong one.
    #[error("record at {found} is said to have been overwritten, expected the one at {expected}")]
    Overwritten {
        /// The position in the record.
        found: Lsn,
        /// The record that was cut off.
        expected: Lsn,
    },
}

impl EndReason {
    /// Whether this is how the log of a crashed or running server ends: nothing was written, or a
    /// recycled file still has what it contained before, or a record was cut off. Anything else
    /// means damage, unless it is in what a recycled page has kept.
    pub fn is_usual(&self) -> bool {
        matches!(
            self,
            Self::Unwritten
                | Self::NotContinued
                | Self::Page(LogPageError::Empty | LogPageError::Address { .. })
        )
    }

    /// Whether no crash of a server leaves this. Servers write zeros into a new file, and a recycled one has pages of
    /// an earlier part of the same log, so any other page is damage, or another file under this name. Only after a
    /// promotion (`is_promoted`) may it be a page of a later part: segments of the timeline that was left get any numbers.
    pub fn is_never_left_by_a_crash(&self, is_promoted: bool) -> bool {
        let Self::Page(error) = self else { return false };
        match error {
            LogPageError::Short { .. } | LogPageError::Empty | LogPageError::Timeline { .. } => {
                false
            }
            LogPageError::Address { found, expected } => found > expected && !is_promoted,
            LogPageError::Magic { .. }
            | LogPageError::Version { .. }
            | LogPageError::Info { .. }
            | LogPageError::Kind { .. }
            | LogPageError::System { .. }
            | LogPageError::SegmentSize { .. }
            | LogPageError::BlockSize { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_segment_has_an_earlier_part_of_the_log() {
        let end = |found, expected| {
            EndReason::Page(LogPageError::Address { found: Lsn(found), expected: Lsn(expected) })
        };
        let is_damage =
            |reason: &EndReason| [false, true].map(|it| reason.is_never_left_by_a_crash(it));
        assert_eq!(is_damage(&end(8192, 16_384)), [false; 2]);
        // A promotion gives segments of the timeline that was left any numbers.
        assert_eq!(is_damage(&end(16_384, 8192)), [true, false]);
        assert_eq!(is_damage(&EndReason::Page(LogPageError::Empty)), [false; 2]);
        assert_eq!(is_damage(&EndReason::Page(LogPageError::Magic { found: 7 })), [true; 2]);
        assert_eq!(is_damage(&EndReason::Crc { found: 1, computed: 2 }), [false; 2]);
    }
}
