//! Requests take at least the time of the profile.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Advice, OFlags};
use trunkline_aio::clock;
use trunkline_aio::facade::{Arc, Mutex, thread};

use crate::mounted::Mounted;

const BLOCK: usize = 8192;

/// Writes a file of `blocks` blocks below a disk that isn't slow yet.
fn with_file(blocks: usize) -> Option<Mounted> {
    let mut disk = Mounted::new("latency=10us")?;
    fs::write(disk.path().join("file"), vec![7; blocks * BLOCK]).expect("written");
    disk.unmount();
    Some(disk)
}

fn open(path: &Path, flags: OFlags) -> File {
    let flags = flags.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).expect("opened")
}

fn read_block(file: &File, number: usize) {
    let mut block = [0; BLOCK];
    file.read_exact_at(&mut block, (number * BLOCK) as u64).expect("read");
    assert_eq!(block, [7; BLOCK]);
}

/// The time that `body` takes.
fn time(body: impl FnOnce()) -> Duration {
    let begin = clock::now();
    body();
    clock::now().since(begin)
}

#[test]
fn every_kind_of_request_takes_the_latency() {
    let Some(mut disk) = with_file(64) else { return };
    let latency = Duration::from_millis(30);
    disk.mount("latency=30ms");
    let path = disk.path().join("file");
    let (direct, cached) = (open(&path, OFlags::DIRECT), open(&path, OFlags::empty()));
    // O_DSYNC alone. rustix's flag of that name includes O_SYNC.
    let durable = open(&path, OFlags::DIRECT | OFlags::from_bits_retain(0o10000));
    let block = [7; BLOCK];
    let flushes = || disk.statistics().flushes;
    let took: [(&str, Duration); 6] = [
        ("direct read", time(|| read_block(&direct, 1))),
        ("direct write", time(|| direct.write_all_at(&block, 0).expect("written"))),
        ("durable write", time(|| durable.write_all_at(&block, 0).expect("written"))),
        (
            "cold read",
            time(|| {
                rustix::fs::fadvise(&cached, 0, None, Advice::DontNeed).expect("dropped");
                read_block(&cached, 2);
            }),
        ),
        ("fsync of nothing", time(|| cached.sync_all().expect("synced"))),
        (
            "fsync of a directory",
            time(|| File::open(disk.path()).expect("opened").sync_all().expect("synced")),
        ),
    ];
    for (what, took) in took {
        assert!(took >= latency, "{what} took {took:?}");
    }
    // Before Linux 6.6, the durable write consists of a write and a flush.
    assert!(flushes() >= 3, "{}", flushes());
    // A buffered write is written back by the fsync, which then takes both.
    cached.write_all_at(&block, 0).expect("written");
    let synced = time(|| cached.sync_data().expect("synced"));
    assert!(synced >= 2 * latency, "{synced:?}");
}

#[test]
fn limits_hold_however_many_requests_are_in_flight() {
    // (profile, reads, least time): the first read starts at once, and the credit is free.
    for (profile, reads, least) in [
        ("iops=200", 41, 200),
        ("latency=10ms,rate=1638400B/s", 41, 210),
        ("iops=200,burst_iops=1000,credit=20io", 61, 200),
    ] {
        let Some(mut disk) = with_file(reads) else { return };
        disk.mount(profile);
        let path = disk.path().join("file");
        let next = Arc::new(Mutex::new(0..reads));
        let took = time(|| {
            let threads: Vec<_> = (0..16)
                .map(|_| {
                    let (next, path) = (Arc::clone(&next), path.clone());
                    let body = move || {
                        let file = open(&path, OFlags::DIRECT);
                        loop {
                            let number = next.lock().next();
                            let Some(number) = number else { return };
                            read_block(&file, number);
                        }
                    };
                    thread::spawn("reader", body).expect("started")
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("read"));
        });
        assert!(took >= Duration::from_millis(least), "{profile}: {took:?}");
        assert_eq!(disk.unmount().reads, reads as u64, "{profile}");
    }
}

#[test]
fn a_measurement_uses_no_credit_and_is_not_faster_than_the_disk() {
    let Some(disk) = Mounted::new("latency=5ms,iops=1") else { return };
    for accuracy in disk.measure() {
        assert!(accuracy.median >= Duration::from_millis(5), "{accuracy:?}");
        assert!(accuracy.p99 >= accuracy.median, "{accuracy:?}");
    }
    let name = ".trunkline-slow-disk-probe";
    assert!(!disk.path().join(name).exists());
    assert_eq!(disk.statistics().reads, 0);
}
