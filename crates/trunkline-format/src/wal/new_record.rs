//! **New records**: builds a record from its parts (`XLogRecordAssemble`).
//!
//! ```text
//!   NewRecord   manager, operation, xid │ blocks: page, data │ main data
//!       │ assemble: decides which blocks need an image, writes headers and data, CRC of all but the header
//!       ▼
//!   RecordBuffer   the record without the LSN of the record before it
//!       │ seal: that LSN, and the CRC
//!       ▼
//!   bytes
//! ```
//! `xl_prev` is known only after the reservation, so it is filled in by a second step. Everything whose cost grows
//! with the record is in the first.
//!
//! Whether a page needs a full-page image depends on the redo point. If a checkpoint begins between the two steps, the
//! record may lack an image that it now needs. So the caller compares [`RecordBuffer::oldest_without_image`] with the
//! redo point again when it reserves a place, and assembles the record again if necessary.

use std::ops::Range;

use thiserror::Error;

use crate::ids::{BLOCK_SIZE, BlockNo, Fork, Lsn, PageBytes};
use crate::little_endian::put;
use crate::page::{HEADER_SIZE, PageHeader};

use super::image::PageImage;
use super::locator::RelFileLocator;
use super::record::{
    BLOCK_ID_MAX, HAS_DATA, HAS_IMAGE, MAIN_DATA_LONG, MAIN_DATA_SHORT, ORIGIN, RECORD_HEADER_SIZE,
    RECORD_SIZE_MAX, SAME_RELATION, TOP_XID, WILL_INIT,
};

/// The parts of a record.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// The number of the resource manager.
    pub manager: u8,
    /// `xl_info`: the operation in the upper four bits; [`NewRecord::CHANGES_FILES`] or 0 in the lower.
    pub info: u8,
    /// The transaction, or 0.
    pub xid: u32,
    /// The blocks that the record changes, in ascending order of their numbers.
    pub blocks: &'a [NewBlock<'a>],
    /// The replication origin, if the transaction was replicated from elsewhere.
    pub origin: Option<u16>,
    /// The top-level transaction, in the first record of a subtransaction if `wal_level` is `logical`.
    pub top_xid: Option<u32>,
    /// The record's main data (`XLogRegisterData`), in pieces that are concatenated.
    pub main_data: &'a [&'a [u8]],
}

impl<'a> NewRecord<'a> {
    /// A record that changes no block.
    pub fn plain(manager: u8, info: u8, xid: u32, main_data: &'a [&'a [u8]]) -> Self {
        Self { manager, info, xid, blocks: &[], origin: None, top_xid: None, main_data }
    }

    /// `XLR_SPECIAL_REL_UPDATE`: the record changes files in a way that its block references don't show.
    pub const CHANGES_FILES: u8 = 0x01;
}

/// A block that a new record changes.
#[derive(Clone, Copy, Debug)]
pub struct NewBlock<'a> {
    /// The number of the reference, by which the resource manager knows it. At most [`BLOCK_ID_MAX`].
    pub id: u8,
    /// The relation.
    pub relation: RelFileLocator,
    /// The fork.
    pub fork: Fork,
    /// The block.
    pub block: BlockNo,
    /// The page after the change, still with the LSN of its previous change.
    pub page: &'a PageBytes,
    /// When the record includes a full-page image of the page.
    pub image: ImageMode,
    /// Whether the bytes between `pd_lower` and `pd_upper` have no meaning (`REGBUF_STANDARD`).
    pub is_standard: bool,
    /// Whether the record has the data even if it has an image (`REGBUF_KEEP_DATA`).
    pub keeps_data: bool,
    /// The block's data (`XLogRegisterBufData`), in pieces. At most 65,535 bytes in all.
    pub data: &'a [&'a [u8]],
}

/// When a record includes a full-page image of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageMode {
    /// If the page's LSN is at or before the redo point (the default in PostgreSQL).
    IfNeeded,
    /// Always (`REGBUF_FORCE_IMAGE`).
    Always,
    /// Never (`REGBUF_NO_IMAGE`).
    Never,
    /// Never: redo initializes the page (`REGBUF_WILL_INIT`).
    WillInit,
}

/// What decides about images.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImagePolicy {
    /// The redo point of the latest checkpoint. A page that was last changed before it needs an image.
    pub redo: Lsn,
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// Whether images are compressed, with lz4 (`wal_compression`).
    pub compresses: bool,
    /// Whether all records have images with which a server compares what redo made
    /// (`wal_consistency_checking`).
    pub checks_redo: bool,
}

impl ImagePolicy {
    /// No images but those that a block always has.
    pub const NONE: Self =
        Self { redo: Lsn(0), full_page_writes: false, compresses: false, checks_redo: false };
}

/// Why a record can't be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NewRecordError {
    /// The lower bits of `info` have a flag that only the builder sets, or none that a server knows.
    #[error("info 0x{info:02X} of a new record has unknown flags")]
    Info {
        /// The field.
        info: u8,
    },
    /// A block reference has an impossible number, or they aren't in ascending order.
    #[error("block reference {id} of a new record is invalid or out of order")]
    BlockId {
        /// The number.
        id: u8,
    },
    /// A block has more data than its header can say.
    #[error(
        "block reference {id} of a new record has {length} bytes of data, expected at most 65535"
    )]
    BlockData {
        /// The number of the reference.
        id: u8,
        /// The length of its data in bytes.
        length: usize,
    },
    /// The record is longer than a server accepts.
    #[error("new record has {length} bytes, expected at most {RECORD_SIZE_MAX}")]
    Length {
        /// The length in bytes.
        length: usize,
    },
}

/// `XLR_CHECK_CONSISTENCY`: the record has images for the consistency check.
const CHECKS_REDO: u8 = 0x02;

/// The image of a block, as the record stores it.
#[derive(Clone, Debug)]
struct StoredImage {
    /// Whether redo restores the page from it.
    applies: bool,
    /// The bytes of the page that are left out.
    hole: Range<usize>,
    /// Where it is in the buffer of compressed images, if it is compressed.
    compressed: Option<Range<usize>>,
}

impl StoredImage {
    fn length(&self) -> usize {
        let unpacked = BLOCK_SIZE - self.hole.len();
        self.compressed.as_ref().map_or(unpacked, ExactSizeIterator::len)
    }

    fn flags(&self) -> u8 {
        let hole = if self.hole.is_empty() { 0 } else { PageImage::HAS_HOLE };
        let apply = if self.applies { PageImage::APPLY } else { 0 };
        hole | apply | if self.compressed.is_some() { PageImage::LZ4 } else { 0 }
    }
}

/// A record under construction. Reuses its memory for the next record.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    bytes: Vec<u8>,
    /// For each block, its image.
    images: Vec<Option<StoredImage>>,
    compressed: Vec<u8>,
    /// A page without its hole.
    unpacked: Vec<u8>,
    body_crc: u32,
    oldest_without_image: Option<Lsn>,
}

impl RecordBuffer {
    /// Builds a record, except for the LSN of the record before it and the CRC.
    ///
    /// # Errors
    ///
    /// [`NewRecordError`]. The buffer then contains no record.
    pub fn assemble(
        &mut self,
        record: &NewRecord<'_>,
        policy: &ImagePolicy,
    ) -> Result<(), NewRecordError> {
        self.clear();
        let written = self.write(record, policy);
        if written.is_err() {
            self.bytes.clear();
        }
        written
    }

    fn write(
        &mut self,
        record: &NewRecord<'_>,
        policy: &ImagePolicy,
    ) -> Result<(), NewRecordError> {
        if record.info & 0x0F & !NewRecord::CHANGES_FILES != 0 {
            return Err(NewRecordError::Info { info: record.info });
        }
        self.bytes.extend_from_slice(&[0; RECORD_HEADER_SIZE]);
        let mut before: Option<&NewBlock<'_>> = None;
        for block in record.blocks {
            if block.id > BLOCK_ID_MAX || before.is_some_and(|before| before.id >= block.id) {
                return Err(NewRecordError::BlockId { id: block.id });
            }
            let image = self.choose_image(block, policy);
            self.push_block_header(block, image.as_ref(), before)?;
            self.images.push(image);
            before = Some(block);
        }
        if let Some(origin) = record.origin {
            self.bytes.push(ORIGIN);
            self.bytes.extend_from_slice(&origin.to_le_bytes());
        }
        if let Some(xid) = record.top_xid {
            self.bytes.push(TOP_XID);
            self.bytes.extend_from_slice(&xid.to_le_bytes());
        }
        self.push_main_header(length_of(record.main_data))?;
        self.push_data(record);
        let too_long = NewRecordError::Length { length: self.bytes.len() };
        let length = u32::try_from(self.bytes.len()).map_err(|_| too_long)?;
        if length > RECORD_SIZE_MAX {
            return Err(too_long);
        }
        let check = if policy.checks_redo { CHECKS_REDO } else { 0 };
        put(&mut self.bytes, 0, length.to_le_bytes());
        put(&mut self.bytes, 4, record.xid.to_le_bytes());
        put(&mut self.bytes, 16, [record.info | check, record.manager]);
        self.body_crc = crc32c::crc32c(self.bytes.get(RECORD_HEADER_SIZE..).unwrap_or_default());
        Ok(())
    }

    /// Completes the record with the LSN at which the record before it begins. Returns its bytes.
    pub fn seal(&mut self, previous: Lsn) -> &[u8] {
        put(&mut self.bytes, 8, previous.0.to_le_bytes());
        let crc = crc32c::crc32c_append(self.body_crc, self.bytes.get(..20).unwrap_or_default());
        put(&mut self.bytes, 20, crc.to_le_bytes());
        &self.bytes
    }

    /// The length of the record in bytes; 0 if there is none.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The oldest LSN of the pages that have no image, although a later redo LSN would require one. If redo
    /// of a new checkpoint begins at this LSN or later, the record must be assembled again.
    pub fn oldest_without_image(&self) -> Option<Lsn> {
        self.oldest_without_image
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.images.clear();
        self.compressed.clear();
        self.oldest_without_image = None;
    }

    /// The image of a block, if it needs one. Compresses it, if that makes it shorter.
    fn choose_image(&mut self, block: &NewBlock<'_>, policy: &ImagePolicy) -> Option<StoredImage> {
        let applies = self.needs_image(block, policy);
        if !applies && !policy.checks_redo {
            return None;
        }
        let mut image = StoredImage { applies, hole: hole_of(block), compressed: None };
        if policy.compresses {
            image.compressed = self.compress(block.page, &image.hole);
        }
        Some(image)
    }

    /// Whether redo must restore the block from an image.
    fn needs_image(&mut self, block: &NewBlock<'_>, policy: &ImagePolicy) -> bool {
        match block.image {
            ImageMode::Always => true,
            ImageMode::Never | ImageMode::WillInit => false,
            ImageMode::IfNeeded if !policy.full_page_writes => false,
            ImageMode::IfNeeded => {
                let lsn = PageHeader::parse(block.page).lsn;
                if lsn > policy.redo {
                    let oldest = self.oldest_without_image.map_or(lsn, |oldest| oldest.min(lsn));
                    self.oldest_without_image = Some(oldest);
                }
                lsn <= policy.redo
            }
        }
    }

    /// Compresses a page. `None` if that doesn't make the record shorter.
    fn compress(&mut self, page: &PageBytes, hole: &Range<usize>) -> Option<Range<usize>> {
        self.unpacked.clear();
        self.unpacked.extend_from_slice(page.get(..hole.start)?);
        self.unpacked.extend_from_slice(page.get(hole.end..)?);
        let start = self.compressed.len();
        let most = lz4_flex::block::get_maximum_output_size(self.unpacked.len());
        self.compressed.resize(start + most, 0);
        let room = self.compressed.get_mut(start..)?;
        let length = lz4_flex::block::compress_into(&self.unpacked, room).unwrap_or(BLOCK_SIZE);
        self.compressed.truncate(start + length);
        // The header of a compressed image has the length of its hole, too.
        let extra = if hole.is_empty() { 0 } else { 2 };
        (length + extra < self.unpacked.len()).then_some(start..start + length)
    }

    /// `XLogRecordBlockHeader` and what follows it.
    fn push_block_header(
        &mut self,
        block: &NewBlock<'_>,
        image: Option<&StoredImage>,
        before: Option<&NewBlock<'_>>,
    ) -> Result<(), NewRecordError> {
        let length = if has_data(block, image) { length_of(block.data) } else { 0 };
        let too_long = NewRecordError::BlockData { id: block.id, length };
        let length = u16::try_from(length).map_err(|_| too_long)?;
        let is_same = before.is_some_and(|before| before.relation == block.relation);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = block.fork as u8
            | flag(image.is_some(), HAS_IMAGE)
            | flag(length > 0, HAS_DATA)
            | flag(block.image == ImageMode::WillInit, WILL_INIT)
            | flag(is_same, SAME_RELATION);
        self.bytes.extend_from_slice(&[block.id, flags]);
        self.push_u16(usize::from(length));
        if let Some(image) = image {
            self.push_u16(image.length());
            self.push_u16(image.hole.start);
            self.bytes.push(image.flags());
            if image.compressed.is_some() && !image.hole.is_empty() {
                self.push_u16(image.hole.len());
            }
        }
        if !is_same {
            let RelFileLocator { tablespace, database, number } = block.relation;
            for word in [tablespace.0, database.0, number] {
                self.bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(&block.block.to_le_bytes());
        Ok(())
    }

    /// `XLogRecordDataHeaderShort` or `XLogRecordDataHeaderLong`; nothing if there is no main data.
    fn push_main_header(&mut self, length: usize) -> Result<(), NewRecordError> {
        if length == 0 {
            return Ok(());
        }
        if let Ok(short) = u8::try_from(length) {
            self.bytes.extend_from_slice(&[MAIN_DATA_SHORT, short]);
            return Ok(());
        }
        let long = u32::try_from(length).map_err(|_| NewRecordError::Length { length })?;
        self.bytes.push(MAIN_DATA_LONG);
        self.bytes.extend_from_slice(&long.to_le_bytes());
        Ok(())
    }

    /// The images and data of all blocks, and the main data.
    fn push_data(&mut self, record: &NewRecord<'_>) {
        for (block, image) in record.blocks.iter().zip(&self.images) {
            if let Some(image) = image {
                match &image.compressed {
                    Some(place) => {
                        let stored = self.compressed.get(place.clone()).unwrap_or_default();
                        self.bytes.extend_from_slice(stored);
                    }
                    None => {
                        let (before, after) = (..image.hole.start, image.hole.end..);
                        self.bytes.extend_from_slice(&block.page[before]);
                        self.bytes.extend_from_slice(&block.page[after]);
                    }
                }
            }
            if has_data(block, image.as_ref()) {
                block.data.iter().for_each(|piece| self.bytes.extend_from_slice(piece));
            }
        }
        record.main_data.iter().for_each(|piece| self.bytes.extend_from_slice(piece));
    }

    /// Pushes a number of at most two bytes: a length or an offset within a page.
    fn push_u16(&mut self, number: usize) {
        self.bytes.extend_from_slice(&(number as u16).to_le_bytes());
    }
}

/// Whether the record has the block's data: not if redo restores the page from an image.
fn has_data(block: &NewBlock<'_>, image: Option<&StoredImage>) -> bool {
    block.keeps_data || !image.is_some_and(|image| image.applies)
}

/// The hole of a page: the bytes between its line pointers and its tuples. Redo fills it with zeros.
fn hole_of(block: &NewBlock<'_>) -> Range<usize> {
    let header = PageHeader::parse(block.page);
    let is_sound = header.lower >= HEADER_SIZE && usize::from(header.upper) <= BLOCK_SIZE;
    if block.is_standard && is_sound && header.lower < header.upper {
        header.lower.into()..header.upper.into()
    } else {
        0..0
    }
}

fn length_of(pieces: &[&[u8]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}
