//! Logs for tests: those of real servers, and a writer that puts records of any length onto pages,
//! as `CopyXLogRecordToWAL` does.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

use super::locator::RelFileLocator;
use super::page_header::{LOG_PAGE_SIZE, LONG_HEADER_SIZE, SHORT_HEADER_SIZE};
use super::record::{Record, record_crc};
use super::segment_name::SegmentSize;
use crate::ids::{BlockNo, Lsn};

/// Decompresses a file of `testdata`.
pub(super) fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = StreamingDecoder::new(bytes).expect("a frame");
    decoder.read_to_end(&mut out).expect("sound");
    out
}

/// The system identifier of written logs.
pub(super) const SYSTEM: u64 = 0x1234_5678_9ABC_DEF0;

/// The smallest segments.
pub(super) fn megabyte() -> SegmentSize {
    SegmentSize::new(1 << 20).expect("valid")
}

/// Builds the bytes of a record from its parts.
pub(super) struct RecordBytes {
    pub(super) manager: u8,
    pub(super) info: u8,
    pub(super) xid: u32,
    /// Everything behind the header.
    pub(super) body: Vec<u8>,
}

impl RecordBytes {
    /// A record with main data only.
    pub(super) fn plain(manager: u8, info: u8, main_data: &[u8]) -> Self {
        let mut body = vec![254];
        body.extend((main_data.len() as u32).to_le_bytes());
        body.extend(main_data);
        Self { manager, info, xid: 7, body }
    }

    /// A record with block references and main data. References have no images.
    pub(super) fn with_blocks<'a>(
        (manager, info, xid): (u8, u8, u32),
        references: impl IntoIterator<Item = Reference<'a>>,
        main_data: &[u8],
    ) -> Self {
        let (mut body, mut data) = (Vec::new(), Vec::<u8>::new());
        for Reference { id, flags, relation, block, data: bytes } in references {
            let has_data = if bytes.is_empty() { 0 } else { 0x20 };
            body.extend([id, flags | has_data]);
            body.extend((bytes.len() as u16).to_le_bytes());
            let words = [relation.tablespace.0, relation.database.0, relation.number, block];
            words.iter().for_each(|word| body.extend(word.to_le_bytes()));
            data.extend(bytes);
        }
        body.push(254);
        body.extend((main_data.len() as u32).to_le_bytes());
        body.extend(data);
        body.extend(main_data);
        Self { manager, info, xid, body }
    }

    /// The whole record, with its CRC.
    pub(super) fn build(&self, previous: Lsn) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((24 + self.body.len() as u32).to_le_bytes());
        bytes.extend(self.xid.to_le_bytes());
        bytes.extend(previous.0.to_le_bytes());
        bytes.extend([self.info, self.manager, 0, 0, 0, 0, 0, 0]);
        bytes.extend(&self.body);
        let crc = record_crc(&bytes);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// A block reference of a record.
pub(super) struct Reference<'a> {
    pub(super) id: u8,
    /// The number of the fork, and 0x40 if the page is initialised.
    pub(super) flags: u8,
    pub(super) relation: RelFileLocator,
    pub(super) block: BlockNo,
    pub(super) data: &'a [u8],
}

/// Writes a log from the beginning of a segment on.
pub(super) struct LogWriter {
    magic: u16,
    pub(super) timeline: u32,
    pub(super) start: Lsn,
    pub(super) bytes: Vec<u8>,
    pub(super) previous: Lsn,
    /// Where each record starts and ends.
    pub(super) records: Vec<(Lsn, Lsn)>,
}

impl LogWriter {
    pub(super) fn new(magic: u16, start: Lsn) -> Self {
        let (bytes, records) = (Vec::new(), Vec::new());
        Self { magic, timeline: 1, start, bytes, previous: Lsn(0), records }
    }

    /// Where the next byte goes.
    pub(super) fn at(&self) -> Lsn {
        Lsn(self.start.0 + self.bytes.len() as u64)
    }

    /// Begins a page.
    pub(super) fn page(&mut self, info: u16, remaining: u32) {
        let at = self.at();
        assert_eq!(at.0 % LOG_PAGE_SIZE as u64, 0, "pages start at page borders");
        let is_long = megabyte().offset(at) == 0;
        let info = info | if is_long { 0x2 } else { 0 };
        self.bytes.extend(self.magic.to_le_bytes());
        self.bytes.extend(info.to_le_bytes());
        self.bytes.extend(self.timeline.to_le_bytes());
        self.bytes.extend(at.0.to_le_bytes());
        self.bytes.extend(u64::from(remaining).to_le_bytes());
        if is_long {
            self.bytes.extend(SYSTEM.to_le_bytes());
            self.bytes.extend((1_u32 << 20).to_le_bytes());
            self.bytes.extend((LOG_PAGE_SIZE as u32).to_le_bytes());
        }
    }

    /// Begins a page if the one before is full. Returns the space that is left on it.
    fn room(&mut self, info: u16, remaining: u32) -> usize {
        if self.bytes.len().is_multiple_of(LOG_PAGE_SIZE) {
            self.page(info, remaining);
        }
        LOG_PAGE_SIZE - self.bytes.len() % LOG_PAGE_SIZE
    }

    /// Writes a record. If `keep` is less than its length, only as many bytes: a crash.
    pub(super) fn write_part(&mut self, record: &[u8], keep: usize) -> Lsn {
        let room = self.room(0, 0);
        assert!(room >= 8, "records start at multiples of 8");
        let start = self.at();
        let mut written = 0;
        while written < record.len().min(keep) {
            let room = match written {
                0 => self.room(0, 0),
                _ => self.room(0x1, (record.len() - written) as u32),
            };
            let part = room.min(record.len().min(keep) - written);
            self.bytes.extend(&record[written..written + part]);
            written += part;
        }
        start
    }

    /// Writes a record as a whole.
    pub(super) fn write(&mut self, record: &RecordBytes) -> Lsn {
        let bytes = record.build(self.previous);
        let start = self.write_part(&bytes, usize::MAX);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.previous = start;
        let end = self.at();
        self.records.push((start, end));
        start
    }

    /// Fills the page with zeros.
    pub(super) fn end_page(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(LOG_PAGE_SIZE), 0);
    }

    /// The largest record that fits behind the header of a page.
    pub(super) const SHORT_ROOM: usize = LOG_PAGE_SIZE - SHORT_HEADER_SIZE;
    /// The same for the first page of a segment.
    pub(super) const LONG_ROOM: usize = LOG_PAGE_SIZE - LONG_HEADER_SIZE;
}

/// The bytes of a record without its images.
pub(super) fn record_bytes(record: &Record<'_>) -> Vec<u8> {
    let header = record.header();
    let references = record.blocks().iter().map(|found| {
        let will_init = if found.will_init { 0x40 } else { 0 };
        let flags = found.fork as u8 | will_init;
        let data = found.data.unwrap_or_default();
        Reference { id: found.id, flags, relation: found.relation, block: found.block, data }
    });
    let parts = (header.manager, header.info, header.xid);
    RecordBytes::with_blocks(parts, references, record.main_data()).build(Lsn(8))
}
