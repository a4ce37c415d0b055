//! How a flush makes WAL durable: `wal_sync_method`, through the page cache or past it.
//!
//! ```text
//!                    fdatasync                           open_datasync
//!   page cache       write, fdatasync                    one write with RWF_DSYNC
//!   direct I/O       write of whole blocks, fdatasync    one write of whole blocks with RWF_DSYNC
//! ```
//! With `auto`, the faster of the two is used ([`super::sync_times`]).
//!
//! Through the page cache with fdatasync, writes take microseconds and only syncs take long. In all other cases, a write
//! takes long too, so writes should overlap. Then no two of them may write the same block ([`super::filler`]).

use std::fmt;
use std::str::FromStr;

use trunkline_format::Lsn;
use trunkline_format::wal::LOG_PAGE_SIZE;

/// The block size in bytes for writes through the page cache that overlap: the size of its pages.
const CACHE_PAGE: u64 = 4096;

/// The smallest sector of a device, in bytes. Some file systems report a smaller alignment for direct I/O.
const SECTOR: u64 = 512;

/// `wal_sync_method`: how a flush makes WAL durable. PostgreSQL's other methods are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WalSyncMethod {
    /// A write, and then fdatasync(2).
    #[default]
    Fdatasync,
    /// A write that is durable when it ends. PostgreSQL opens the file with `O_DSYNC`; we set `RWF_DSYNC` for each write.
    OpenDatasync,
    /// The faster of the two, which is measured when the log is opened ([`SyncTimes`](super::SyncTimes)). PostgreSQL
    /// doesn't have this.
    Auto,
}

impl WalSyncMethod {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fdatasync, Self::OpenDatasync, Self::Auto];

    /// The value of `wal_sync_method`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fdatasync => "fdatasync",
            Self::OpenDatasync => "open_datasync",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for WalSyncMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value of `wal_sync_method` that is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("wal_sync_method \"{value}\" is not supported; available values: {}", names())]
pub struct UnknownSyncMethod {
    value: String,
}

fn names() -> String {
    WalSyncMethod::ALL.map(WalSyncMethod::name).join(", ")
}

impl FromStr for WalSyncMethod {
    type Err = UnknownSyncMethod;

    /// Parses a value of `wal_sync_method`, ignoring ASCII case.
    fn from_str(value: &str) -> Result<Self, UnknownSyncMethod> {
        let found = Self::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(value));
        found.ok_or_else(|| UnknownSyncMethod { value: value.to_owned() })
    }
}

/// How flushes write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlushMethod {
    writes_durably: bool,
    is_direct: bool,
    /// The size of a block in bytes, a power of 2, at most a WAL page.
    block: u64,
}

impl FlushMethod {
    /// Through the page cache.
    pub(super) fn buffered(writes_durably: bool) -> Self {
        let block = if writes_durably { CACHE_PAGE } else { LOG_PAGE_SIZE as u64 };
        Self { writes_durably, is_direct: false, block }
    }

    /// With direct I/O and `fdatasync`, for files with this alignment in bytes. `None` if WAL pages don't have it.
    pub(super) fn direct(alignment: u32) -> Option<Self> {
        let block = u64::from(alignment).max(SECTOR);
        let fits = block.is_power_of_two() && block <= LOG_PAGE_SIZE as u64;
        fits.then_some(Self { writes_durably: false, is_direct: true, block })
    }

    /// The same, with durable writes or without them. Only for direct I/O, since the block of buffered writes depends on that.
    pub(super) fn with_durable_writes(self, writes_durably: bool) -> Self {
        Self { writes_durably, ..self }
    }

    /// Whether segments are written with direct I/O.
    pub(super) fn is_direct(self) -> bool {
        self.is_direct
    }

    /// Whether a write is durable when it ends, so that no sync follows.
    pub(super) fn writes_durably(self) -> bool {
        self.writes_durably
    }

    /// The method of which this is a part.
    pub(super) fn sync_method(self) -> WalSyncMethod {
        if self.writes_durably { WalSyncMethod::OpenDatasync } else { WalSyncMethod::Fdatasync }
    }

    /// Whether the write of a flush takes long, so that the next one should write while it does.
    pub(super) fn writes_overlap(self) -> bool {
        self.is_direct || self.writes_durably
    }

    /// The size of a block in bytes. A flush writes zeros up to its end.
    pub(super) fn block(self) -> u64 {
        self.block
    }

    /// The position at which a flush of WAL from `start` on begins to write. With direct I/O, a block in which an earlier
    /// flush has ended is written again from its start.
    pub(super) fn write_start(self, start: Lsn) -> Lsn {
        if self.is_direct { Lsn(start.0 - start.0 % self.block) } else { start }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_methods_are_refused_by_name() {
        assert_eq!("Open_DataSync".parse(), Ok(WalSyncMethod::OpenDatasync));
        for name in ["fsync", "open_sync", "fsync_writethrough", ""] {
            let error = name.parse::<WalSyncMethod>().expect_err("refused").to_string();
            let expected = format!(
                "wal_sync_method \"{name}\" is not supported; available values: fdatasync, open_datasync, \
                 auto"
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn blocks_are_as_large_as_the_device_wants() {
        let block = |alignment| FlushMethod::direct(alignment).map(FlushMethod::block);
        assert_eq!([1, 512, 4096, 8192].map(block), [Some(512), Some(512), Some(4096), Some(8192)]);
        assert_eq!([16_384, 3072].map(block), [None, None]);
    }
}
