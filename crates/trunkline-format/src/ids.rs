//! Identifiers: block numbers, LSNs, OIDs, tids and forks.
//!
//! A relation is a sequence of 8 kB blocks, numbered from 0 over all its segment files of 1 GB.
//! Beside the main fork it can have a free space map, a visibility map and, if unlogged, an init
//! fork, each with blocks of its own.

use std::fmt;

/// Bytes in a block. PostgreSQL can be compiled with other sizes; [`crate::control`] refuses those.
pub const BLOCK_SIZE: usize = 8192;

/// Blocks in a full segment file: 1 GiB. Other sizes are refused like other block sizes.
pub const SEGMENT_BLOCKS: u32 = 131_072;

/// The number of a block in one fork of a relation, over all its segments: 0 to 4 294 967 294
/// (the last u32 means "no block" to PostgreSQL).
///
/// An alias and not a newtype: block numbers are counted, compared and multiplied everywhere, and
/// the segment and fork they could be mixed up with have types of their own.
pub type BlockNo = u32;

/// The bytes of one page.
pub type PageBytes = [u8; BLOCK_SIZE];

const _: () = assert!(BLOCK_SIZE as u64 * SEGMENT_BLOCKS as u64 == 1 << 30);

/// A position in the write-ahead log, in bytes since its beginning; 0 means none.
///
/// ```
/// # use trunkline_format::Lsn;
/// assert_eq!(Lsn(0x0303_3AD0).to_string(), "0/03033AD0");
/// assert_eq!(Lsn(0x16_B374_D848).to_string(), "16/B374D848");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The upper 32 bits, written before the slash.
    pub fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The lower 32 bits, written after the slash.
    pub fn low(self) -> u32 {
        self.0 as u32
    }
}

/// As PostgreSQL 19 writes it, the lower half padded to 8 digits. Servers to 18 do not pad, and
/// read either.
impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:08X}", self.high(), self.low())
    }
}

/// The identity of an object in the catalogs; 0 means none. Not the name of its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Oid(pub u32);

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The place of a row version: a block of its table and a line pointer in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tid {
    /// The block.
    pub block: BlockNo,
    /// The 1-based number of the line pointer; 0 points at nothing.
    pub item: u16,
}

impl Tid {
    /// Bytes of a stored tid.
    pub const SIZE: usize = 6;

    /// As it is stored: the block's upper half, its lower half, the item, each a little-endian u16.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        let [a, b, c, d, e, f] = bytes;
        let (high, low) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let block = u32::from(high) << 16 | u32::from(low);
        Self { block, item: u16::from_le_bytes([e, f]) }
    }
}

/// `(block,item)`, as PostgreSQL writes it.
impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.item)
    }
}

/// Which of a relation's parallel files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Fork {
    /// The rows, or the index itself.
    #[default]
    Main,
    /// The free space map: a hint of where new rows fit.
    Fsm,
    /// The visibility map: two bits for each heap block.
    Vm,
    /// What an unlogged relation is reset to after a crash.
    Init,
}

impl Fork {
    /// All forks, in PostgreSQL's order.
    pub const ALL: [Self; 4] = [Self::Main, Self::Fsm, Self::Vm, Self::Init];

    /// What follows the number in a file name: nothing for the main fork, else `_fsm` and so on.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Fsm => "_fsm",
            Self::Vm => "_vm",
            Self::Init => "_init",
        }
    }
}

/// `main`, `fsm`, `vm` or `init`, as PostgreSQL's functions take it.
impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Main => "main",
            Self::Fsm => "fsm",
            Self::Vm => "vm",
            Self::Init => "init",
        })
    }
}
