//! **Rows that read**, declared as data: what each row compares, on which files, and the target of
//! each line. `comparison.rs` measures them.

use trunkline_aio::MethodKind;
use trunkline_engine::pool::Strategy;
use trunkline_format::BLOCK_SIZE;

use super::comparison::{Comparison, Input, List, PageCache, ReadRow, Subject, methods};
use super::{COMBINED, CONCURRENCY, buffers, sums, way};
use crate::bare::Placement;
use crate::data::Data;
use crate::handles::Setup;
use crate::pooled::PoolSetup;
use crate::report::Target;

const BLOCK: u32 = BLOCK_SIZE as u32;
/// Bytes read sequentially in half of a pair.
const SLICE: u64 = 1 << 30;
/// Maximum data size for rows that need all files in the page cache.
const CACHED_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a table that must stay in the page cache but be larger than the pools that read
/// it.
const TABLE_BYTES_MAX: u64 = 512 << 20;
/// Data size on a slow device. The rate doesn't depend on it, so it is small.
const SLOW_BYTES_MAX: u64 = 256 << 20;
/// Reads per unit of depth in half of a pair on a slow device.
const SLOW_ROUNDS: usize = 50;
/// Maximum number of cached reads in half of a pair.
const CACHED_READS_MAX: u64 = 60_000;
/// Maximum number of times a block is read in half of a pair.
const CACHED_REPEATS: u64 = 8;
/// Reads per futex round trip, chosen so that both halves of a pair take about as long.
const READS_PER_TRIP: u32 = 3;

const NO_TARGET: Target = Target { rate: None, rate_low: None, cpu: None, in_flight: None };
/// Latency may be at most 1.15 times the baseline's.
const LATENCY: Target = Target { rate: Some(1.0 / 1.15), ..NO_TARGET };
const READ_AHEAD_NOTE: &str = "`sync` has the kernel read ahead (fadvise)";

/// How close do sequential 128 KiB reads come to a single thread with its own io_uring? The
/// buffered lines show what the page cache costs.
pub(super) const SEQUENTIAL: ReadRow = ReadRow {
    title: "sequential: cold, 128 KiB",
    input: Input::Whole,
    cache: PageCache::Cold,
    note: None,
    comparisons: |data| {
        let line = |(direct, method)| Comparison {
            setting: format!("{}, depth {CONCURRENCY}", way(direct)),
            contender: MethodKind::to_string(&method),
            reference: "bare ring".into(),
            against: Subject::Ring { direct, depth: CONCURRENCY, length: COMBINED },
            subject: Subject::Handles(Setup::new(method, direct, CONCURRENCY, COMBINED)),
            target: match (direct, method) {
                (true, MethodKind::IoUring) => ring_target(0.95),
                _ => NO_TARGET,
            },
            list: slice(data),
        };
        each_way().map(line).collect()
    },
};

/// How close do random 8 KiB reads come to `pread` at depth 1, and to a bare ring at larger
/// depths?
pub(super) const RANDOM: ReadRow = ReadRow {
    title: "random: cold, 8 KiB",
    input: Input::Whole,
    cache: PageCache::Cold,
    note: None,
    comparisons: |data| {
        let mut lines = Vec::new();
        for direct in [true, false] {
            lines.push(Comparison {
                setting: format!("{}, depth 1", way(direct)),
                contender: "needed now".into(),
                reference: "pread".into(),
                against: Subject::Threads { direct, threads: 1, length: BLOCK },
                subject: Subject::Handles(Setup::new(MethodKind::IoUring, direct, 1, BLOCK)),
                target: LATENCY,
                list: random(data, 3_000),
            });
            for depth in [16, 64] {
                lines.extend(methods(direct).map(|method| Comparison {
                    setting: format!("{}, depth {depth}", way(direct)),
                    contender: method.to_string(),
                    reference: "bare ring".into(),
                    against: Subject::Ring { direct, depth, length: BLOCK },
                    subject: Subject::Handles(Setup::new(method, direct, depth, BLOCK)),
                    target: match method {
                        MethodKind::IoUring => ring_target(0.9),
                        _ => NO_TARGET,
                    },
                    list: random(data, if direct { 20_000 } else { 10_000 }),
                }));
            }
        }
        lines
    },
};

/// On a slow device that can serve many reads concurrently, do we keep enough reads in flight? Is
/// the next read submitted as soon as a read completes?
pub(super) const LAG: ReadRow = ReadRow {
    title: "lag: 8 KiB, slow device",
    input: Input::SlowDevice(SLOW_BYTES_MAX),
    cache: PageCache::Cold,
    note: Some(READ_AHEAD_NOTE),
    comparisons: |data| {
        let mut lines = Vec::new();
        for (direct, depth) in slow_depths() {
            lines.extend(methods(direct).map(|method| {
                let io = Setup::new(method, direct, depth, BLOCK);
                let subject = Subject::Handles(Setup { workers: depth, refill: 1, ..io });
                slow(data, direct, depth, method.to_string(), subject, slow_target(method, depth))
            }));
            // For information only: what a bare ring achieves on this file system.
            let ring = Subject::Ring { direct, depth, length: BLOCK };
            lines.push(slow(data, direct, depth, "(bare ring)".into(), ring, NO_TARGET));
        }
        lines
    },
};

/// How many cached reads through workers cost as much as one futex round trip? A result above one
/// means that reads share wake-ups.
pub(super) const ROUND_TRIP: ReadRow = ReadRow {
    title: "round-trip: 8 KiB, cached",
    input: Input::Folder("cached", CACHED_BYTES_MAX),
    cache: PageCache::Warm,
    note: None,
    comparisons: |data| {
        let reads = CACHED_READS_MAX.min(u64::from(data.blocks()) * CACHED_REPEATS) as usize;
        let line = |setting: String, contender: String, subject, target| Comparison {
            setting,
            contender,
            reference: "futex round trip".into(),
            against: TRIPS,
            subject,
            target,
            list: List::Random { count: reads, length: BLOCK },
        };
        let mut lines = Vec::new();
        for (depth, look_first, name) in worker_ways() {
            let io = Setup::new(MethodKind::Worker, false, depth, BLOCK);
            let subject = Subject::Handles(Setup { look_first, ..io });
            lines.push(line(format!("cached, depth {depth}"), name, subject, TRIPS_TARGET));
        }
        let pread = Subject::Threads { direct: false, threads: 1, length: BLOCK };
        lines.push(line("cached".into(), "(pread)".into(), pread, NO_TARGET));
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
            for (placement, name) in
                [(Placement::OneCpu, "(futex, one CPU)"), (Placement::TwoCpus, "(futex, two CPUs)")]
            {
                let reads_per_trip = READS_PER_TRIP * 4;
                let subject = Subject::RoundTrips { placement, reads_per_trip };
                lines.push(line("–".into(), name.into(), subject, NO_TARGET));
            }
        }
        lines
    },
};

/// How close does a sequential scan through the pool come to a bare ring, which computes no
/// checksums and doesn't touch the pages? A table larger than the pool is read through a ring
/// buffer, whereas a table that fits fills the pool.
pub(super) const POOL_SEQUENTIAL: ReadRow = ReadRow {
    title: "pool-sequential: cold, 128 KiB",
    input: Input::Whole,
    cache: PageCache::Cold,
    note: None,
    comparisons: |data| {
        let bytes = data.bytes.min(SLICE);
        let fits = (bytes / BLOCK_SIZE as u64) as u32 + 1024;
        let kinds = [
            ("pool 1/16, ring", buffers(bytes, 16), Strategy::BulkRead),
            ("pool 1/16", buffers(bytes, 16), Strategy::Normal),
            ("pool fits", fits, Strategy::Normal),
        ];
        let mut lines = Vec::new();
        for (kind, buffers, strategy) in kinds {
            for method in [MethodKind::IoUring, MethodKind::Worker] {
                for checksums in [false, true] {
                    let io = Setup::new(method, true, CONCURRENCY, COMBINED);
                    let setup = PoolSetup {
                        checksums,
                        strategy,
                        scan: true,
                        ..PoolSetup::new(io, buffers)
                    };
                    lines.push(Comparison {
                        setting: format!("direct, {kind}"),
                        contender: format!("{method}, {}", sums(checksums)),
                        reference: "bare ring".into(),
                        against: Subject::Ring {
                            direct: true,
                            depth: CONCURRENCY,
                            length: COMBINED,
                        },
                        subject: Subject::Pool { setup, sessions: 1 },
                        target: match method {
                            MethodKind::IoUring => ring_target(0.95),
                            _ => NO_TARGET,
                        },
                        list: slice(data),
                    });
                }
            }
        }
        lines
    },
};

/// How close do random blocks through the pool come to `pread` and to a bare ring?
pub(super) const POOL_RANDOM: ReadRow = ReadRow {
    title: "pool-random: cold, 8 KiB",
    input: Input::Whole,
    cache: PageCache::Cold,
    note: None,
    comparisons: |data| {
        /// Reads in one half of a pair.
        const READS: usize = 20_000;
        let mut lines = Vec::new();
        for depth in [1, 16, 64] {
            for (direct, method) in each_way() {
                let both = direct && method == MethodKind::IoUring;
                for checksums in [false, true].into_iter().filter(|&checksums| both || checksums) {
                    let io = Setup::new(method, direct, depth, BLOCK);
                    let setup = PoolSetup { checksums, ..PoolSetup::new(io, READS as u32 + 1024) };
                    let single = depth == 1;
                    lines.push(Comparison {
                        setting: format!("{}, depth {depth}", way(direct)),
                        contender: format!("{method}, {}", sums(checksums)),
                        reference: if single { "pread" } else { "bare ring" }.into(),
                        against: match single {
                            true => Subject::Threads { direct, threads: 1, length: BLOCK },
                            false => Subject::Ring { direct, depth, length: BLOCK },
                        },
                        subject: match single {
                            true => Subject::PoolPoints(setup),
                            false => Subject::Pool { setup, sessions: 1 },
                        },
                        target: match (single, method) {
                            (true, _) => LATENCY,
                            (false, MethodKind::IoUring) => ring_target(0.9),
                            _ => NO_TARGET,
                        },
                        list: random(data, if single { 3_000 } else { READS }),
                    });
                }
            }
        }
        lines
    },
};

/// Does the pool keep enough reads in flight on a slow device? The baseline has one thread per
/// unit of depth.
pub(super) const POOL_LAG: ReadRow = ReadRow {
    title: "pool-lag: 8 KiB, slow device",
    input: Input::SlowDevice(SLOW_BYTES_MAX),
    cache: PageCache::Cold,
    note: Some(READ_AHEAD_NOTE),
    comparisons: |data| {
        let mut lines = Vec::new();
        for (direct, depth) in slow_depths() {
            lines.extend(methods(direct).map(|method| {
                let io = Setup { workers: depth, ..Setup::new(method, direct, depth, BLOCK) };
                let setup = PoolSetup::new(io, (depth * SLOW_ROUNDS) as u32 + 1024);
                let subject = Subject::Pool { setup, sessions: 1 };
                slow(data, direct, depth, method.to_string(), subject, slow_target(method, depth))
            }));
        }
        lines
    },
};

/// Are `worker` and `io_uring` slower than our own `sync` on a cached table? The pool is a
/// sixteenth of the table, so nearly every page is a miss that evicts. Since the I/O itself is
/// just an 8 KiB copy, every hop between threads shows.
pub(super) const POOL_CACHED: ReadRow = ReadRow {
    title: "pool-cached: pool 1/16 of the table",
    input: Input::Folder("table", TABLE_BYTES_MAX),
    cache: PageCache::Warm,
    note: None,
    comparisons: |data| {
        let mut lines = Vec::new();
        for length in [BLOCK, COMBINED] {
            let pool = |method, sessions| {
                let io = Setup::new(method, false, CONCURRENCY, length);
                let setup = PoolSetup::new(io, buffers(data.bytes, 16));
                let setup = PoolSetup { strategy: Strategy::BulkRead, scan: true, ..setup };
                Subject::Pool { setup, sessions }
            };
            for sessions in [1, 2, 32] {
                for method in [MethodKind::Worker, MethodKind::IoUring] {
                    lines.push(Comparison {
                        setting: format!("{} KiB, {sessions} sessions", length / 1024),
                        contender: method.to_string(),
                        reference: "our sync".into(),
                        against: pool(MethodKind::Sync, sessions),
                        subject: pool(method, sessions),
                        target: Target { rate_low: Some(0.95), ..NO_TARGET },
                        list: List::Parts { sessions, length },
                    });
                }
            }
        }
        lines
    },
};

/// How many cached blocks through the pool and workers cost as much as one futex round trip? The
/// pool is a sixteenth of the data and the order is random, so nearly every block must be read.
pub(super) const POOL_ROUND_TRIP: ReadRow = ReadRow {
    title: "pool-round-trip: 8 KiB, cached",
    input: Input::Folder("table", TABLE_BYTES_MAX),
    cache: PageCache::Warm,
    note: None,
    comparisons: |data| {
        let line = |(depth, look_first, contender)| {
            let io = Setup::new(MethodKind::Worker, false, depth, BLOCK);
            let setup = PoolSetup::new(Setup { look_first, ..io }, buffers(data.bytes, 16));
            Comparison {
                setting: format!("cached, depth {depth}"),
                contender,
                reference: "futex round trip".into(),
                against: TRIPS,
                subject: Subject::Pool { setup, sessions: 1 },
                target: TRIPS_TARGET,
                list: random(data, CACHED_READS_MAX as usize),
            }
        };
        worker_ways().map(line).collect()
    },
};

/// The baseline of the round trip rows, and their target.
const TRIPS: Subject =
    Subject::RoundTrips { placement: Placement::Free, reads_per_trip: READS_PER_TRIP };
const TRIPS_TARGET: Target = Target { rate: Some(3.0), ..NO_TARGET };

/// The given minimum rate ratio, with at most 1.3 times the CPU time.
fn ring_target(rate: f64) -> Target {
    Target { rate: Some(rate), cpu: Some(1.3), ..NO_TARGET }
}

/// Direct and buffered, each combined with the I/O methods that support it.
fn each_way() -> impl Iterator<Item = (bool, MethodKind)> {
    let with_methods = |direct| methods(direct).map(move |method| (direct, method));
    [true, false].into_iter().flat_map(with_methods)
}

/// Variants of reads through workers: the depth, and whether the session first tries the page
/// cache or always hands the read over.
fn worker_ways() -> impl Iterator<Item = (usize, bool, String)> {
    let ways = |depth| {
        [
            (depth, false, "worker, handed over".into()),
            (depth, true, "worker, looked for first".into()),
        ]
    };
    [16, 64].into_iter().flat_map(ways)
}

fn slow_depths() -> impl Iterator<Item = (bool, usize)> {
    [true, false].into_iter().flat_map(|direct| [16, 64, 200].map(|depth| (direct, depth)))
}

/// At most 1.1 times the baseline's elapsed time, with nearly `depth` reads in flight.
fn slow_target(method: MethodKind, depth: usize) -> Target {
    let in_flight = (method != MethodKind::Sync).then_some(0.9 * depth as f64);
    Target { rate: Some(1.0 / 1.1), in_flight, ..NO_TARGET }
}

/// Builds one line of a row on a slow device.
fn slow(
    data: &Data,
    direct: bool,
    depth: usize,
    contender: String,
    subject: Subject,
    target: Target,
) -> Comparison {
    Comparison {
        setting: format!("{}, depth {depth}", way(direct)),
        contender,
        reference: format!("{depth} threads"),
        against: Subject::Threads { direct, threads: depth, length: BLOCK },
        subject,
        target,
        list: random(data, depth * SLOW_ROUNDS),
    }
}

/// 128 KiB sequential reads.
fn slice(data: &Data) -> List {
    let count = (data.bytes.min(SLICE) / u64::from(COMBINED)).max(1) as usize;
    List::Slice { count, length: COMBINED }
}

/// Random reads of 8 KiB, each block at most once.
fn random(data: &Data, count: usize) -> List {
    List::Random { count: count.min(data.blocks() as usize), length: BLOCK }
}
