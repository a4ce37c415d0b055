//! **Splits**: what the record of a split says about both halves.
//!
//! ```text
//!   entries with the new one   a b c N d e f
//!   left half                  a b c N         and a high key that separates N from d
//!   right half                 d e f           and the high key that the page had
//!   record   first right: the line pointer that d had; N and the high key; all of the right half
//! ```
//! Redo makes the left half from the old page, so its entries are not in the record.

use trunkline_format::btree::{BtreePage, Entry, Fault, KeyLayout};
use trunkline_format::index_tuple::{first_downlink, separator};
use trunkline_format::wal::resource_manager::btree_operation::{SPLIT_LEFT, SPLIT_RIGHT};

use super::split_point::{PageShape, split_point};

/// A split that is planned.
#[derive(Debug)]
pub(super) struct Split {
    /// The operation: `SPLIT_LEFT` or `SPLIT_RIGHT`.
    pub(super) info: u8,
    /// `xl_btree_split`.
    pub(super) main: [u8; 10],
    /// The data of the left half.
    pub(super) left: Vec<u8>,
    /// The data of the right half.
    pub(super) right: Vec<u8>,
}

impl Split {
    /// Plans to split a page to which `tuple` is added at line pointer `item`. `None` if the entries don't fit on two pages.
    pub(super) fn of(
        layout: &KeyLayout,
        page: &BtreePage<'_>,
        (item, tuple): (u16, &[u8]),
    ) -> Result<Option<Self>, Fault> {
        let first = page.first();
        let mut entries = Vec::with_capacity(usize::from(page.count()) + 1);
        for item in first..=page.count() {
            entries.push(page.item(item)?);
        }
        let new_at = usize::from(item - first);
        entries.insert(new_at, tuple);
        let high_key = page.right().is_some().then(|| page.item(1)).transpose()?;
        let shape = PageShape { is_leaf: page.is_leaf(), high_key: high_key.map(<[u8]>::len) };
        let sizes: Vec<usize> = entries.iter().map(|entry| entry.len()).collect();
        let Some(point) = split_point(shape, &sizes) else { return Ok(None) };
        let (lefts, rights) = entries.split_at(point);
        let ([.., last_left], [first_right, others @ ..]) = (lefts, rights) else {
            return Ok(None);
        };
        let is_left = new_at < point;
        let mut left = Vec::new();
        if is_left {
            push(&mut left, tuple);
        }
        let mut right = Vec::new();
        for entry in others.iter().rev() {
            push(&mut right, entry);
        }
        if page.is_leaf() {
            push(&mut right, first_right);
            let number = first + point as u16;
            let last_left = Entry::of_leaf(number.saturating_sub(1), last_left)?;
            let first_right = Entry::of_leaf(number, first_right)?;
            push(&mut left, &separator(layout, &last_left, &first_right)?);
        } else {
            let entry = Entry::of_separator(first + point as u16, first_right)?;
            let child = entry.child().ok_or(Fault::Kind { item: entry.item() })?;
            push(&mut right, &first_downlink(child));
            push(&mut left, first_right);
        }
        if let Some(high_key) = high_key {
            push(&mut right, high_key);
        }
        let old_on_left = point as u16 - u16::from(is_left);
        let mut main = [0; 10];
        main[..4].copy_from_slice(&page.level().to_le_bytes());
        main[4..6].copy_from_slice(&(first + old_on_left).to_le_bytes());
        main[6..8].copy_from_slice(&item.to_le_bytes());
        let info = if is_left { SPLIT_LEFT } else { SPLIT_RIGHT };
        Ok(Some(Self { info, main, left, right }))
    }
}

/// Adds a tuple, whose size is rounded up as on a page.
fn push(bytes: &mut Vec<u8>, tuple: &[u8]) {
    bytes.extend_from_slice(tuple);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}
