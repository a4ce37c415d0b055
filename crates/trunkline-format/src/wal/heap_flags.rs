//! **Flags in heap records**: what the main data of Heap and Heap2 records says beside numbers.
//!
//! Mirrors PostgreSQL's `access/heapam_xlog.h`.

/// In insert, multi-insert, delete and update (`XLH_…_ALL_VISIBLE_CLEARED`): the page was all-visible before, and both of
/// its bits in the visibility map are cleared. In an update, this is the page of the old version.
pub const VISIBLE_CLEARED: u8 = 0x01;
/// `XLH_UPDATE_NEW_ALL_VISIBLE_CLEARED`: the same for the page of the new version.
pub const NEW_VISIBLE_CLEARED: u8 = 0x02;
/// `XLH_LOCK_ALL_FROZEN_CLEARED`: the page was all-frozen before. It stays all-visible.
pub const ALL_FROZEN_CLEARED: u8 = 0x01;
/// `XLH_INSERT_LAST_IN_MULTI`: the last record of a multi-insert.
pub const LAST_IN_MULTI: u8 = 0x02;
/// `XLH_INSERT_ALL_FROZEN_SET`: all rows of the page are frozen from the start.
pub const INSERT_ALL_FROZEN_SET: u8 = 0x20;

/// What xmax of a row means (`XLHL_…`).
pub mod info_bits {
    /// It is a multixact.
    pub const IS_MULTI: u8 = 0x01;
    /// It has only locked the row.
    pub const LOCK_ONLY: u8 = 0x02;
    /// An exclusive lock; with [`KEY_SHARE`], a share lock.
    pub const EXCLUSIVE: u8 = 0x04;
    /// A lock of the key.
    pub const KEY_SHARE: u8 = 0x08;
    /// The row was deleted, its key changed, or it is locked as for that.
    pub const KEYS_UPDATED: u8 = 0x10;
}

/// Flags of prune records since 17 (`XLHP_…`).
pub mod prune_flags {
    /// Items are moved, so that redo needs a cleanup lock.
    pub const CLEANUP_LOCK: u16 = 0x04;
    /// The newest XID that has gone from the page follows.
    pub const HAS_CONFLICT_HORIZON: u16 = 0x08;
    /// Rows are frozen.
    pub const HAS_PLANS: u16 = 0x10;
    /// Line pointers are redirected.
    pub const HAS_REDIRECTED: u16 = 0x20;
    /// Line pointers become dead.
    pub const HAS_DEAD: u16 = 0x40;
    /// Line pointers become unused.
    pub const HAS_UNUSED: u16 = 0x80;
}
