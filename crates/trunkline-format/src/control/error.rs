//! Why a control file is refused. An unknown layout is never guessed: it would decode to garbage
//! without notice.

use super::FLOAT_FORMAT;
use thiserror::Error;

/// Why a control file is not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ControlError {
    /// The file ends too early.
    #[error("{found} bytes found, at least {expected} expected")]
    TooShort {
        /// Bytes there are.
        found: usize,
        /// Bytes that this layout needs.
        expected: usize,
    },
    /// Written on a big-endian machine.
    #[error("the cluster was written on a big-endian machine")]
    BigEndian,
    /// No release that we know has this control version, or this pair of versions.
    #[error("control version {control} with catalog version {catalog} is of no known release")]
    UnknownVersion {
        /// The control version.
        control: u32,
        /// The catalog version; not verified by the CRC if the control version is unknown.
        catalog: u32,
    },
    /// The file is damaged, or was caught in the middle of a write: reading again may help.
    #[error("CRC {found:#010X} found, {expected:#010X} expected")]
    Crc {
        /// What the file carries.
        found: u32,
        /// The CRC-32C of its bytes.
        expected: u32,
    },
    /// Doubles are not IEEE 754, little-endian.
    #[error("float format {found:#018X} found, {:#018X} expected", FLOAT_FORMAT.to_bits())]
    FloatFormat {
        /// The bits of what should be 1234567.0.
        found: u64,
    },
    /// Data is aligned to other than 8 bytes.
    #[error("maximum alignment {found} found, 8 expected")]
    MaxAlign {
        /// What it is aligned to.
        found: u32,
    },
    /// Compiled with blocks of other than 8192 bytes.
    #[error("block size {found} found, 8192 expected")]
    BlockSize {
        /// Bytes of a block.
        found: u32,
    },
    /// Compiled with segments of other than 131072 blocks.
    #[error("{found} blocks per segment found, 131072 expected")]
    SegmentSize {
        /// Blocks of a segment.
        found: u32,
    },
    /// WAL segments are not a power of two from 1 MiB to 1 GiB.
    #[error("WAL segment size {found} is no power of two from 1 MiB to 1 GiB")]
    WalSegmentSize {
        /// Bytes of a log segment.
        found: u32,
    },
}
