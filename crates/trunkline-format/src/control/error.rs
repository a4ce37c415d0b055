//! Why a control file is refused: each reason with what was found and what would be read.
//! An unknown layout is never guessed at: reading on would be silent garbage.

use super::FLOAT_FORMAT;
use std::fmt;

/// Why a control file is not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlError {
    /// The file ends too early.
    TooShort {
        /// Bytes there are.
        found: usize,
        /// Bytes that this layout needs.
        expected: usize,
    },
    /// Written on a big-endian machine.
    BigEndian,
    /// No release that we know has this control version, or this pair of versions.
    UnknownVersion {
        /// The control version.
        control: u32,
        /// The catalog version; not verified by the CRC if the control version is unknown.
        catalog: u32,
    },
    /// The file is damaged, or was caught in the middle of a write: reading again may help.
    Crc {
        /// What the file carries.
        found: u32,
        /// The CRC-32C of its bytes.
        expected: u32,
    },
    /// Doubles are not IEEE 754, little-endian.
    FloatFormat {
        /// The bits of what should be 1234567.0.
        found: u64,
    },
    /// Data is aligned to other than 8 bytes.
    MaxAlign {
        /// What it is aligned to.
        found: u32,
    },
    /// Compiled with blocks of other than 8192 bytes.
    BlockSize {
        /// Bytes of a block.
        found: u32,
    },
    /// Compiled with segments of other than 131072 blocks.
    SegmentSize {
        /// Blocks of a segment.
        found: u32,
    },
    /// Log segments are no power of two from 1 MiB to 1 GiB.
    WalSegmentSize {
        /// Bytes of a log segment.
        found: u32,
    },
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooShort { found, expected } => {
                write!(f, "{found} bytes found, at least {expected} expected")
            }
            Self::BigEndian => write!(f, "the cluster was written on a big-endian machine"),
            Self::UnknownVersion { control, catalog } => write!(
                f,
                "control version {control} with catalog version {catalog} is of no known release"
            ),
            Self::Crc { found, expected } => {
                write!(f, "CRC {found:#010X} found, {expected:#010X} expected")
            }
            Self::FloatFormat { found } => {
                write!(
                    f,
                    "float format {found:#018X} found, {:#018X} expected",
                    FLOAT_FORMAT.to_bits()
                )
            }
            Self::MaxAlign { found } => write!(f, "maximum alignment {found} found, 8 expected"),
            Self::BlockSize { found } => write!(f, "block size {found} found, 8192 expected"),
            Self::SegmentSize { found } => {
                write!(f, "{found} blocks per segment found, 131072 expected")
            }
            Self::WalSegmentSize { found } => {
                write!(f, "WAL segment size {found} is no power of two from 1 MiB to 1 GiB")
            }
        }
    }
}

impl std::error::Error for ControlError {}
