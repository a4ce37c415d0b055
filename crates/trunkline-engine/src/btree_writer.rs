//! Inserts entries into B-tree indexes: builds their WAL records, from which [`page_change`] makes the pages (PostgreSQL's
//! `_bt_doinsert`).
//!
//! ```text
//!   insert ─▶ descend ─▶ leaf ─▶ equal keys of a unique index ─▶ space: Btree/INSERT_LEAF
//!                                                                └▶ none: Btree/SPLIT_L or SPLIT_R ─┐
//!   finish the split ◀──────────────────────────────────────────────────────────────────────────────┘
//!      the page was the root ─▶ Btree/NEWROOT
//!      otherwise ─▶ downlink into the parent: Btree/INSERT_UPPER, or the parent is split, and so on
//! ```
//! **One record at a time.** A split and the downlink of its right half are two changes, as they are two records. Between them no
//! page is locked: the left half is marked, and its right half is reached by moving right. Whichever insert meets the mark first
//! finishes the split. So a split that a crash has interrupted is not a special case.
//!
//! **Locks.** A change pins its pages, then reserves room in the WAL, then locks the pages: a child before its parent, and each level
//! from left to right, as in PostgreSQL. With the locks it looks again whether the pages are still the right ones, and begins
//! anew if they are not. A descent locks one page at a time, and moves right if a page was split meanwhile (Lehman and Yao).
//! No page is changed before the split to the left of it is finished: otherwise its own right half could not be placed in the
//! parent.
//!
//! **Unique indexes.** All inserts of a key lock the first leaf that may have it, and keep the lock until the entry is there. The caller
//! gets the rows with an equal key, looks at them without any lock, and tries again without those that are gone.
//!
//! **Not here:** deduplication, deletion of entries and pages, and the free space map: each split extends the index.
//!
//! | File | Question |
//! |---|---|
//! | `writer` | what does a writer know? |
//! | `descent` | which page of a level does a key belong to? |
//! | `placement` | which pages does an insert need, and where does its entry go? |
//! | `locked_pages` | which pages are locked, and how does a record change them? |
//! | `unique_check` | which rows have the same key? |
//! | `split`, `split_point` | what goes to which half? |
//! | `new_root` | how does an index begin, and how does it grow? |
//!
//! [`page_change`]: crate::page_change

mod descent;
mod error;
mod locked_pages;
mod new_root;
mod placement;
mod split;
mod split_point;
mod unique_check;
mod writer;

pub use error::BtreeWriteError;
pub use unique_check::Uniqueness;
pub use writer::BtreeWriter;

use trunkline_format::btree::Entry;
use trunkline_format::index_tuple::leaf_entry;
use trunkline_format::page_builder::NewTuple;
use trunkline_format::{Lsn, Tid};

use crate::btree::Index;
use crate::heap_writer::HeapSession;
use placement::{Insertion, Placed};
use unique_check::Unique;

/// What has become of a new entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "there may be rows with an equal key"]
pub enum Inserted {
    /// It is in the index.
    Done {
        /// The end of its record.
        lsn: Lsn,
    },
    /// It is not, because these rows have an equal key.
    Conflict {
        /// The rows, in the order of the index.
        rows: Vec<Tid>,
    },
}

impl BtreeWriter {
    /// Makes an empty index from an empty relation, and returns a writer for it. `all_equal_image` says that equal keys
    /// always have identical bytes, so that PostgreSQL may deduplicate them. It does so only in an index without `INCLUDE`
    /// columns.
    ///
    /// # Errors
    /// [`BtreeWriteError`].
    pub fn create(
        session: &mut HeapSession<'_>,
        index: Index,
        all_equal_image: bool,
    ) -> Result<Self, BtreeWriteError> {
        let writer = Self::new(index)?;
        let layout = writer.index.layout();
        let has_only_keys = layout.keys().len() == layout.columns().len();
        writer.write_metapage(session, all_equal_image && has_only_keys)?;
        Ok(writer)
    }

    /// Inserts the entry of a row. `columns` are its values, `INCLUDE` columns last. The session may need more pins than it is
    /// guaranteed, if many rows have the same key in a unique index; its guarantee is the default afterwards.
    ///
    /// # Errors
    /// [`BtreeWriteError`]; the entry was not inserted.
    pub fn insert(
        &mut self,
        session: &mut HeapSession<'_>,
        columns: &NewTuple<'_>,
        row: Tid,
        uniqueness: Uniqueness<'_>,
    ) -> Result<Inserted, BtreeWriteError> {
        let (found, expected) = (columns.natts, self.index.layout().columns().len());
        if usize::from(found) != expected {
            return Err(BtreeWriteError::Columns { found, expected });
        }
        if row.item == 0 {
            return Err(BtreeWriteError::InvalidRow { row });
        }
        let tuple = leaf_entry(columns, row).map_err(|source| BtreeWriteError::Entry {
            row,
            source,
            index: self.path(),
        })?;
        let value = |fault| BtreeWriteError::Value { row, fault };
        let entry = Entry::of_leaf(1, &tuple).map_err(value)?;
        self.index.layout().equal_columns(&entry, &entry).map_err(value)?;
        let unique = Unique::of(self.index.layout(), &entry, uniqueness).map_err(value)?;
        self.make_first_root(session)?;
        let unique = unique.as_ref();
        let insertion = Insertion { tuple: &tuple, entry, level: 0, child: None, unique };
        match self.place(session, &insertion)? {
            Placed::Inserted { lsn } => Ok(Inserted::Done { lsn }),
            Placed::Conflict { rows } => Ok(Inserted::Conflict { rows }),
            Placed::IsComplete => unreachable!("a leaf entry does not complete a split"),
        }
    }
}
