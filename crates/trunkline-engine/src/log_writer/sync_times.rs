//! Measures which `wal_sync_method` is faster, for `auto`.
//!
//! ```text
//!   xlogtemp.trunkline-sync   │ 8 kB │ 8 kB │ 8 kB │ …      zeros, as in a new segment
//!                               write, fdatasync             in turn, for half a second
//!                                      write with RWF_DSYNC
//! ```
//! The median counts, since a few syncs of any device take far longer than the others. A difference of less than 5 % is no
//! reason for `open_datasync`: with it, a flush beside another writes a filler.

use std::fmt;
use std::io;
use std::time::Duration;

use trunkline_aio::{File, clock};
use trunkline_format::wal::LOG_PAGE_SIZE;

use super::lane::Lane;
use super::sync_method::WalSyncMethod;

/// How long the measurement takes.
const TIME: Duration = Duration::from_millis(500);

/// The most writes with each method, if they are very fast.
const ROUNDS: usize = 2000;

/// The fewest writes with each method, even if they are slow.
const ROUNDS_MIN: usize = 3;

/// How long flushes of one page took, alone, with each method: the median.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncTimes {
    /// A write and fdatasync(2).
    pub fdatasync: Duration,
    /// A durable write.
    pub open_datasync: Duration,
}

impl SyncTimes {
    /// Measures with a file of this length in bytes, which consists of zeros and is synced.
    pub(super) fn measure(file: &File, length: u64, lane: &mut Lane) -> io::Result<Self> {
        let page = LOG_PAGE_SIZE as u64;
        let begun = clock::now();
        let (mut fdatasync, mut open_datasync) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            if round >= ROUNDS_MIN && clock::now().since(begun) >= TIME {
                break;
            }
            for (number, is_durable, times) in
                [(0, false, &mut fdatasync), (1, true, &mut open_datasync)]
            {
                let offset = (2 * round as u64 + number) * page % length;
                let before = clock::now();
                lane.write(file, (offset, page), is_durable, |_, piece| piece.fill(1))?;
                if !is_durable {
                    lane.sync(file, false)?;
                }
                times.push(clock::now().since(before));
            }
        }
        Ok(Self { fdatasync: median(fdatasync), open_datasync: median(open_datasync) })
    }

    /// The method to use.
    pub fn best(self) -> WalSyncMethod {
        match self.open_datasync * 20 < self.fdatasync * 19 {
            true => WalSyncMethod::OpenDatasync,
            false => WalSyncMethod::Fdatasync,
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

impl fmt::Display for SyncTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fdatasync, open_datasync } = self;
        write!(f, "fdatasync {fdatasync:.2?}, open_datasync {open_datasync:.2?}: {}", self.best())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_difference_is_no_reason_for_open_datasync() {
        let best = |fdatasync, open_datasync| {
            let [fdatasync, open_datasync] = [fdatasync, open_datasync].map(Duration::from_micros);
            SyncTimes { fdatasync, open_datasync }.best()
        };
        assert_eq!(best(100, 95), WalSyncMethod::Fdatasync);
        assert_eq!(best(100, 94), WalSyncMethod::OpenDatasync);
        assert_eq!(best(50, 94), WalSyncMethod::Fdatasync);
        let times = [9, 1, 8, 2, 7].map(Duration::from_micros);
        assert_eq!(median(times.to_vec()), Duration::from_micros(7));
    }
}
