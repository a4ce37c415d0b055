//! How a stream reads: how much is in flight, how large, in which order, on whose behalf.
//!
//! From the settings, or PostgreSQL's defaults.

use crate::pool::Strategy;
use crate::settings::Settings;
use trunkline_aio::Class;

/// How a stream reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// Reads in flight at most (`effective_io_concurrency`), 0 to 1000; 0 reads when a page is
    /// wanted, in the consumer's thread.
    pub concurrency: u32,
    /// Blocks of one read at most (`io_combine_limit`), 1 to 128.
    pub combine: u32,
    /// Hand out whichever page is ready, where the order cannot show.
    pub unordered: bool,
    /// Everything will be read: no slow start.
    pub full: bool,
    /// Blocks mostly follow each other: leave it to the system, under `sync`, to see that.
    pub sequential: bool,
    /// Bulk work goes round in a few buffers.
    pub strategy: Strategy,
    /// What reads ahead are counted as.
    pub class: Class,
}

impl StreamOptions {
    /// As the settings say, in order, with a slow start.
    pub fn of(settings: &Settings) -> Self {
        Self {
            concurrency: settings.effective_io_concurrency(),
            combine: settings.io_combine_limit(),
            ..Self::default()
        }
    }

    /// For maintenance work: its own concurrency, and no slow start.
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
