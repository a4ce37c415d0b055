//! Changes pages of heap tables: builds their WAL records, from which [`page_change`] makes the pages.
//!
//! ```text
//!   insert        the writer's page, or a new one ─▶ Heap/INSERT
//!   insert_many   page by page ────────────────────▶ Heap2/MULTI_INSERT
//!   update        fits on the page of the old version ─▶ Heap/HOT_UPDATE or Heap/UPDATE of one page
//!                 otherwise ───────────────────────────▶ Heap/UPDATE of two pages, locked in ascending order
//!   delete        Heap/DELETE
//!   lock          Heap/LOCK
//!   prune         HOT chains of dead versions, and freezing ─▶ Heap2/PRUNE_ON_ACCESS or PRUNE_VACUUM_SCAN
//!   remove_dead   dead line pointers become unused ──────────▶ Heap2/PRUNE_VACUUM_CLEANUP
//!   set_visible   page flag and map page ────────────────────▶ Heap2/VISIBLE
//! ```
//! | File | Question |
//! |---|---|
//! | `writer` | how are rows inserted, updated and deleted? |
//! | `multi_insert` | how are many rows inserted at once? |
//! | `row_lock` | how is a row locked? |
//! | `lock_mode` | which row locks are there, and which conflict? |
//! | `row_holders` | which transactions have locked or changed a row, and have not ended? |
//! | `prune` | what does one prune change, and how is it logged? |
//! | `prune_plan` | which line pointers are redirected, dead or unused? |
//! | `freeze_plan` | which tuples are frozen, and how? |
//! | `visible` | when is a page all-visible, and how is that logged? |
//! | `tuple_states` | is a tuple dead for every snapshot? |
//! | `page_space` | which line pointer does a new row get? |
//! | `session` | how are pages and their map pages pinned and locked? |
//!
//! Each writer extends the table by a page of its own, so that writers of one table don't wait for each other. There is
//! no free space map yet: free space on any page but a writer's own is used only by updates of tuples on that page.
//!
//! **Visibility map.** Whatever changes a row of a page that is marked all-visible also clears the page's bits in the map:
//! index-only scans rely on them. The map page is pinned before the page of the table is locked, and locked
//! after it.
//!
//! **Not here:** waiting for row locks, and snapshots. The caller ensures that no other session changes the row, and says
//! which is the oldest XID that a snapshot may still need (`OldestXmin`). Multixacts have only lockers as members.
//!
//! [`page_change`]: crate::page_change

mod error;
mod freeze_plan;
mod lock_mode;
mod multi_insert;
mod page_space;
mod prune;
mod prune_plan;
mod row_holders;
mod row_lock;
mod session;
mod tuple_states;
mod visible;
mod writer;

pub use error::{HeapWriteError, StatusError};
pub use lock_mode::RowLockMode;
pub use prune::{PruneOptions, PruneReason, Pruned};
pub use session::{HeapSession, Multixacts, TransactionStatuses};
pub use writer::{HeapWriter, WrittenRow};
