//! **Unique check**: the rows that have the same key as a new entry (`_bt_check_unique`).
//!
//! The leaves that may have the key are locked from the first on. Rows are not looked at here: that would mean to read pages of the
//! table while leaves are locked.

use std::cmp::Ordering;

use trunkline_format::Tid;
use trunkline_format::btree::{BtreePage, Entry, Fault, KeyLayout};

/// Whether rows with an equal key are in the way of a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness<'r> {
    /// They are not.
    NotChecked,
    /// They are, except for these, which the caller has found dead for all transactions.
    Checked {
        /// Rows that don't count.
        ignored: &'r [Tid],
        /// Whether a key with a null can be equal to another (`NULLS NOT DISTINCT`).
        nulls_are_equal: bool,
    },
}

/// A check that is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unique<'r> {
    ignored: &'r [Tid],
}

impl<'r> Unique<'r> {
    /// `None` if no other row can be in the way of the entry.
    pub(super) fn of(
        layout: &KeyLayout,
        entry: &Entry<'_>,
        uniqueness: Uniqueness<'r>,
    ) -> Result<Option<Self>, Fault> {
        let Uniqueness::Checked { ignored, nulls_are_equal } = uniqueness else { return Ok(None) };
        for value in entry.attributes(layout.keys()) {
            if value?.is_none() && !nulls_are_equal {
                return Ok(None);
            }
        }
        Ok(Some(Self { ignored }))
    }

    /// Adds the rows of the entries with this key, from line pointer `item` on, that are in the way. Returns whether there may be
    /// more on the next page.
    pub(super) fn collect(
        self,
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
                rows.extend(entry.rows().filter(|row| !self.ignored.contains(row)));
            }
        }
        page.high_key()?.map_or(Ok(false), |high| is_equal(&high))
    }
}
