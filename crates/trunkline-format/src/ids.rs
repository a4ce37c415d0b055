//! Identifiers: block numbers, LSNs, OIDs, TIDs and forks.
//!
//! A relation is a sequence of 8 kB blocks. It is divided into segment files of 1 GB, but the block
//! numbers continue from one segment to the next. In addition to its main fork, a relation can have
//! a free space map and a visibility map. An unlogged relation also has an init fork. In each of
//! these forks, block numbers start at 0.

use std::fmt;

/// Block size in bytes. PostgreSQL can be compiled with other sizes, but [`crate::control`] rejects
/// those.
pub const BLOCK_SIZE: usize = 8192;

/// Blocks in a full segment file (1 GiB). [`crate::control`] rejects other segment sizes.
pub const SEGMENT_BLOCKS: u32 = 131_072;

/// A block number within a fork of a relation, counted across all of the fork's segments. It ranges
/// from 0 to 4,294,967,294, because PostgreSQL uses the largest u32 as `InvalidBlockNumber`.
///
/// We use a type alias rather than a newtype, because block numbers are used in arithmetic all over
/// the code. To prevent mistakes, segments and forks have types of their own.
pub type BlockNo = u32;

/// The contents of one page.
pub type PageBytes = [u8; BLOCK_SIZE];

const _: () = assert!(BLOCK_SIZE as u64 * SEGMENT_BLOCKS as u64 == 1 << 30);

/// A WAL location: a byte offset from the beginning of the log. 0 is invalid.
///
/// ```
/// # use trunkline_format::Lsn;
/// assert_eq!(Lsn(0x0303_3AD0).to_string(), "0/03033AD0");
/// assert_eq!(Lsn(0x16_B374_D848).to_string(), "16/B374D848");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The upper 32 bits, printed before the slash.
    pub fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The lower 32 bits, printed after the slash.
    pub fn low(self) -> u32 {
        self.0 as u32
    }

    /// Parses a position as PostgreSQL prints it: two hexadecimal numbers of up to eight digits.
    ///
    /// ```
    /// # use trunkline_format::Lsn;
    /// assert_eq!(Lsn::parse("16/B374D848"), Some(Lsn(0x16_B374_D848)));
    /// assert_eq!(Lsn::parse("16B374D848"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let half = |digits: &str| {
            let is_valid = (1..=8).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_valid.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
        };
        let (high, low) = text.split_once('/')?;
        Some(Self(half(high)? << 32 | half(low)?))
    }
}

/// Prints the LSN in the format of PostgreSQL 19, in which the lower half is padded to 8 digits.
/// Earlier versions don't pad it, but they accept both formats as input.
impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:08X}", self.high(), self.low())
    }
}

/// An object identifier in the catalogs; 0 is invalid. It is not the relation's file number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Oid(pub u32);

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `ItemPointerData`: a tuple's block and line pointer number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tid {
    /// The block number.
    pub block: BlockNo,
    /// The line pointer number, from 1; 0 is invalid.
    pub item: u16,
}

impl Tid {
    /// Size of a stored TID in bytes.
    pub const SIZE: usize = 6;

    /// Decodes a TID as it is stored on disk. It consists of three little-endian u16s: the upper
    /// half of the block number, the lower half of the block number, and the line pointer number.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        let [a, b, c, d, e, f] = bytes;
        let (high, low) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let block = u32::from(high) << 16 | u32::from(low);
        Self { block, item: u16::from_le_bytes([e, f]) }
    }

    /// Encodes a TID, the reverse of [`Self::from_bytes`].
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let [low, second, third, high] = self.block.to_le_bytes();
        let [item_low, item_high] = self.item.to_le_bytes();
        [third, high, low, second, item_low, item_high]
    }
}

/// Prints `(block,item)`, like PostgreSQL.
impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.item)
    }
}

/// A relation's fork.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Fork {
    /// The relation's own data: table rows or index pages.
    #[default]
    Main,
    /// The free space map: a hint where new rows fit.
    Fsm,
    /// The visibility map: two bits per heap block.
    Vm,
    /// The init fork, which replaces an unlogged relation's main fork after a crash.
    Init,
}

impl Fork {
    /// All forks, in PostgreSQL's order.
    pub const ALL: [Self; 4] = [Self::Main, Self::Fsm, Self::Vm, Self::Init];

    /// The file-name suffix after the file number: empty for the main fork, otherwise `_fsm` and so
    /// on.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Fsm => "_fsm",
            Self::Vm => "_vm",
            Self::Init => "_init",
        }
    }
}

/// Prints `main`, `fsm`, `vm` or `init`, the names that PostgreSQL's functions accept.
impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.suffix().strip_prefix('_').unwrap_or("main"))
    }
}
