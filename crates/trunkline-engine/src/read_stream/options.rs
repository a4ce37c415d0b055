//! Stream options: concurrency, combine limit, order, access strategy.

use crate::pool::Strategy;
use crate::settings::Settings;
use trunkline_aio::Class;

/// Options of a read stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// Number of reads to keep at the storage (`effective_io_concurrency`), from 0 to 1000. To
    /// achieve that, the stream has up to an eighth more in flight, because some of them have
    /// already completed when it starts the next ones. If this is 0, each page is read in the
    /// consumer's thread, and only when the consumer asks for it.
    pub concurrency: u32,
    /// Maximum number of blocks in one read (`io_combine_limit`), 1 to 128.
    pub combine: u32,
    /// Return pages in any order, as they become ready.
    pub unordered: bool,
    /// All blocks will be read, so skip the slow start.
    pub full: bool,
    /// The blocks are mostly consecutive. With `io_method = sync`, we then rely on the kernel's own
    /// read-ahead instead of calling `posix_fadvise`.
    pub sequential: bool,
    /// Access strategy: bulk work uses a ring.
    pub strategy: Strategy,
    /// Class of the look-ahead reads.
    pub class: Class,
}

impl StreamOptions {
    /// Options from the settings: pages in order, with slow start.
    pub fn of(settings: &Settings) -> Self {
        Self {
            concurrency: settings.effective_io_concurrency(),
            combine: settings.io_combine_limit(),
            ..Self::default()
        }
    }

    /// Options for maintenance work: `maintenance_io_concurrency`, and no slow start.
    pub fn maintenance(settings: &Settings) -> Self {
        Self {
            concurrency: settings.maintenance_io_concurrency(),
            full: true,
            class: Class::Maintenance,
            ..Self::of(settings)
        }
    }
}

impl Default for StreamOptions {
    /// PostgreSQL's defaults: 16 reads of up to 16 blocks.
    fn default() -> Self {
        Self {
            concurrency: 16,
            combine: 16,
            unordered: false,
            full: false,
            sequential: false,
            strategy: Strategy::Normal,
            class: Class::LookAhead,
        }
    }
}
