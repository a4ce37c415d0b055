//! **Unique check**: the rows that have the same key as a new entry (`_bt_check_unique`).
//!
//! The leaves that may have the key are locked from left to right. Row visibility is not checked here: that would mean reading pages of the
//! table while leaves are locked.

use std::cmp::Ordering;

use trunkline_format::Tid;
use trunkline_format::btree::{BtreePage, Entry, Fault, KeyLayout};

/// Whether rows with an equal key are in the way of a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness<'r> {
    /// They are not.
    NotChecked,
    /// They are, except for those that the caller has found gone: their insertion has aborted, or their deletion has
    /// committed or is this transaction's own. A snapshot that still sees such a row doesn't matter.
    Checked {
        /// Rows that don't count. They must not be removed from the table before the insert returns, since another row could
        /// get the same TID.
        ignored: &'r [Tid],
        /// Whether a key with a null can be equal to another (`NULLS NOT DISTINCT`).
        nulls_are_equal: bool,
    },
}

/// A check that is needed.
#[derive(Debug)]
pub(super) struct Unique {
    /// In ascending order.
    ignored: Vec<Tid>,
}

impl Unique {
    /// `None` if no other row can be in the way of the entry.
    pub(super) fn of(
        layout: &KeyLayout,
        entry: &Entry<'_>,
        uniqueness: Uniqueness<'_>,
    ) -> Result<Option<Self>, Fault> {
        let Uniqueness::Checked { ignored, nulls_are_equal } = uniqueness else { return Ok(None) };
        for value in entry.attributes(layout.keys()) {
            if value?.is_none() && !nulls_are_equal {
                return Ok(None);
            }
        }
        let mut ignored = ignored.to_vec();
        ignored.sort_unstable();
        Ok(Some(Self { ignored }))
    }

    /// Adds the rows of the entries with this key, from line pointer `item` on, that are in the way. Returns whether there may be
    /// more on the next page.
    pub(super) fn collect(
        &self,
        layout: &KeyLayout,
        page: &BtreePage<'_>,
        (item, key): (u16, &Entry<'_>),
        rows: &mut Vec<Tid>,
    ) -> Result<bool, Fault> {
        let is_equal =
            |entry: &Entry<'_>| Ok(layout.compare_entries(entry, key, false)? == Ordering::Equal);
        for item in item..=page.count() {
            let entry = page.entry(item)?;
            if !is_equal(&entry)? {
                return Ok(false);
            }
            // All rows of a dead entry are dead.
            if !entry.is_dead() {
                rows.extend(entry.rows().filter(|row| self.ignored.binary_search(row).is_err()));
            }
        }
        page.high_key()?.map_or(Ok(false), |high| is_equal(&high))
    }
}
