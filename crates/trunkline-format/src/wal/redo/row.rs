//! **Rows in records**: the header fields that heap records change, and row versions that they add.
//!
//! ```text
//!   data of a block   infomask2 │ infomask │ hoff │ null bitmap, pad │ attributes
//!   on the page       xmin xmax 0 own-tid │ infomask2 │ infomask │ hoff │ null bitmap, pad │ …
//!                     0                   18                       23
//! ```
//! A record doesn't repeat what is known: the transaction is the record's, and a new version points
//! to itself. Command numbers are not logged, so redo sets them to 0; they mean nothing after the
//! inserting transaction has ended.
//!
//! Mirrors `xl_heap_header` and `fix_infomask_from_infobits` in PostgreSQL's `access/heap`.

use crate::heap_tuple::{
    COMBO_COMMAND, HOT_UPDATED, KEYS_UPDATED, MOVED_IN, MOVED_OFF, TUPLE_HEADER_SIZE, XMAX_BITS,
    XMAX_EXCLUSIVE_LOCK, XMAX_IS_MULTI, XMAX_KEY_SHARE_LOCK, XMAX_LOCK_ONLY, is_only_locked,
};
use std::ops::Range;

use crate::ids::{BlockNo, Tid};
use crate::little_endian::read_at;
use crate::wal::fields::Fields;
use crate::wal::heap_flags::info_bits;

use super::error::RedoError;
use super::page_editor::{PageEditor, Slot};

/// Offsets in a tuple header.
const XMIN: usize = 0;
const XMAX: usize = 4;
/// The command number or, long ago, the transaction of a `VACUUM FULL`.
const FIELD3: usize = 8;
const CTID: usize = 12;
const INFOMASK2: usize = 18;
const INFOMASK: usize = 20;
const HOFF: usize = 22;

const HEADER: usize = TUPLE_HEADER_SIZE as usize;

/// The line pointer number in `t_ctid` that says that the row has moved to another partition.
const MOVED_PARTITIONS: u16 = 0xFFFD;

/// The bits of `infobits_set` in a record, and where they go.
const INFO_BITS: [(u8, u16); 4] = [
    (info_bits::IS_MULTI, XMAX_IS_MULTI),
    (info_bits::LOCK_ONLY, XMAX_LOCK_ONLY),
    (info_bits::EXCLUSIVE, XMAX_EXCLUSIVE_LOCK),
    (info_bits::KEY_SHARE, XMAX_KEY_SHARE_LOCK),
];

/// Where `t_ctid` of a changed row version points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    To(Tid),
    OtherPartition,
}

/// A row version on a page whose header is changed.
pub(super) struct Row<'p> {
    bytes: &'p mut [u8],
}

impl<'p> Row<'p> {
    /// The row version that line pointer `item` points at.
    pub(super) fn at<'e: 'p>(page: &'p mut PageEditor<'e>, item: u16) -> Result<Self, RedoError> {
        let range = page.item(item)?;
        if range.len() < HEADER {
            return Err(RedoError::ItemLength { item, found: range.len(), expected: HEADER });
        }
        Ok(Self { bytes: page.bytes_mut(range) })
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        super::page_editor::put(self.bytes, at, bytes);
    }

    fn word(&self, at: usize) -> u16 {
        read_at(self.bytes, at).unwrap_or_default()
    }

    fn change(&mut self, at: usize, set: u16, clear: u16) {
        let bits = self.word(at) & !clear | set;
        self.put(at, &bits.to_le_bytes());
    }

    pub(super) fn set_xmin(&mut self, xid: u32) {
        self.put(XMIN, &xid.to_le_bytes());
    }

    pub(super) fn set_xmax(&mut self, xid: u32) {
        self.put(XMAX, &xid.to_le_bytes());
    }

    /// Sets the command number to that of the first command.
    pub(super) fn reset_command(&mut self) {
        self.put(FIELD3, &[0; 4]);
        self.change(INFOMASK, 0, COMBO_COMMAND);
    }

    /// The transaction of an old `VACUUM FULL`.
    pub(super) fn set_field3(&mut self, xid: u32) {
        self.put(FIELD3, &xid.to_le_bytes());
    }

    pub(super) fn set_masks(&mut self, infomask2: u16, infomask: u16) {
        self.put(INFOMASK2, &infomask2.to_le_bytes());
        self.put(INFOMASK, &infomask.to_le_bytes());
    }

    pub(super) fn set_hot_updated(&mut self, is_hot: bool) {
        let (set, clear) = if is_hot { (HOT_UPDATED, 0) } else { (0, HOT_UPDATED) };
        self.change(INFOMASK2, set, clear);
    }

    pub(super) fn set_link(&mut self, link: Link) {
        let bytes = match link {
            Link::To(tid) => tid.to_bytes(),
            Link::OtherPartition => Tid { block: BlockNo::MAX, item: MOVED_PARTITIONS }.to_bytes(),
        };
        self.put(CTID, &bytes);
    }

    /// Replaces all bits about xmax by those of a record.
    pub(super) fn set_info_bits(&mut self, info: u8) {
        let bits = INFO_BITS.iter().filter(|(bit, _)| info & bit != 0);
        let set = bits.fold(0, |all, (_, bit)| all | bit);
        self.change(INFOMASK, set, XMAX_BITS | MOVED_OFF | MOVED_IN);
        let keys = if info & info_bits::KEYS_UPDATED != 0 { KEYS_UPDATED } else { 0 };
        self.change(INFOMASK2, keys, KEYS_UPDATED);
    }

    /// Whether xmax has locked the row, but not changed it.
    pub(super) fn is_only_locked(&self) -> bool {
        is_only_locked(self.word(INFOMASK))
    }
}

/// A row version that a record adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewRow<'b> {
    pub(super) infomask2: u16,
    pub(super) infomask: u16,
    pub(super) hoff: u8,
    /// Everything behind the fixed header: null bitmap, padding, attributes.
    pub(super) body: &'b [u8],
}

/// Bytes of the old version that an update has not logged again.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reused {
    /// The line pointer of the old version.
    pub(super) item: u16,
    /// How much the attributes begin with.
    pub(super) prefix: usize,
    /// How much they end with.
    pub(super) suffix: usize,
}

impl<'b> NewRow<'b> {
    /// Takes a row from the data of a block. Its body is everything that is left.
    pub(super) fn take_rest(fields: &mut Fields<'b>) -> Result<Self, RedoError> {
        let length = fields.rest().len().checked_sub(5).ok_or(RedoError::Short)?;
        Self::take(fields, length).ok_or(RedoError::Short)
    }

    /// Takes a row with a body of `length` bytes.
    pub(super) fn take(fields: &mut Fields<'b>, length: usize) -> Option<Self> {
        let (infomask2, infomask, hoff) = (fields.u16()?, fields.u16()?, fields.u8()?);
        Some(Self { infomask2, infomask, hoff, body: fields.bytes(length)? })
    }

    /// Puts the row version onto a page.
    pub(super) fn add(
        &self,
        page: &mut PageEditor<'_>,
        own: Tid,
        (xmin, xmax): (u32, u32),
        reused: Reused,
    ) -> Result<(), RedoError> {
        let Reused { prefix, suffix, .. } = reused;
        let (old_prefix, old_suffix) = reused.find(page)?;
        let size = HEADER + self.body.len() + prefix + suffix;
        let at = page.add(own.item, size, Slot::Free)?;
        let mut header = [0; HEADER];
        Row { bytes: &mut header }.fill(self, own, (xmin, xmax));
        page.put(at, &header);
        // The prefix goes behind the null bitmap, which is logged in any case.
        let bitmap = match prefix {
            0 => self.body.len(),
            _ => usize::from(self.hoff).saturating_sub(HEADER),
        };
        let (before, after) = self.body.split_at_checked(bitmap).ok_or(RedoError::Short)?;
        let mut at = at + HEADER;
        page.put(at, before);
        at += before.len();
        page.copy(old_prefix, at);
        at += prefix;
        page.put(at, after);
        page.copy(old_suffix, at + after.len());
        Ok(())
    }
}

impl Row<'_> {
    fn fill(&mut self, row: &NewRow<'_>, own: Tid, (xmin, xmax): (u32, u32)) {
        self.set_xmin(xmin);
        self.set_xmax(xmax);
        self.set_link(Link::To(own));
        self.set_masks(row.infomask2, row.infomask & !COMBO_COMMAND);
        self.put(HOFF, &[row.hoff]);
    }
}

impl Reused {
    /// Where prefix and suffix are on the page.
    fn find(self, page: &PageEditor<'_>) -> Result<(Range<usize>, Range<usize>), RedoError> {
        let Self { item, prefix, suffix } = self;
        if prefix == 0 && suffix == 0 {
            return Ok((0..0, 0..0));
        }
        let data = attributes(page, item)?;
        let (found, expected) = (data.len(), prefix.max(suffix));
        if expected > found {
            return Err(RedoError::OldVersion { item, found, expected });
        }
        Ok((data.start..data.start + prefix, data.end - suffix..data.end))
    }
}

/// Where the attributes of a row version are.
fn attributes(page: &PageEditor<'_>, item: u16) -> Result<Range<usize>, RedoError> {
    let row = page.item(item)?;
    let hoff = page.bytes(row.clone()).get(HOFF).copied().map_or(0, usize::from);
    if hoff < HEADER || hoff > row.len() {
        return Err(RedoError::ItemLength { item, found: row.len(), expected: hoff.max(HEADER) });
    }
    Ok(row.start + hoff..row.end)
}

/// Overwrites the attributes of a row version in place. Their length must not change.
pub(super) fn overwrite_attributes(
    page: &mut PageEditor<'_>,
    item: u16,
    data: &[u8],
) -> Result<(), RedoError> {
    let place = attributes(page, item)?;
    if place.len() != data.len() {
        let (found, expected) = (place.len(), data.len());
        return Err(RedoError::ItemLength { item, found, expected });
    }
    page.put(place.start, data);
    Ok(())
}
