//! Builds heap pages that a server will accept. We use them as data for tests, benchmarks and the
//! simulator.
//!
//! The caller must pass the encoded attributes of each tuple, which can be created with
//! [`crate::TupleBuilder`]. If a tuple has no xmin, we freeze it, so it is visible to all
//! transactions. We don't write any WAL, and the page's LSN is 0 unless the caller sets it, so
//! these pages must only be added to a cluster while its server is stopped.
//!
//! ```text
//!   item 1 ─┐ item 2 ─┐                            ┌ tuple 2 ┬ tuple 1 ┐
//!   [header][lp 1][lp 2] ──▶        hole       ◀── │         │         │ 8192
//!                           lower             upper
//!
//!   tuple:  xmin │ xmax 0 │ command 0 │ own address │ masks │hoff│ nulls, pad │ attributes │ pad
//!           0    4        8           12            18      22   23           hoff
//! ```

use crate::checksum::set_checksum;
use crate::heap_tuple::{
    FROZEN_XID, HAS_NULL, HAS_VAR_WIDTH, HEAP_ONLY, MAX_HEAP_ATTRIBUTES, TUPLE_HEADER_SIZE,
    XMAX_INVALID, XMIN_FROZEN,
};
use crate::ids::{BLOCK_SIZE, BlockNo, Lsn, PageBytes};
use crate::page::{
    FLAG_ALL_VISIBLE, HEADER_SIZE, LINE_POINTER_SIZE, LinePointer, LinePointerFlags,
};
use crate::page_check::SIZE_VERSION;
use thiserror::Error;

/// The reason why a tuple cannot be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum PushError {
    /// The page has no room left, so the caller must start a new page.
    #[error("no room left in the page")]
    Full,
    /// The tuple has more than 1600 attributes.
    #[error("more than 1600 attributes")]
    TooManyAttributes,
    /// The null bitmap's length doesn't match the number of attributes.
    #[error("null bitmap and number of attributes do not agree")]
    NullBitmap,
}

/// A tuple to add to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewTuple<'a> {
    /// The number of attributes, at most 1600.
    pub natts: u16,
    /// The null bitmap, which must be empty if no attribute is null. The lowest bit comes first. If
    /// an attribute's bit is set, the attribute is not null and its value is in `data`.
    pub nulls: &'a [u8],
    /// Whether any attribute has variable length.
    pub var_width: bool,
    /// The inserting transaction, without a hint bit; `None` freezes the tuple.
    pub xmin: Option<u32>,
    /// The non-null attributes, each aligned as its type requires.
    pub data: &'a [u8],
}

/// In `t_infomask` of the new version of an update.
const UPDATED: u16 = 0x2000;

/// How a tuple comes into being.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// It is inserted.
    Insert,
    /// It is the new version of a row.
    Update,
    /// The same, on the page of the old version, and without index entries.
    HotUpdate,
}

impl NewTuple<'_> {
    /// The length of the tuple on a page in bytes, before it is rounded up to 8.
    pub fn length(&self) -> usize {
        self.hoff() + self.data.len()
    }

    /// Where the attributes begin: at most 224, because the null bitmap has at most 200 bytes.
    fn hoff(&self) -> usize {
        (usize::from(TUPLE_HEADER_SIZE) + self.nulls.len()).next_multiple_of(8)
    }

    fn infomask(&self) -> u16 {
        let nulls = if self.nulls.is_empty() { 0 } else { HAS_NULL };
        let var_width = if self.var_width { HAS_VAR_WIDTH } else { 0 };
        XMAX_INVALID | nulls | var_width
    }

    /// The tuple as WAL records contain it: `xl_heap_header`, then the tuple without its fixed header. The
    /// inserting transaction is not part of it.
    pub fn to_record(&self, origin: Origin) -> Vec<u8> {
        let (heap_only, updated) = match origin {
            Origin::Insert => (0, 0),
            Origin::Update => (0, UPDATED),
            Origin::HotUpdate => (HEAP_ONLY, UPDATED),
        };
        let hoff = self.hoff();
        let mut bytes = Vec::with_capacity(self.length());
        bytes.extend_from_slice(&(self.natts | heap_only).to_le_bytes());
        bytes.extend_from_slice(&(self.infomask() | updated).to_le_bytes());
        bytes.push(hoff as u8);
        bytes.extend_from_slice(self.nulls);
        bytes.resize(5 + hoff - usize::from(TUPLE_HEADER_SIZE), 0);
        bytes.extend_from_slice(self.data);
        bytes
    }
}

/// A heap page under construction.
///
/// ```
/// use trunkline_format::{CheckOptions, Fork, HeapPageBuilder, TupleBuilder, Verdict, check_page};
/// let mut page = HeapPageBuilder::new(7);
/// let mut row = TupleBuilder::new();
/// row.int4(1).text("one");
/// while page.push(&row.tuple()).is_ok() {}
/// assert_eq!(page.len(), 226);
/// let options = CheckOptions { checksums: true, fork: Fork::Main };
/// assert_eq!(check_page(&page.finish(true), 7, &options), Verdict::Good);
/// ```
#[derive(Clone, Debug)]
pub struct HeapPageBuilder {
    page: Box<PageBytes>,
    block: BlockNo,
    items: u16,
    upper: u16,
    flags: u16,
}

impl HeapPageBuilder {
    /// Creates an empty page for block `block`.
    pub fn new(block: BlockNo) -> Self {
        let page = Box::new([0; BLOCK_SIZE]);
        Self { page, block, items: 0, upper: BLOCK_SIZE as u16, flags: 0 }
    }

    /// The number of tuples on the page.
    pub fn len(&self) -> u16 {
        self.items
    }

    /// Whether the page has no tuples.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Sets the page's LSN, which is 0 otherwise.
    pub fn lsn(&mut self, lsn: Lsn) -> &mut Self {
        self.put(0, &lsn.high().to_le_bytes());
        self.put(4, &lsn.low().to_le_bytes());
        self
    }

    /// Marks the page all-visible. The caller must also set the bit in the visibility map.
    pub fn all_visible(&mut self) -> &mut Self {
        self.flags |= FLAG_ALL_VISIBLE;
        self
    }

    /// Adds a tuple and returns its 1-based line pointer number.
    ///
    /// # Errors
    ///
    /// [`PushError`], in which case the page is unchanged.
    pub fn push(&mut self, tuple: &NewTuple<'_>) -> Result<u16, PushError> {
        if tuple.natts > MAX_HEAP_ATTRIBUTES {
            return Err(PushError::TooManyAttributes);
        }
        let bitmap = tuple.natts.div_ceil(8);
        if !tuple.nulls.is_empty() && tuple.nulls.len() != usize::from(bitmap) {
            return Err(PushError::NullBitmap);
        }
        let header = TUPLE_HEADER_SIZE + if tuple.nulls.is_empty() { 0 } else { bitmap };
        let hoff = header.next_multiple_of(8);
        let length = u16::try_from(tuple.data.len())
            .ok()
            .and_then(|data| data.checked_add(hoff))
            .ok_or(PushError::Full)?;
        let space = length.checked_next_multiple_of(8).ok_or(PushError::Full)?;
        let start = self.upper.checked_sub(space).ok_or(PushError::Full)?;
        if start < self.lower() + LINE_POINTER_SIZE {
            return Err(PushError::Full);
        }
        let pointer_at = self.lower();
        let item = self.items + 1;
        let flags = LinePointerFlags::Normal;
        let pointer = LinePointer { offset: start, flags, length };
        self.put(pointer_at, &pointer.to_bits().to_le_bytes());
        self.put_tuple(start, item, tuple, hoff);
        self.items = item;
        self.upper = start;
        Ok(item)
    }

    /// Returns the finished page, with a checksum if the cluster uses checksums.
    pub fn finish(mut self, checksums: bool) -> PageBytes {
        let header = [self.flags, self.lower(), self.upper, BLOCK_SIZE as u16, SIZE_VERSION];
        for (at, field) in (10..).step_by(2).zip(header) {
            self.put(at, &field.to_le_bytes());
        }
        set_checksum(&mut self.page, self.block, checksums);
        *self.page
    }

    fn lower(&self) -> u16 {
        HEADER_SIZE + self.items * LINE_POINTER_SIZE
    }

    fn put_tuple(&mut self, start: u16, item: u16, tuple: &NewTuple<'_>, hoff: u16) {
        let xmin = tuple.xmin.unwrap_or(FROZEN_XID);
        let mut mask = tuple.infomask();
        if tuple.xmin.is_none() {
            mask |= XMIN_FROZEN;
        }
        // The tuple's own TID. It consists of the block number, with the upper half first, and the
        // line pointer number.
        let block_high = (self.block >> 16) as u16;
        let block_low = self.block as u16;
        self.put(start, &xmin.to_le_bytes());
        for (at, field) in (12..).step_by(2).zip([block_high, block_low, item, tuple.natts, mask]) {
            self.put(start + at, &field.to_le_bytes());
        }
        // At most 224, because the null bitmap has at most 200 bytes.
        self.put(start + 22, &[hoff as u8]);
        self.put(start + TUPLE_HEADER_SIZE, tuple.nulls);
        self.put(start + hoff, tuple.data);
    }

    /// Writes `bytes` at `at`. The callers have checked that they fit.
    fn put(&mut self, at: u16, bytes: &[u8]) {
        let at = usize::from(at);
        if let Some(place) = self.page.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Fork;
    use crate::page::PageHeader;
    use crate::page_check::{CheckOptions, Verdict, check_page};
    use crate::test_data::XorShift;

    const OPTIONS: CheckOptions = CheckOptions { checksums: true, fork: Fork::Main };

    #[test]
    fn built_pages_pass() {
        let seed = 0xB01D;
        let mut random = XorShift(seed);
        for round in 0..2_000 {
            let block = random.next() as u32;
            let mut builder = HeapPageBuilder::new(block);
            builder.lsn(Lsn(random.next()));
            if random.below(2) == 0 {
                builder.all_visible();
            }
            let most = [1, 8, 100, 9000][random.below(4)];
            for _ in 0..random.below(400) {
                let data = vec![random.next() as u8; random.below(most)];
                let natts = random.below(1601) as u16;
                let bitmap = vec![random.next() as u8; usize::from(natts.div_ceil(8))];
                let nulls = if random.below(2) == 0 { &bitmap[..] } else { &[] };
                let xmin = (random.below(2) == 0).then_some(random.next() as u32);
                let tuple = NewTuple { natts, nulls, var_width: false, xmin, data: &data };
                let before = builder.len();
                match builder.push(&tuple) {
                    Ok(item) => assert_eq!(item, before + 1),
                    Err(error) => assert_eq!((error, builder.len()), (PushError::Full, before)),
                }
            }
            let verdict = check_page(&builder.finish(true), block, &OPTIONS);
            assert_eq!(verdict, Verdict::Good, "seed {seed}, round {round}");
        }
    }

    #[test]
    fn fills_to_the_last_byte() {
        let tuple = |data| NewTuple { natts: 1, nulls: &[], var_width: false, xmin: None, data };
        let mut builder = HeapPageBuilder::new(0);
        assert!(builder.is_empty());
        // What is left of a page after the page header (24 bytes), one line pointer (4 bytes) and
        // the tuple header (24 bytes), rounded down to a multiple of 8.
        assert_eq!(builder.push(&tuple(&[7; 8137])), Err(PushError::Full));
        assert_eq!(builder.push(&tuple(&[7; 65535])), Err(PushError::Full));
        assert_eq!(builder.push(&tuple(&[7; 8136])), Ok(1));
        assert_eq!(builder.push(&tuple(&[])), Err(PushError::Full));
        let page = builder.finish(true);
        assert_eq!(check_page(&page, 0, &OPTIONS), Verdict::Good);
        assert_eq!(PageHeader::parse(&page).upper, 32);

        let mut builder = HeapPageBuilder::new(0);
        while builder.push(&tuple(&[])).is_ok() {}
        assert_eq!(builder.len(), 291);
        let many = NewTuple { natts: 1601, ..tuple(&[]) };
        assert_eq!(builder.push(&many), Err(PushError::TooManyAttributes));
        let bitmap = NewTuple { natts: 9, nulls: &[0xFF], ..tuple(&[]) };
        assert_eq!(builder.push(&bitmap), Err(PushError::NullBitmap));
    }
}
