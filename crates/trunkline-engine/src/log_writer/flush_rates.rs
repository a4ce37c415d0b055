//! Measures how many flushes in flight pay, for [`FlushLimit::Auto`](super::FlushLimit::Auto).
//!
//! ```text
//!   flushes in flight       1       2       4       8      a thread and a lane each, as of that many sessions
//!   flushes a second      200     390     730     740      0.1 s each, on one file of pg_wal
//!                              1.95    1.87    1.01        1.5 at least: 4 pay, 8 don't
//! ```
//! The rule is careful, since one flush at a time wastes nothing but time: commits that arrive during a flush share the next
//! one. Of two, each has half of those commits, and its own write, sync and wake-ups. What the storage gains must be
//! worth that.
//!
//! - Twice as many flushes must give one and a half times the rate. Where the file system syncs a file for one caller after
//!   the other, as FUSE does, the rate stays the same, and commits become fewer.
//! - A flush must take half a millisecond. On a disk that needs a tenth of one, four flushes had up to twice the bare rate
//!   of one, but fewer commits with 16 clients and more: there, the CPU time of a flush counts.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::{Mutex, thread};
use trunkline_aio::{File, clock};
use trunkline_format::wal::LOG_PAGE_SIZE;

use super::lane::Lane;
use super::sync_method::FlushMethod;

/// The numbers of flushes in flight that are tried.
const DEPTHS: [usize; 4] = [1, 2, 4, 8];

/// How long each of them is measured. A flush that has begun is waited for.
const TIME: Duration = Duration::from_millis(100);

/// Up to this many flushes a second, one at a time, more of them in flight may pay.
const SLOW: u64 = 2000;

/// How many flushes of one page the storage makes durable in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlushRates {
    /// With 1, 2, 4 and 8 in flight. 0: not measured, because a smaller number did not pay already, or a single flush is too fast.
    pub rates: [u64; DEPTHS.len()],
}

impl FlushRates {
    /// Measures with a file of `length` bytes, which consists of zeros and is synced. Each lane has opened it itself.
    ///
    /// # Errors
    /// A write or a sync failed, or the kernel can't create another thread.
    pub(super) fn measure(
        lanes: &mut Vec<Lane>,
        files: &[File],
        length: u64,
        method: FlushMethod,
    ) -> io::Result<Self> {
        let mut measured = Self::default();
        for (at, depth) in DEPTHS.into_iter().enumerate() {
            measured.rates[at] = Load::new(length, method).run(depth, lanes, files)?;
            if measured.is_fast() || measured.best() < depth {
                break;
            }
        }
        Ok(measured)
    }

    /// The number of flushes in flight to use.
    pub fn best(self) -> usize {
        let pairs = self.rates.windows(2).zip(&DEPTHS[1..]);
        let paying = pairs.take_while(|(pair, _)| !self.is_fast() && pair[1] * 2 >= pair[0] * 3);
        paying.last().map_or(1, |(_, depth)| *depth)
    }

    /// Whether a flush takes so little time that the CPU's part counts.
    fn is_fast(self) -> bool {
        self.rates[0] > SLOW
    }
}

impl fmt::Display for FlushRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flushes a second with")?;
        let measured = DEPTHS.iter().zip(self.rates).filter(|(_, rate)| *rate > 0);
        for (at, (depth, rate)) in measured.enumerate() {
            write!(f, "{} {depth} in flight {rate}", if at == 0 { "" } else { "," })?;
        }
        write!(f, ": {}", self.best())
    }
}

/// Threads that flush pages of one file, as sessions do.
struct Load {
    length: u64,
    method: FlushMethod,
    until: clock::Time,
    /// The number of flushes that have begun: the next page.
    begun: AtomicU64,
    ended: AtomicU64,
    /// Held while a page is written, if writes don't overlap.
    order: Mutex<()>,
    /// The lanes of threads that have ended.
    lanes: Mutex<Vec<Lane>>,
    failure: Mutex<Option<io::Error>>,
}

impl Load {
    fn new(length: u64, method: FlushMethod) -> Self {
        Self {
            length,
            method,
            until: clock::now().after(TIME),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            order: Mutex::new(()),
            lanes: Mutex::new(Vec::new()),
            failure: Mutex::new(None),
        }
    }

    /// Flushes with `depth` threads. Returns flushes a second, at least 1.
    fn run(self, depth: usize, lanes: &mut Vec<Lane>, files: &[File]) -> io::Result<u64> {
        let (load, begun) = (Arc::new(self), clock::now());
        let mut threads = Vec::new();
        let taken = lanes.drain(..depth.min(lanes.len()));
        for (mut lane, file) in taken.zip(files.iter().cloned()) {
            let mine = Arc::clone(&load);
            let body = move || {
                if let Err(error) = mine.flush_until_time_is_over(&mut lane, &file) {
                    mine.failure.lock().get_or_insert(error);
                }
                mine.lanes.lock().push(lane);
            };
            match thread::spawn("log measurement", body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    load.failure.lock().get_or_insert(error);
                }
            }
        }
        let mut panicked = None;
        for thread in threads {
            panicked = thread.join().err().or(panicked);
        }
        let time = clock::now().since(begun);
        lanes.append(&mut load.lanes.lock());
        if let Some(error) = load.failure.lock().take() {
            return Err(error);
        }
        match panicked {
            Some(panicked) => Err(io::Error::other(panicked)),
            None => Ok(rate(load.ended.load(Ordering::SeqCst), time)),
        }
    }

    fn flush_until_time_is_over(&self, lane: &mut Lane, file: &File) -> io::Result<()> {
        loop {
            self.flush(lane, file)?;
            self.ended.fetch_add(1, Ordering::SeqCst);
            if clock::now() >= self.until {
                return Ok(());
            }
        }
    }

    /// Makes the next page durable, as [`run_flush`](super::LogWriter) does.
    fn flush(&self, lane: &mut Lane, file: &File) -> io::Result<()> {
        let page = LOG_PAGE_SIZE as u64;
        let offset = self.begun.fetch_add(1, Ordering::SeqCst) * page % self.length;
        let is_durable = self.method.writes_durably();
        let in_order = (!self.method.writes_overlap()).then(|| self.order.lock());
        lane.write(file, (offset, page), is_durable, |_, piece| piece.fill(1))?;
        drop(in_order);
        if is_durable { Ok(()) } else { lane.sync(file, false) }
    }
}

/// Flushes a second, at least 1.
fn rate(flushes: u64, time: Duration) -> u64 {
    ((flushes as f64 / time.as_secs_f64()) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(rates: [u64; 4]) -> usize {
        FlushRates { rates }.best()
    }

    /// Bare loops of decision 0046, on one file. With 8, the mean of 4 and 16 counts.
    #[test]
    fn the_storage_of_decision_0046_takes_one_flush_at_a_time() {
        let fuse = [177, 173, 172, 173];
        let disks = [
            [7217, 10_111, 12_039, 17_000],
            [5966, 9222, 15_599, 24_000],
            [12_933, 22_635, 23_616, 31_000],
        ];
        assert_eq!(best(fuse), 1, "FUSE syncs a file for one caller after the other");
        assert_eq!(disks.map(best), [1; 3], "more flushes had fewer commits");
    }

    #[test]
    fn each_doubling_must_pay() {
        // A file for each thread on the same FUSE: what slow storage looks like that syncs in parallel.
        assert_eq!(best([186, 371, 717, 1400]), 8);
        assert_eq!(best([186, 371, 717, 1075]), 4);
        assert_eq!(best([186, 371, 556, 2000]), 2);
        assert_eq!(best([186, 278, 556, 2000]), 1);
        assert_eq!(best([186, 279, 0, 0]), 2, "not measured");
        assert_eq!(best([1, 1, 1, 1]), 1);
    }

    #[test]
    fn a_flush_must_take_half_a_millisecond() {
        assert_eq!(best([2000, 4000, 8000, 16_000]), 8);
        assert_eq!(best([2001, 4002, 8004, 16_008]), 1);
    }

    #[test]
    fn what_was_not_measured_is_not_shown() {
        let shown = FlushRates { rates: [186, 190, 0, 0] }.to_string();
        assert_eq!(shown, "flushes a second with 1 in flight 186, 2 in flight 190: 1");
        assert_eq!(rate(21, Duration::from_millis(105)), 200);
        assert_eq!(rate(1, Duration::from_secs(3)), 1);
    }
}
