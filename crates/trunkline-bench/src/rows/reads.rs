//! **Rows that measure reads**, declared as data: what each row compares, which files it uses, and
//! the target for each line. Most of these rows are executed by `side_by_side.rs`. The rows that
//! read through the buffer pool are in `pool_reads.rs`.

use super::comparison::{Body, Comparison, Needs, Row, SetUp, Stage};
use super::options::{BLOCK, COMBINED, CONCURRENCY, each_way, methods, way};
use super::side_by_side::{List, PageCache, SideBySide, Subject};
use crate::bare::Placement;
use crate::data::Data;
use crate::failure::Result;
use crate::handles::Setup;
use crate::report::Target;
use std::fmt;
use trunkline_aio::MethodKind;

/// Bytes read sequentially in half of a pair.
pub(super) const SLICE: u64 = 1 << 30;
/// Maximum data size for rows that need all files in the page cache.
pub(super) const CACHED_BYTES_MAX: u64 = 64 << 20;
/// Data size on a slow device. The rate doesn't depend on it, so it is small.
pub(super) const SLOW_BYTES_MAX: u64 = 256 << 20;
/// Reads per unit of depth in half of a pair on a slow device.
pub(super) const SLOW_ROUNDS: usize = 50;
/// Maximum number of cached reads in half of a pair.
pub(super) const CACHED_READS_MAX: u64 = 60_000;
/// Maximum number of times a block is read in half of a pair.
const CACHED_REPEATS: u64 = 8;
/// Reads per futex round trip, chosen so that both halves of a pair take about as long.
const READS_PER_TRIP: u32 = 3;

/// Latency may be at most 1.15 times the baseline's.
pub(super) const LATENCY: Target = Target::rate(1.0 / 1.15);
const READ_AHEAD_NOTE: &str = "`sync` has the kernel read ahead (fadvise)";

pub(super) const SEQUENTIAL: Row = Row {
    name: "sequential",
    measures: "Cold sequential reads of 128 KiB",
    question: "How fast are cold sequential reads of 128 KiB through handles?",
    about: "The baseline is one thread with its own io_uring. The buffered lines show what the \
            page cache costs.",
    body: Body::Lines(&[|stage| {
        let data = stage.data()?;
        let line = |(direct, method)| {
            let against = Subject::Ring { direct, depth: CONCURRENCY, length: COMBINED };
            let subject = Subject::Handles(Setup::new(method, direct, CONCURRENCY, COMBINED));
            let target = if direct { ring_target(method, 0.95) } else { Target::NONE };
            SideBySide::cold(against, subject, slice(data)).line(
                format!("{}, depth {CONCURRENCY}", way(direct)),
                method,
                target,
            )
        };
        Ok(each_way().map(line).collect())
    }]),
    ..Row::COLD
};

pub(super) const RANDOM: Row = Row {
    name: "random",
    measures: "Cold random reads of 8 KiB at depth 1, 16 and 64",
    question: "How fast are cold random reads of 8 KiB through handles?",
    about: "The baseline is `pread` at depth 1, and one thread with its own io_uring at larger \
            depths.",
    body: Body::Lines(&[|stage| {
        let data = stage.data()?;
        let mut lines = Vec::new();
        for direct in [true, false] {
            let against = Subject::Threads { direct, threads: 1, length: BLOCK };
            let subject = Subject::Handles(Setup::new(MethodKind::IoUring, direct, 1, BLOCK));
            let reads = SideBySide::cold(against, subject, random(data, 3_000));
            lines.push(reads.line(format!("{}, depth 1", way(direct)), "needed now", LATENCY));
            for depth in [16, 64] {
                lines.extend(methods(direct).map(|method| {
                    let against = Subject::Ring { direct, depth, length: BLOCK };
                    let subject = Subject::Handles(Setup::new(method, direct, depth, BLOCK));
                    let list = random(data, if direct { 20_000 } else { 10_000 });
                    let setting = format!("{}, depth {depth}", way(direct));
                    let target = ring_target(method, 0.9);
                    SideBySide::cold(against, subject, list).line(setting, method, target)
                }));
            }
        }
        Ok(lines)
    }]),
    ..Row::COLD
};

pub(super) const LAG: Row = Row {
    name: "lag",
    measures: "Random reads on a slow device that serves many reads concurrently",
    question: "Do handles keep a slow device busy?",
    about: "Random reads of 8 KiB on a device that is slow but serves many reads concurrently. \
            The baseline has a thread for each read in flight, because a ring would need kernel \
            threads there as well. *At storage* shows whether enough reads were in flight.",
    needs: Needs::LagDir,
    set_up: SetUp::SlowDevice(SLOW_BYTES_MAX),
    body: Body::Lines(&[|stage| {
        let data = stage.data()?;
        let mut lines = Vec::new();
        for (direct, depth) in slow_depths() {
            lines.extend(methods(direct).map(|method| {
                let io = Setup::new(method, direct, depth, BLOCK);
                let subject = Subject::Handles(Setup { workers: depth, refill: 1, ..io });
                slow(data, direct, depth, method, slow_target(method, depth), subject)
            }));
            // For information only: what a bare ring achieves on this file system.
            let ring = Subject::Ring { direct, depth, length: BLOCK };
            lines.push(slow(data, direct, depth, "(bare ring)", Target::NONE, ring));
        }
        Ok(lines)
    }]),
    notes: slow_notes,
    ..Row::COLD
};

pub(super) const ROUND_TRIP: Row = Row {
    name: "round-trip",
    measures: "Cached reads of 8 KiB through workers, against the price of a hop",
    question: "How many cached reads through workers cost as much as one futex round trip?",
    about: "If the rate is more than the baseline's, several reads share a wake-up. \"Handed \
            over\" passes every read to a worker. \"Looked for first\" is the default: the \
            session tries the page cache before it passes a read on.",
    set_up: SetUp::Folder("cached", CACHED_BYTES_MAX),
    body: Body::Lines(&[|stage| {
        let reads = u64::from(stage.data()?.blocks()) * CACHED_REPEATS;
        let list = List::Random { count: CACHED_READS_MAX.min(reads) as usize, length: BLOCK };
        let mut lines = Vec::new();
        let mut add = |setting: &str, contender, target, subject| {
            lines.push(SideBySide::warm(TRIPS, subject, list).line(setting, contender, target));
        };
        for (depth, look_first, contender) in worker_ways() {
            let io = Setup::new(MethodKind::Worker, false, depth, BLOCK);
            let subject = Subject::Handles(Setup { look_first, ..io });
            add(&format!("cached, depth {depth}"), contender, TRIPS_TARGET, subject);
        }
        let pread = Subject::Threads { direct: false, threads: 1, length: BLOCK };
        add("cached", "(pread)", Target::NONE, pread);
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
            for (placement, contender) in
                [(Placement::OneCpu, "(futex, one CPU)"), (Placement::TwoCpus, "(futex, two CPUs)")]
            {
                let reads_per_trip = READS_PER_TRIP * 4;
                let trips = Subject::RoundTrips { placement, reads_per_trip };
                add("–", contender, Target::NONE, trips);
            }
        }
        Ok(lines)
    }]),
    notes: |stage| Ok(vec![stage.warmth()?]),
    ..Row::COLD
};

pub(super) const VERIFY: Row = Row {
    name: "verify",
    measures: "Verifying checksums, cold and cached",
    question: "How fast is checksum verification?",
    about: "The baseline has one thread for each CPU. Each of them reads 128 KiB at a time and \
            computes the checksum of every page. `verify` also checks page headers, line pointers \
            and tuple headers.",
    body: Body::Lines(&[|_| {
        let threads = std::thread::available_parallelism()?.get();
        let mut lines = Vec::new();
        for (name, cache, direct, least) in [
            ("cached", PageCache::Warm, false, 0.85),
            ("cold", PageCache::Cold, false, 0.95),
            ("cold", PageCache::Cold, true, 0.95),
        ] {
            lines.extend(methods(direct).map(|method| {
                let against = Subject::CheckedThreads { direct, threads, length: COMBINED };
                let setup = Setup::new(method, direct, CONCURRENCY, COMBINED);
                let list = List::Parts { sessions: 1, length: COMBINED };
                let target = match method {
                    MethodKind::Sync => Target::NONE,
                    _ => Target::rate(least),
                };
                SideBySide { against, subject: Subject::Verification(setup), list, cache }.line(
                    format!("{name}, {}", way(direct)),
                    method,
                    target,
                )
            }));
        }
        Ok(lines)
    }]),
    ..Row::COLD
};

/// The baseline of cached reads.
pub(super) const TRIPS: Subject =
    Subject::RoundTrips { placement: Placement::Free, reads_per_trip: READS_PER_TRIP };

/// The target of cached reads against futex round trips.
pub(super) const TRIPS_TARGET: Target = Target::rate(3.0);

/// Requires the given minimum ratio of the rates, and at most 1.3 times the CPU time. Only
/// `io_uring` can come that close to a bare ring.
pub(super) fn ring_target(method: MethodKind, rate: f64) -> Target {
    match method {
        MethodKind::IoUring => Target { cpu: Some(1.3), ..Target::rate(rate) },
        _ => Target::NONE,
    }
}

/// Variants of reads through workers. They differ in depth, and in whether the session first tries
/// the page cache or always passes the read to a worker.
pub(super) fn worker_ways() -> impl Iterator<Item = (usize, bool, &'static str)> {
    let ways =
        |depth| [(depth, false, "worker, handed over"), (depth, true, "worker, looked for first")];
    [16, 64].into_iter().flat_map(ways)
}

pub(super) fn slow_depths() -> impl Iterator<Item = (bool, usize)> {
    [true, false].into_iter().flat_map(|direct| [16, 64, 200].map(|depth| (direct, depth)))
}

/// At most 1.1 times the baseline's elapsed time, with nearly `depth` reads in flight.
pub(super) fn slow_target(method: MethodKind, depth: usize) -> Target {
    let in_flight = (method != MethodKind::Sync).then_some(0.9 * depth as f64);
    Target { in_flight, ..Target::rate(1.0 / 1.1) }
}

/// Builds one line of a row that uses a slow device. The baseline has one thread for each read in
/// flight, because a ring would need kernel threads there as well.
pub(super) fn slow(
    data: &Data,
    direct: bool,
    depth: usize,
    contender: impl fmt::Display,
    target: Target,
    subject: Subject,
) -> Comparison {
    let against = Subject::Threads { direct, threads: depth, length: BLOCK };
    let reads = SideBySide::cold(against, subject, random(data, depth * SLOW_ROUNDS));
    reads.line(format!("{}, depth {depth}", way(direct)), contender, target)
}

/// 128 KiB sequential reads.
pub(super) fn slice(data: &Data) -> List {
    let count = (data.bytes.min(SLICE) / u64::from(COMBINED)).max(1) as usize;
    List::Slice { count, length: COMBINED }
}

/// Random reads of 8 KiB, each block at most once.
pub(super) fn random(data: &Data, count: usize) -> List {
    List::Random { count: count.min(data.blocks() as usize), length: BLOCK }
}

/// The notes of a row on a slow device.
pub(super) fn slow_notes(stage: &Stage<'_>) -> Result<Vec<String>> {
    Ok(vec![stage.coldness()?, READ_AHEAD_NOTE.into()])
}
