//! **Log records** (`XLogRecord`): a header, a list of block references, and data.
//!
//! ```text
//!   0        4     8          16     17     18      20    24
//!   ├────────┼─────┼──────────┼──────┼──────┼───────┼─────┼───────────────┬──────┬──────┬───────────┐
//!   │ length │ xid │ previous │ info │ rmgr │ zeros │ crc │ headers …     │ image│ data │ main data │
//!   └────────┴─────┴──────────┴──────┴──────┴───────┴─────┴───────────────┴──────┴──────┴───────────┘
//!                                                          │               ╰ of block 0 ╯ of block 1 …
//!   block reference: id, fork and flags, data length, [image header], [relation], block
//! ```
//! The headers come first, all of them, and then the data in the same order. Neither is aligned. A
//! record's resource manager gives its main data and the data of each block a meaning; everything
//! in this module is the same for all of them. A full-page image replaces the block's data, unless
//! logical decoding needs the data too.
//!
//! Nothing in a record can be trusted, not even after its CRC has been checked: all lengths must
//! add up to the record's length, and the checks are those of the server.
//!
//! Mirrors PostgreSQL's `access/xlogrecord.h`.

use thiserror::Error;

use crate::ids::{BLOCK_SIZE, Fork, Lsn};
use crate::little_endian::{Number, read_at};

use super::block_ref::{BlockRef, BlockRefs};
use super::image::PageImage;
use super::locator::RelFileLocator;

/// `SizeOfXLogRecord`.
pub const RECORD_HEADER_SIZE: usize = 24;

/// `XLogRecordMaxSize`: 1020 MiB.
pub const RECORD_SIZE_MAX: u32 = 1020 << 20;

/// The largest number of a block reference (`XLR_MAX_BLOCK_ID`).
pub const BLOCK_ID_MAX: u8 = 32;

/// The fixed part of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    /// The whole length in bytes, without the padding behind it.
    pub length: u32,
    /// The transaction, or 0.
    pub xid: u32,
    /// Where the record before this one begins.
    pub previous: Lsn,
    /// The operation in the upper four bits, and flags.
    pub info: u8,
    /// The number of the resource manager.
    pub manager: u8,
    /// CRC-32C of the record.
    pub crc: u32,
}

impl RecordHeader {
    /// Decodes a header. `None` if there are fewer bytes than a header has.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..RECORD_HEADER_SIZE)?;
        Some(Self {
            length: read_at(bytes, 0)?,
            xid: read_at(bytes, 4)?,
            previous: Lsn(read_at(bytes, 8)?),
            info: read_at(bytes, 16)?,
            manager: read_at(bytes, 17)?,
            crc: read_at(bytes, 20)?,
        })
    }

    /// The resource manager's part of `info`: its operation, and flags of that operation.
    pub fn operation(&self) -> u8 {
        self.info & 0xF0
    }
}

/// The CRC of a complete record: of everything behind the header, and then of the header up to the
/// CRC itself.
pub fn record_crc(record: &[u8]) -> u32 {
    let body = record.get(RECORD_HEADER_SIZE..).unwrap_or_default();
    crc32c::crc32c_append(crc32c::crc32c(body), record.get(..20).unwrap_or_default())
}

/// The reason why a record with a good CRC can't be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum RecordError {
    /// The record ends inside its headers or data, or has bytes left over.
    #[error("headers and data of the record do not add up to its length of {length} bytes")]
    Length {
        /// The record's length.
        length: usize,
    },
    /// A block reference has an impossible number.
    #[error("block reference {found} of the record is invalid")]
    BlockId {
        /// The number.
        found: u8,
    },
    /// Block references are not in ascending order.
    #[error("block reference {found} of the record is out of order")]
    BlockOrder {
        /// The number.
        found: u8,
    },
    /// The fork number is unknown.
    #[error("block reference {id} of the record has the fork number {found}")]
    Fork {
        /// The number of the reference.
        id: u8,
        /// The fork number.
        found: u8,
    },
    /// The flag for data contradicts the length of the data.
    #[error("block reference {id} of the record has {length} bytes of data, against its flag")]
    Data {
        /// The number of the reference.
        id: u8,
        /// The length of the data.
        length: u16,
    },
    /// The header of an image contradicts itself.
    #[error(
        "block reference {id} of the record has an image of {length} bytes with a hole of \
             {hole_length} bytes at {hole_offset}, flags 0x{flags:02X}"
    )]
    Image {
        /// The number of the reference.
        id: u8,
        /// The stored length of the image.
        length: u16,
        /// Where the hole begins.
        hole_offset: u16,
        /// The length of the hole.
        hole_length: u16,
        /// `bimg_info`.
        flags: u8,
    },
    /// The first block reference says that its relation is that of the one before it.
    #[error("block reference {id} of the record repeats a relation, but none came before it")]
    SameRelation {
        /// The number of the reference.
        id: u8,
    },
}

/// A decoded record. It borrows the record's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record<'b> {
    header: RecordHeader,
    blocks: BlockRefs<'b>,
    main_data: &'b [u8],
    origin: Option<u16>,
    top_xid: Option<u32>,
}

impl<'b> Record<'b> {
    /// Decodes a complete record, from its header to its last byte.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the headers contradict themselves or the record's length.
    pub fn parse(bytes: &'b [u8]) -> Result<Self, RecordError> {
        let length = RecordError::Length { length: bytes.len() };
        let header = RecordHeader::parse(bytes).ok_or(length)?;
        if header.length as usize != bytes.len() {
            return Err(length);
        }
        let mut parser = Parser { bytes, at: RECORD_HEADER_SIZE, data_length: 0 };
        parser.parse(header)
    }

    /// The header.
    pub fn header(&self) -> &RecordHeader {
        &self.header
    }

    /// The blocks that the record changes, in ascending order of their numbers.
    pub fn blocks(&self) -> &[BlockRef<'b>] {
        self.blocks.as_slice()
    }

    /// The block reference with this number.
    pub fn block(&self, id: u8) -> Option<&BlockRef<'b>> {
        self.blocks().iter().find(|block| block.id == id)
    }

    /// What the resource manager has logged about no block in particular.
    pub fn main_data(&self) -> &'b [u8] {
        self.main_data
    }

    /// The replication origin, if the transaction has been replicated from elsewhere.
    pub fn origin(&self) -> Option<u16> {
        self.origin
    }

    /// The top-level transaction, if this is the first record of a subtransaction and `wal_level`
    /// is `logical`.
    pub fn top_xid(&self) -> Option<u32> {
        self.top_xid
    }

    /// The stored size of all images in bytes.
    pub fn image_bytes(&self) -> usize {
        let images = self.blocks().iter().filter_map(|block| block.image);
        images.map(|image| image.stored().len()).sum()
    }
}

struct Parser<'b> {
    bytes: &'b [u8],
    /// The next header.
    at: usize,
    /// The length of all data that the headers so far have announced.
    data_length: usize,
}

/// Numbers of headers that are not block references.
pub(super) const MAIN_DATA_SHORT: u8 = 255;
pub(super) const MAIN_DATA_LONG: u8 = 254;
pub(super) const ORIGIN: u8 = 253;
pub(super) const TOP_XID: u8 = 252;

/// Flags of a block reference.
pub(super) const HAS_IMAGE: u8 = 0x10;
pub(super) const HAS_DATA: u8 = 0x20;
pub(super) const WILL_INIT: u8 = 0x40;
pub(super) const SAME_RELATION: u8 = 0x80;

impl<'b> Parser<'b> {
    fn parse(&mut self, header: RecordHeader) -> Result<Record<'b>, RecordError> {
        let length = RecordError::Length { length: self.bytes.len() };
        let mut blocks = BlockRefs::default();
        let (mut main_length, mut origin, mut top_xid) = (0, None, None);
        while self.bytes.len() - self.at.min(self.bytes.len()) > self.data_length {
            let id = self.take::<u8>().ok_or(length)?;
            match id {
                MAIN_DATA_SHORT => main_length = usize::from(self.take::<u8>().ok_or(length)?),
                MAIN_DATA_LONG => main_length = self.take::<u32>().ok_or(length)? as usize,
                ORIGIN => origin = Some(self.take::<u16>().ok_or(length)?),
                TOP_XID => top_xid = Some(self.take::<u32>().ok_or(length)?),
                _ => {
                    let block = self.block(id, blocks.as_slice().last())?;
                    blocks.push(block);
                }
            }
            if id == MAIN_DATA_SHORT || id == MAIN_DATA_LONG {
                self.data_length = self.data_length.checked_add(main_length).ok_or(length)?;
                break;
            }
        }
        if self.at.checked_add(self.data_length) != Some(self.bytes.len()) {
            return Err(length);
        }
        for block in blocks.as_mut_slice() {
            if let Some(image) = &mut block.image {
                *image = image.of(self.take_bytes(image.stored().len()));
            }
            block.data = block.data.map(|data| self.take_bytes(data.len()));
        }
        let main_data = self.bytes.get(self.at..).ok_or(length)?;
        Ok(Record { header, blocks, main_data, origin, top_xid })
    }

    /// Decodes one block reference. Where its image and its data are is not known before the last
    /// header, so for now both are slices of the right length from the start of the record.
    fn block(
        &mut self,
        id: u8,
        previous: Option<&BlockRef<'b>>,
    ) -> Result<BlockRef<'b>, RecordError> {
        let short = RecordError::Length { length: self.bytes.len() };
        if id > BLOCK_ID_MAX {
            return Err(RecordError::BlockId { found: id });
        }
        if previous.is_some_and(|previous| previous.id >= id) {
            return Err(RecordError::BlockOrder { found: id });
        }
        let flags = self.take::<u8>().ok_or(short)?;
        let fork = Fork::ALL.get(usize::from(flags & 0x0F)).copied();
        let fork = fork.ok_or(RecordError::Fork { id, found: flags & 0x0F })?;
        let length = self.take::<u16>().ok_or(short)?;
        if (flags & HAS_DATA != 0) != (length > 0) {
            return Err(RecordError::Data { id, length });
        }
        let image = if flags & HAS_IMAGE != 0 { Some(self.image(id)?) } else { None };
        let relation = if flags & SAME_RELATION != 0 {
            previous.ok_or(RecordError::SameRelation { id })?.relation
        } else {
            let relation = RelFileLocator::read(self.bytes, self.at).ok_or(short)?;
            self.at += RelFileLocator::SIZE;
            relation
        };
        let block = self.take::<u32>().ok_or(short)?;
        let data = match length {
            0 => None,
            length => Some(self.bytes.get(..usize::from(length)).ok_or(short)?),
        };
        self.data_length += usize::from(length) + image.map_or(0, |image| image.stored().len());
        let will_init = flags & WILL_INIT != 0;
        Ok(BlockRef { id, relation, fork, block, will_init, image, data })
    }

    /// Decodes the header of an image.
    fn image(&mut self, id: u8) -> Result<PageImage<'b>, RecordError> {
        let short = RecordError::Length { length: self.bytes.len() };
        let length = self.take::<u16>().ok_or(short)?;
        let hole_offset = self.take::<u16>().ok_or(short)?;
        let flags = self.take::<u8>().ok_or(short)?;
        let has_hole = flags & PageImage::HAS_HOLE != 0;
        let is_compressed = flags & PageImage::COMPRESSED != 0;
        let hole_length = match (has_hole, is_compressed) {
            (false, _) => 0,
            (true, true) => self.take::<u16>().ok_or(short)?,
            (true, false) => (BLOCK_SIZE as u16).saturating_sub(length),
        };
        let end_of_hole = usize::from(hole_offset) + usize::from(hole_length);
        let full = usize::from(length) == BLOCK_SIZE;
        let is_valid = usize::from(length) <= BLOCK_SIZE
            && end_of_hole <= BLOCK_SIZE
            && if has_hole {
                hole_offset > 0 && hole_length > 0 && !full
            } else {
                hole_offset == 0
            }
            && if is_compressed { !full } else { has_hole || full };
        let stored = self.bytes.get(..usize::from(length)).ok_or(short)?;
        match PageImage::new(stored, flags, hole_offset, hole_length) {
            Some(image) if is_valid => Ok(image),
            _ => Err(RecordError::Image { id, length, hole_offset, hole_length, flags }),
        }
    }

    fn take<T: Number>(&mut self) -> Option<T> {
        let value = read_at(self.bytes, self.at)?;
        self.at += size_of::<T>();
        Some(value)
    }

    /// The next bytes of the data. All lengths together have been checked against the record's.
    fn take_bytes(&mut self, length: usize) -> &'b [u8] {
        let start = self.at;
        self.at += length;
        self.bytes.get(start..self.at).unwrap_or_default()
    }
}
