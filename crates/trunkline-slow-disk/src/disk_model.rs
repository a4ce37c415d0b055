//! **Disk model**: computes when a request completes. Pure: the clock is an argument.
//!
//! ```text
//!   arrival ──▶ wait for bandwidth and IOPS ──▶ latency ──▶ completion
//! ```
//! The latency is a fixed service time, and requests in flight overlap: 64 of them take as long as
//! one. The limits are those of a cloud volume, which paces the start of requests and doesn't make
//! a large request slower by itself. Requests are admitted in the order in which their I/O
//! in the directory below ended, and none overtakes another that waits for the same limit.
//!
//! Each limit consists of up to two buckets. One has the baseline rate and the burst credit, the
//! other one the burst rate. A request must satisfy all of them.

use std::time::Duration;

use trunkline_aio::clock::Time;

use crate::bucket::Bucket;
use crate::profile::{Limit, Profile};

/// The state of a simulated disk. Programs that search for the limits of a disk are tested with it,
/// with a clock of their own.
///
/// ```
/// use trunkline_aio::clock::Time;
/// use trunkline_slow_disk::DiskModel;
///
/// let mut disk = DiskModel::new(&"latency=2ms,iops=1000".parse()?);
/// let start = Time::from_nanos(0);
/// let [first, second] = [(); 2].map(|()| disk.admit(start, 8192).nanos() / 1_000_000);
/// assert_eq!((first, second), (2, 3));
/// # Ok::<(), trunkline_slow_disk::ProfileError>(())
/// ```
#[derive(Debug)]
pub struct DiskModel {
    latency: Duration,
    /// A larger request counts as several I/Os.
    io_size: u64,
    bytes: Vec<Bucket>,
    ios: Vec<Bucket>,
}

impl DiskModel {
    /// A disk that has been idle, so that it has all of its burst credit.
    pub fn new(profile: &Profile) -> DiskModel {
        DiskModel {
            latency: profile.latency(),
            io_size: profile.io_size().unwrap_or(u64::MAX),
            bytes: buckets(profile.bandwidth()),
            ios: buckets(profile.iops()),
        }
    }

    /// Admits a request of `bytes` bytes that arrives `now`, and returns when it completes. A
    /// request without data, such as a flush, counts as one I/O.
    pub fn admit(&mut self, now: Time, bytes: u64) -> Time {
        let ios = bytes.div_ceil(self.io_size).max(1);
        let all = self.bytes.iter().chain(&self.ios);
        let start = all.fold(now.nanos(), |start, bucket| bucket.earliest(start));
        self.bytes.iter_mut().for_each(|bucket| bucket.charge(start, bytes));
        self.ios.iter_mut().for_each(|bucket| bucket.charge(start, ios));
        Time::from_nanos(start).after(self.latency)
    }
}

fn buckets(limit: Option<Limit>) -> Vec<Bucket> {
    let Some(limit) = limit else { return Vec::new() };
    let base = Bucket::new(limit.rate, limit.credit);
    let burst = limit.burst.map(|rate| Bucket::new(rate, 0));
    std::iter::once(base).chain(burst).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks when requests complete that arrive at these times, in milliseconds, with these sizes.
    fn check(profile: &str, requests: &[(u64, u64)], expected_us: &[u64]) {
        let profile: Profile = profile.parse().expect("a profile");
        let mut disk = DiskModel::new(&profile);
        let complete = |&(ms, bytes): &(u64, u64)| {
            disk.admit(Time::from_nanos(ms * 1_000_000), bytes).nanos() / 1_000
        };
        let found: Vec<u64> = requests.iter().map(complete).collect();
        assert_eq!(found, expected_us, "{profile}");
    }

    #[test]
    fn latency_overlaps() {
        check("latency=5ms", &[(0, 8192); 64], &[5_000; 64]);
        check("latency=5ms", &[(0, 8192), (1, 1 << 20), (7, 0)], &[5_000, 6_000, 12_000]);
    }

    #[test]
    fn bandwidth_and_iops_pace_the_start() {
        check("latency=2ms,iops=1000", &[(0, 8192); 4], &[2_000, 3_000, 4_000, 5_000]);
        check("latency=2ms,rate=8192kB/s", &[(0, 8192); 3], &[2_000, 3_000, 4_000]);
        // The stricter limit applies: small requests are limited by IOPS, large ones by bandwidth.
        let both = "latency=1ms,iops=1000,rate=100MB/s";
        check(both, &[(0, 8192), (0, 1_000_000), (0, 1_000_000)], &[1_000, 2_000, 12_000]);
    }

    #[test]
    fn large_requests_count_as_several() {
        check("iops=1000,io_size=256KiB", &[(0, 1 << 20), (0, 4096), (0, 1)], &[0, 4_000, 5_000]);
        check("iops=1000", &[(0, 1 << 20), (0, 4096), (0, 1)], &[0, 1_000, 2_000]);
    }

    #[test]
    fn a_flush_counts_as_one_io() {
        check("latency=3ms,iops=100", &[(0, 0), (0, 0), (0, 8192)], &[3_000, 13_000, 23_000]);
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_credit() {
        // 10 ms at the burst rate cost 9 credits a millisecond less what is refilled.
        let profile: Profile = "iops=100,burst_iops=1000,credit=9io".parse().expect("a profile");
        let mut disk = DiskModel::new(&profile);
        let done: Vec<u64> =
            (0..14).map(|_| disk.admit(Time::from_nanos(0), 8192).nanos() / 1_000_000).collect();
        let burst = (0..=9).chain([10, 20, 30, 40]);
        assert_eq!(done, burst.collect::<Vec<u64>>());
    }

    /// Amazon documents a burst of 2,000 seconds for a gp2 volume of 100 GiB.
    #[test]
    fn a_gp2_volume_bursts_for_2000_seconds() {
        let gp2 = "iops=300,burst_iops=3000,credit=5400000io,io_size=1KiB";
        let mut disk = DiskModel::new(&gp2.parse().expect("a profile"));
        // Each request counts as 100 I/Os.
        let mut millis = || disk.admit(Time::from_nanos(0), 100 << 10).nanos() / 1_000_000;
        let burst: Vec<u64> = (0..=60_000).map(|_| millis()).collect();
        assert_eq!(burst.last(), Some(&2_000_000));
        assert_eq!([millis(), millis(), millis()], [2_000_333, 2_000_666, 2_001_000]);
    }

    #[test]
    fn credit_refills_while_the_disk_is_idle() {
        let mut requests = vec![(0, 8192); 4];
        requests.extend([(1_000, 8192); 5]);
        let expected = [0, 0, 0, 0, 1_000, 1_000, 1_000, 1_000, 1_010].map(|ms| ms * 1_000);
        check("iops=100,credit=3io", &requests, &expected);
    }

    #[test]
    fn bandwidth_credit_is_in_bytes() {
        let megabyte = 1_000_000;
        let profile = "rate=100MB/s,burst_rate=1GB/s,credit=2MB";
        check(profile, &[(0, megabyte); 5], &[0, 1_000, 2_000, 10_000, 20_000]);
    }
}
