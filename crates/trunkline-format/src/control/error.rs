//! Why a control file is rejected. We never guess an unknown layout, because it would silently
//! decode to garbage.

use thiserror::Error;

/// `FLOATFORMAT_VALUE`. Its bytes differ on machines that don't use little-endian IEEE 754 doubles.
pub(super) const FLOAT_FORMAT: f64 = 1_234_567.0;

/// Why a control file is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ControlError {
    /// The file is too short.
    #[error("{found} bytes found, at least {expected} expected")]
    TooShort {
        /// The number of bytes found.
        found: usize,
        /// The number of bytes this layout needs.
        expected: usize,
    },
    /// Written on a big-endian machine.
    #[error("the cluster was written on a big-endian machine")]
    BigEndian,
    /// No supported release has this control version or this combination of versions.
    #[error(
        "control version {control} with catalog version {catalog} does not belong to a supported \
         release"
    )]
    UnknownVersion {
        /// The control version.
        control: u32,
        /// The catalog version. If the control version is unknown, the CRC couldn't be verified, so
        /// this value may be wrong.
        catalog: u32,
    },
    /// The file is damaged, or was read during a write, in which case a retry may succeed.
    #[error("CRC {found:#010X} found, {expected:#010X} expected")]
    Crc {
        /// The stored CRC.
        found: u32,
        /// The CRC-32C of the file's contents.
        expected: u32,
    },
    /// Doubles are not in little-endian IEEE 754 format.
    #[error("float format {found:#018X} found, {:#018X} expected", FLOAT_FORMAT.to_bits())]
    FloatFormat {
        /// The bits stored in `floatFormat`, which should be those of 1234567.0.
        found: u64,
    },
    /// Compiled with a maximum alignment other than 8 bytes.
    #[error("maximum alignment {found} found, 8 expected")]
    MaxAlign {
        /// The maximum alignment in bytes.
        found: u32,
    },
    /// Compiled with a block size other than 8192 bytes.
    #[error("block size {found} found, 8192 expected")]
    BlockSize {
        /// Block size in bytes.
        found: u32,
    },
    /// Compiled with a segment size other than 131072 blocks.
    #[error("{found} blocks per segment found, 131072 expected")]
    SegmentSize {
        /// Segment size in blocks.
        found: u32,
    },
    /// The WAL segment size is not a power of two from 1 MiB to 1 GiB.
    #[error("WAL segment size {found} is not a power of two from 1 MiB to 1 GiB")]
    WalSegmentSize {
        /// WAL segment size in bytes.
        found: u32,
    },
}
