//! **Rows that measure reads through the buffer pool**, declared as data like those in `reads.rs`.
//!
//! A bare loop doesn't touch the pages, and neither does our consumer. If our streams verify
//! checksums, so does the bare loop, because that is the fair comparison.

use super::comparison::{Body, Comparison, Needs, Row, SetUp};
use super::joined::Joined;
use super::memory_limit::{MemoryLimit, TIMES};
use super::options::{BLOCK, COMBINED, CONCURRENCY, buffers, each_way, methods, way};
use super::reads::{
    CACHED_READS_MAX, LATENCY, SLICE, SLOW_BYTES_MAX, SLOW_ROUNDS, TRIPS, TRIPS_TARGET, random,
    ring_target, slice, slow, slow_depths, slow_notes, slow_target, worker_ways,
};
use super::side_by_side::{List, SideBySide, Subject};
use crate::handles::Setup;
use crate::pooled::PoolSetup;
use crate::report::{Names, Target};
use crate::work::Work;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::Strategy;
use trunkline_format::BlockNo;

/// Maximum size of a table that must fit into the page cache, but must be larger than the pools
/// through which we read it.
const TABLE_BYTES_MAX: u64 = 512 << 20;
/// The last value of i in `pool-reread`.
const REREAD_LAST: BlockNo = 10_000;

pub(super) const POOL_SEQUENTIAL: Row = Row {
    name: "pool-sequential",
    measures: "A cold table in the file's order, through the pool",
    question: "How fast is a cold sequential scan through the pool?",
    about: "The baseline is one thread with its own io_uring, which verifies checksums if the \
            scan does. A table that is larger than the pool is read through a ring buffer. If it \
            fits into the pool, it stays there after the scan.",
    body: Body::Lines(&[|stage| {
        let data = stage.data()?;
        let bytes = data.bytes.min(SLICE);
        let fits = (bytes / u64::from(BLOCK)) as u32 + 1024;
        let kinds = [
            ("pool 1/16, ring", buffers(bytes, 16), Strategy::BulkRead),
            ("pool 1/16", buffers(bytes, 16), Strategy::Normal),
            ("pool fits", fits, Strategy::Normal),
        ];
        let mut lines = Vec::new();
        for (kind, buffers, strategy) in kinds {
            for method in [MethodKind::IoUring, MethodKind::Worker] {
                let io = Setup::new(method, true, CONCURRENCY, COMBINED);
                lines.extend(CHECKSUMS.map(|(checksums, sums)| {
                    let against = bare_ring(true, CONCURRENCY, COMBINED, checksums);
                    let setup = PoolSetup { checksums, ..PoolSetup::scan(io, buffers, strategy) };
                    let subject = Subject::Pool { setup, sessions: 1 };
                    SideBySide::cold(against, subject, slice(data)).line(
                        format!("direct, {kind}"),
                        format!("{method}, {sums}"),
                        pool_target(method, 0.95, checksums),
                    )
                }));
            }
        }
        Ok(lines)
    }]),
    ..Row::COLD
};

pub(super) const POOL_RANDOM: Row = Row {
    name: "pool-random",
    measures: "Cold random blocks at depth 1, 16 and 64, through the pool",
    question: "How fast are cold random reads of 8 KiB through the pool?",
    about: "The baseline is `pread` at depth 1, and one thread with its own io_uring at larger \
            depths. The ring verifies checksums if the stream does.",
    body: Body::Lines(&[|stage| {
        /// Reads in one half of a pair.
        const READS: usize = 20_000;
        let data = stage.data()?;
        let mut lines = Vec::new();
        for depth in [1, 16, 64] {
            for (direct, method) in each_way() {
                let both = direct && method == MethodKind::IoUring;
                for (checksums, sums) in CHECKSUMS.into_iter().filter(|&(on, _)| both || on) {
                    let io = Setup::new(method, direct, depth, BLOCK);
                    // An index scan needs each page immediately.
                    let points = depth == 1;
                    let room = READS as u32 + 1024;
                    let setup = PoolSetup { checksums, points, ..PoolSetup::new(io, room) };
                    let (against, reads, target) = match points {
                        true => {
                            (Subject::Threads { direct, threads: 1, length: BLOCK }, 3_000, LATENCY)
                        }
                        false => (
                            bare_ring(direct, depth, BLOCK, checksums),
                            READS,
                            pool_target(method, 0.9, checksums),
                        ),
                    };
                    let subject = Subject::Pool { setup, sessions: 1 };
                    lines.push(SideBySide::cold(against, subject, random(data, reads)).line(
                        format!("{}, depth {depth}", way(direct)),
                        format!("{method}, {sums}"),
                        target,
                    ));
                }
            }
        }
        Ok(lines)
    }]),
    ..Row::COLD
};

pub(super) const POOL_LAG: Row = Row {
    name: "pool-lag",
    measures: "Random blocks of a slow device that serves many reads concurrently, through the \
               pool",
    question: "Do read streams keep a slow device busy?",
    about: "The same device and the same baseline as for handles.",
    needs: Needs::LagDir,
    set_up: SetUp::SlowDevice(SLOW_BYTES_MAX),
    body: Body::Lines(&[|stage| {
        let data = stage.data()?;
        let mut lines = Vec::new();
        for (direct, depth) in slow_depths() {
            lines.extend(methods(direct).map(|method| {
                let io = Setup { workers: depth, ..Setup::new(method, direct, depth, BLOCK) };
                let setup = PoolSetup::new(io, (depth * SLOW_ROUNDS) as u32 + 1024);
                let subject = Subject::Pool { setup, sessions: 1 };
                slow(data, direct, depth, method, slow_target(method, depth), subject)
            }));
        }
        Ok(lines)
    }]),
    notes: slow_notes,
    ..Row::COLD
};

pub(super) const POOL_CACHED: Row = Row {
    name: "pool-cached",
    measures: "A table in the page cache through a pool of a sixteenth of it, against our own \
               `sync`",
    question: "Are `worker` and `io_uring` slower than our own `sync` on a cached table?",
    about: "The pool is only a sixteenth as large as the table, so nearly every page is a miss \
            that evicts another page. The I/O itself is just a copy, so the cost of every hop \
            between threads is visible.",
    set_up: SetUp::Folder("table", TABLE_BYTES_MAX),
    body: Body::Lines(&[|stage| {
        let buffers = buffers(stage.data()?.bytes, 16);
        let mut lines = Vec::new();
        for length in [BLOCK, COMBINED] {
            let pool = |method, sessions| {
                let io = Setup::new(method, false, CONCURRENCY, length);
                Subject::Pool { setup: PoolSetup::scan(io, buffers, Strategy::BulkRead), sessions }
            };
            for sessions in [1, 2, 32] {
                let setting = format!("{} KiB, {sessions} sessions", length / 1024);
                let list = List::Parts { sessions, length };
                for method in [MethodKind::Worker, MethodKind::IoUring] {
                    let (against, subject) =
                        (pool(MethodKind::Sync, sessions), pool(method, sessions));
                    let target = Target { rate_low: Some(0.95), ..Target::NONE };
                    let reads = SideBySide::warm(against, subject, list);
                    lines.push(reads.line(&setting, method, target));
                }
            }
        }
        Ok(lines)
    }]),
    notes: |stage| Ok(vec![stage.warmth()?]),
    ..Row::COLD
};

pub(super) const POOL_ROUND_TRIP: Row = Row {
    name: "pool-round-trip",
    measures: "Cached blocks through the pool and workers, against the price of a hop",
    question: "How many cached blocks, read through the pool by workers, cost as much as one \
               futex round trip?",
    about: "The pool is only a sixteenth as large as the data and the order is random, so nearly \
            every block has to be read.",
    set_up: SetUp::Folder("table", TABLE_BYTES_MAX),
    body: Body::Lines(&[|stage| {
        let data = stage.data()?;
        let line = |(depth, look_first, contender)| {
            let io = Setup::new(MethodKind::Worker, false, depth, BLOCK);
            let setup = PoolSetup::new(Setup { look_first, ..io }, buffers(data.bytes, 16));
            let list = random(data, CACHED_READS_MAX as usize);
            let subject = Subject::Pool { setup, sessions: 1 };
            let setting = format!("cached, depth {depth}");
            SideBySide::warm(TRIPS, subject, list).line(setting, contender, TRIPS_TARGET)
        };
        Ok(worker_ways().map(line).collect())
    }]),
    notes: |stage| Ok(vec![stage.warmth()?]),
    ..Row::COLD
};

pub(super) const POOL_REREAD: Row = Row {
    name: "pool-reread",
    measures: "Blocks that are requested again while their read is in flight",
    question: "What does it cost to request a block again while its read is in flight?",
    about: "A stream requests the blocks i, i+1, i+2 and i+3 for every i from 1 to 10,000. The \
            baseline is the same stream with each block requested once. Only for single-block \
            reads do both sides issue the same reads, so only those have a target.",
    body: Body::Lines(&[|stage| {
        let last = REREAD_LAST.min(stage.data()?.blocks().saturating_sub(4)).max(1);
        let mut lines = Vec::new();
        for length in [BLOCK, COMBINED] {
            lines.extend(each_way().map(|(direct, method)| {
                let setting = format!("{}, up to {} KiB", way(direct), length / 1024);
                let io = Setup::new(method, direct, CONCURRENCY, length);
                Comparison::new(
                    Names::new(setting, method, "each once"),
                    if length == BLOCK { Target::rate(1.0 / 1.1) } else { Target::NONE },
                    Joined {
                        setup: PoolSetup::new(io, last + 1024),
                        once: Work::of_blocks(1..last + 4),
                        repeated: vec![Work::of_blocks((1..=last).flat_map(|i| i..i + 4))],
                    },
                )
            }));
        }
        Ok(lines)
    }]),
    notes: |stage| {
        let rate = "the rate is that of distinct blocks; a list that goes back cannot be combined";
        Ok(vec![stage.coldness()?, rate.into()])
    },
    ..Row::COLD
};

pub(super) const POOL_SCANS: Row = Row {
    name: "pool-scans",
    measures: "Two sessions that scan one table concurrently",
    question: "What happens if two sessions scan the same table?",
    about: "The pool can hold the whole table. The session that gets to a block first reads it, \
            and the other one finds it in the pool or joins the read in flight. The baseline is a \
            single session.",
    set_up: SetUp::Folder("table", TABLE_BYTES_MAX),
    body: Body::Lines(&[|stage| {
        let data = stage.data()?;
        let whole = Work::whole(data.bytes, BLOCK);
        let line = |(direct, method)| {
            let io = Setup::new(method, direct, CONCURRENCY, COMBINED);
            let room = data.blocks() + 1024;
            Comparison::new(
                Names::new(way(direct), format!("{method}, two"), "one"),
                Target::NONE,
                Joined {
                    setup: PoolSetup::scan(io, room, Strategy::Normal),
                    once: whole.clone(),
                    repeated: vec![whole.clone(); 2],
                },
            )
        };
        Ok(each_way().map(line).collect())
    }]),
    notes: |stage| {
        let rate = "the rate is that of the table, however many scan it";
        Ok(vec![stage.coldness()?, rate.into()])
    },
    ..Row::COLD
};

pub(super) const POOL_MEMORY: Row = Row {
    name: "pool-memory",
    measures: "A table larger than the memory that the process may have",
    question: "Does a limit on the memory of the process slow a direct scan down?",
    about: "It should cost nothing, because direct I/O does not use the page cache.",
    needs: Needs::Group,
    body: Body::Lines(&[|_| {
        let setting = format!("direct, memory 1/{TIMES} of the table");
        let line = |method| {
            let names = Names::new(setting.clone(), method, "no limit");
            Comparison::new(names, Target::rate(0.9), MemoryLimit(method))
        };
        Ok([MethodKind::IoUring, MethodKind::Worker].map(line).into())
    }]),
    notes: |stage| {
        let data = stage.data()?;
        let group = stage.group(data.bytes / TIMES)?.describe();
        Ok(vec![format!("{group}; {}", data.coldness())])
    },
    ..Row::COLD
};

/// The baseline of a stream: a bare ring that verifies checksums if the stream does.
fn bare_ring(direct: bool, depth: usize, length: u32, checksums: bool) -> Subject {
    match checksums {
        true => Subject::CheckedRing { direct, depth, length },
        false => Subject::Ring { direct, depth, length },
    }
}

/// The target of a stream against [`bare_ring`]: without checksums, the given minimum ratio of the
/// rates. With them, a ratio of 0.9 and at most 1.5 times the CPU time.
fn pool_target(method: MethodKind, rate: f64, checksums: bool) -> Target {
    let target = ring_target(method, rate);
    match checksums && target.rate.is_some() {
        true => Target { cpu: Some(1.5), ..Target::rate(0.9) },
        false => target,
    }
}

/// Without and with verification of checksums, as the reports print it.
const CHECKSUMS: [(bool, &str); 2] = [(false, "no checksums"), (true, "checksums")];
