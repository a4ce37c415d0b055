//! **Accuracy**: how exactly this machine keeps the latency of a mount.
//!
//! Threads read a [probe file](crate::probe) with direct I/O and time each read. What a read takes
//! beyond the latency is our error: two trips through FUSE, the wake-up of the timer thread, and the
//! wait for a CPU. A process other than the one that serves the mount has to do this, see
//! [`SlowDisk`](crate::SlowDisk).

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use trunkline_aio::clock;
use trunkline_aio::facade::{Arc, Futex, Mutex, thread};

use crate::probe;

/// Reads in flight.
const DEPTHS: [u32; 3] = [1, 16, 64];

/// Size of a read: a page of PostgreSQL.
const READ_SIZE: usize = 8192;

/// How long each depth is measured, if the latency permits more than one read in that time.
const DURATION: Duration = Duration::from_millis(250);

/// Largest number of reads of each thread.
const READS_MAX: u32 = 100;

/// The result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accuracy {
    /// Reads in flight.
    pub in_flight: u32,
    /// Reads measured.
    pub reads: u32,
    /// Half of the reads took at most this time.
    pub median: Duration,
    /// 99 of 100 reads took at most this time.
    pub p99: Duration,
}

impl Accuracy {
    /// The error of the median, as a fraction of `latency`. `None` if there is no latency.
    pub fn error(&self, latency: Duration) -> Option<f64> {
        let error = self.median.as_secs_f64() - latency.as_secs_f64();
        (!latency.is_zero()).then(|| error / latency.as_secs_f64())
    }
}

/// Measures how exactly this machine keeps the `latency` of the mount at `mount_point`, with 1, 16
/// and 64 reads in flight. Uses up no credit. [`SlowDisk::show_probe`](crate::SlowDisk::show_probe)
/// adds the file that it reads.
///
/// # Errors
/// A read failed, or a thread could not be started.
pub fn measure(mount_point: &Path, latency: Duration) -> io::Result<Vec<Accuracy>> {
    DEPTHS.iter().map(|&in_flight| at_depth(mount_point, latency, in_flight)).collect()
}

fn at_depth(mount_point: &Path, latency: Duration, in_flight: u32) -> io::Result<Accuracy> {
    let count = DURATION.as_nanos() / latency.as_nanos().max(1);
    let count = u32::try_from(count).unwrap_or(READS_MAX).clamp(1, READS_MAX);
    let times = Arc::new(Mutex::new(Vec::new()));
    let failed = Arc::new(Mutex::new(None));
    // The threads begin together. Otherwise the first ones would run without the others.
    let start = Arc::new(Futex::new(0));
    let path = mount_point.join(probe::NAME);
    let mut threads = Vec::new();
    let mut spawned = Ok(());
    for number in 0..in_flight {
        let (times, failed) = (Arc::clone(&times), Arc::clone(&failed));
        let (start, path) = (Arc::clone(&start), path.clone());
        let body = move || {
            while start.epoch() == 0 {
                start.wait(0, None);
            }
            match reads(&path, number, count) {
                Ok(measured) => times.lock().extend(measured),
                Err(error) => *failed.lock() = Some(error),
            }
        };
        match thread::spawn("measurement", body) {
            Ok(thread) => threads.push(thread),
            Err(error) => spawned = Err(error),
        }
    }
    start.signal();
    for thread in threads {
        thread.join().map_err(io::Error::other)?;
    }
    spawned?;
    if let Some(error) = failed.lock().take() {
        return Err(error);
    }
    let mut times: Vec<Duration> = std::mem::take(&mut *times.lock());
    times.sort_unstable();
    Ok(Accuracy {
        in_flight,
        reads: in_flight * count,
        median: quantile(&times, 50),
        p99: quantile(&times, 99),
    })
}

/// Reads `count` times and returns what each read took.
fn reads(path: &Path, number: u32, count: u32) -> io::Result<Vec<Duration>> {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut buffer = vec![0; READ_SIZE];
    let first = u64::from(number) * u64::from(count);
    let mut times = Vec::new();
    for read in 0..u64::from(count) {
        let begin = clock::now();
        let got = rustix::io::pread(&file, &mut buffer, (first + read) * READ_SIZE as u64)?;
        times.push(clock::now().since(begin));
        if got != READ_SIZE {
            return Err(io::Error::other(format!("read {got} bytes, expected {READ_SIZE}")));
        }
    }
    Ok(times)
}

/// The smallest of the sorted `times` that is at least as large as `percent` of them.
fn quantile(times: &[Duration], percent: usize) -> Duration {
    let rank = (times.len() * percent).div_ceil(100);
    times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_times() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(quantile(&times, 50), Duration::from_millis(100));
        assert_eq!(quantile(&times, 99), Duration::from_millis(198));
        assert_eq!(quantile(&times[..1], 99), Duration::from_millis(1));
        assert_eq!(quantile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn errors_are_relative_to_the_latency() {
        let accuracy = Accuracy {
            in_flight: 1,
            reads: 1,
            median: Duration::from_micros(5_500),
            p99: Duration::from_micros(6_000),
        };
        let error = accuracy.error(Duration::from_millis(5)).expect("an error");
        assert!((error - 0.1).abs() < 1e-9, "{error}");
        assert_eq!(accuracy.error(Duration::ZERO), None);
    }
}
