//! How flushes work in this run: as the options say, or as measured when the log is opened.
//!
//! ```text
//!   wal_sync_method = auto    half a second            sync_times
//!   flushes: auto             0.1 s for each number    flush_rates, with the method that is used
//! ```

use trunkline_aio::Aio;

use super::error::LogWriterError;
use super::flush_limit::FlushLimit;
use super::flush_rates::FlushRates;
use super::lane::Lane;
use super::options::LogWriterOptions;
use super::segment_store::SegmentStore;
use super::sync_method::{FlushMethod, WalSyncMethod};
use super::sync_times::SyncTimes;

/// How flushes work, and what was measured for it.
pub(super) struct FlushChoice {
    pub(super) method: FlushMethod,
    /// One for each flush that may be in flight.
    pub(super) lanes: Vec<Lane>,
    pub(super) sync_times: Option<SyncTimes>,
    pub(super) flush_rates: Option<FlushRates>,
}

impl FlushChoice {
    /// Chooses, and measures if the options say so. The segment that the WAL ends in exists.
    ///
    /// # Errors
    /// [`LogWriterError::Resources`], [`LogWriterError::File`] or [`LogWriterError::Direct`].
    pub(super) fn make(
        aio: &Aio,
        segments: &SegmentStore,
        options: &LogWriterOptions,
        creator: &mut Lane,
    ) -> Result<Self, LogWriterError> {
        let lanes = (0..options.flushes.most()).map(|_| Lane::new(aio));
        let mut lanes = lanes.collect::<Result<Vec<_>, _>>()?;
        // Before anything is measured: the file system may not support direct I/O.
        let segment = options.segment_size.segment_of(options.end);
        let direct = options.direct.then(|| segments.direct_method(segment)).transpose()?;
        let method_of = |times: Option<SyncTimes>| {
            let sync_method = times.map_or(options.sync_method, SyncTimes::best);
            let writes_durably = sync_method == WalSyncMethod::OpenDatasync;
            match direct {
                Some(direct) => direct.with_durable_writes(writes_durably),
                None => FlushMethod::buffered(writes_durably),
            }
        };
        let measures_times = options.sync_method == WalSyncMethod::Auto;
        let measures_rates = options.flushes == FlushLimit::Auto;
        let (mut sync_times, mut flush_rates) = (None, None);
        if measures_times || measures_rates {
            segments.measure(options.direct, lanes.len(), creator, |files, length, creator| {
                if measures_times {
                    sync_times = Some(SyncTimes::measure(&files[0], length, creator)?);
                }
                if measures_rates {
                    let method = method_of(sync_times);
                    flush_rates = Some(FlushRates::measure(&mut lanes, files, length, method)?);
                }
                Ok(())
            })?;
        }
        lanes.truncate(flush_rates.map_or(options.flushes.most(), FlushRates::best));
        Ok(Self { method: method_of(sync_times), lanes, sync_times, flush_rates })
    }
}
