//! How neighbouring blocks become reads: PG 30 to 33.
//!
//! A stream that skips the slow start gathers the blocks and starts them as PostgreSQL's low-level
//! read does; what it asked the storage for is what the probe saw.

use crate::rig::{Rig, Setup, check};
use trunkline_aio::sync::Arc;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;

/// One line: what is in the pool, what is asked for, how many blocks make a read at most, and the
/// reads that this must lead to.
struct Line {
    present: &'static [BlockNo],
    wanted: &'static [BlockNo],
    combine: u32,
    reads: &'static [(BlockNo, u32)],
}

const LINES: &[Line] = &[
    // Two misses are one read, two hits none.
    Line { present: &[], wanted: &[0, 1], combine: 16, reads: &[(0, 2)] },
    Line { present: &[0, 1], wanted: &[0, 1], combine: 16, reads: &[] },
    // A hit ends a read.
    Line { present: &[1], wanted: &[0, 1, 2, 3], combine: 16, reads: &[(0, 1), (2, 2)] },
    Line { present: &[0, 1], wanted: &[0, 1, 2], combine: 16, reads: &[(2, 1)] },
    Line { present: &[1, 2], wanted: &[0, 1, 2], combine: 16, reads: &[(0, 1)] },
    Line { present: &[0, 2], wanted: &[0, 1, 2, 3, 4], combine: 16, reads: &[(1, 1), (3, 2)] },
    // The limit ends it, too.
    Line { present: &[], wanted: &[0, 1, 2, 3, 4], combine: 3, reads: &[(0, 3), (3, 2)] },
    Line { present: &[], wanted: &[5, 6, 7], combine: 1, reads: &[(5, 1), (6, 1), (7, 1)] },
    // A block that does not follow begins a new one; going down combines nothing.
    Line { present: &[], wanted: &[4, 5, 8, 9], combine: 16, reads: &[(4, 2), (8, 2)] },
    Line { present: &[], wanted: &[3, 2, 1], combine: 16, reads: &[(3, 1), (2, 1), (1, 1)] },
];

fn read_line(rig: &Arc<Rig>, line: &Line) {
    rig.pool.evict_all();
    let mut backend = rig.backend();
    line.present.iter().for_each(|&block| rig.read_ok(&mut backend, block));
    backend.show_counts();
    let before = rig.pool.total();
    rig.hooks.record();
    let options = StreamOptions { combine: line.combine, full: true, ..StreamOptions::default() };
    let mut stream = rig.stream(&backend, line.wanted, options);
    let seen = rig.drain(&mut backend, &mut stream);
    let wanted: Vec<_> = line.wanted.iter().map(|&block| Ok(block)).collect();
    assert_eq!(seen, wanted);
    assert_eq!(rig.reads(), line.reads, "{:?} of {:?}", line.wanted, line.present);
    let stats = stream.stats();
    let blocks: u32 = line.reads.iter().map(|read| read.1).sum();
    assert_eq!((stats.ios, stats.io_blocks), (line.reads.len() as u64, u64::from(blocks)));
    assert_eq!(stats.pages, line.wanted.len() as u64);
    drop(stream);
    let total = rig.pool.total();
    assert_eq!(total.reads - before.reads, line.reads.len() as u64);
    assert_eq!(total.read_blocks - before.read_blocks, u64::from(blocks));
    assert_eq!(total.hits - before.hits, line.wanted.len() as u64 - u64::from(blocks));
}

#[test]
fn pg_30_hits_and_limits_split_reads() {
    check(Setup::both(), |rig| LINES.iter().for_each(|line| read_line(rig, line)));
}

/// Under a bulk read's ring and under vacuum's, the splits are the same.
#[test]
fn pg_30_a_ring_splits_no_differently() {
    use trunkline_engine::pool::Strategy;
    check(Setup { buffers: 128, ..Setup::both() }, |rig| {
        for strategy in [Strategy::BulkRead, Strategy::Vacuum] {
            rig.pool.evict_all();
            let mut backend = rig.backend();
            rig.read_ok(&mut backend, 2);
            rig.hooks.record();
            let options = StreamOptions { full: true, strategy, ..StreamOptions::default() };
            let mut stream = rig.stream(&backend, &[0, 1, 2, 3, 4, 5], options);
            assert_eq!(rig.drain(&mut backend, &mut stream).len(), 6);
            assert_eq!(rig.reads(), [(0, 2), (3, 3)]);
        }
    });
}

/// A block that the session itself has under way ends a read before it, needs no other one, and
/// begins a new one behind it: at the first place, in the middle, at the last.
#[test]
fn pg_31_an_own_read_under_way_splits_a_read() {
    type Case = (BlockNo, &'static [(BlockNo, u32)]);
    const CASES: [Case; 3] =
        [(4, &[(4, 1), (5, 2)]), (5, &[(5, 1), (4, 1), (6, 1)]), (6, &[(6, 1), (4, 2)])];
    check(Setup::both(), |rig| {
        for (under_way, reads) in CASES {
            rig.pool.evict_all();
            rig.hooks.record();
            let mut backend = rig.backend();
            let mut first = rig.start_read(&mut backend, &[under_way]);
            let options = StreamOptions { full: true, ..StreamOptions::default() };
            let mut second = rig.stream(&backend, &[4, 5, 6], options);
            assert_eq!(rig.drain(&mut backend, &mut second), [Ok(4), Ok(5), Ok(6)]);
            assert_eq!(rig.reads(), reads, "block {under_way} under way");
            first.let_go();
            assert_eq!(backend.pins(), 0);
        }
    });
}

/// Another session has a read under way within ours. If it fails, we read the block ourselves, by
/// itself; if it succeeds it is a hit. What follows is a read of its own either way.
#[test]
fn pg_32_another_sessions_read_splits_a_read() {
    check(Setup::default(), |rig| {
        for fails in [false, true] {
            rig.pool.evict_all();
            rig.hooks.record();
            let held = rig.hold(5);
            let other = rig
                .spawn("other", |rig| rig.backend().read(&rig.relation(0), 5).map(drop).is_err());
            held.wait();
            let reader = rig.spawn("reader", |rig| {
                let mut backend = rig.backend();
                let options = StreamOptions { full: true, ..StreamOptions::default() };
                let mut stream = rig.stream(&backend, &[4, 5, 6, 7], options);
                let seen = rig.drain(&mut backend, &mut stream);
                assert_eq!(seen, [Ok(4), Ok(5), Ok(6), Ok(7)]);
                backend.session_id()
            });
            // The other's, its I/O's, ours.
            rig.wait_pins(5, 3);
            if fails {
                let mut times = 0;
                rig.hooks.change_results(move |io, raw| {
                    times += u32::from(io.offset == 5 * 8192);
                    if io.offset == 5 * 8192 && times == 1 { -5 } else { raw }
                });
            }
            held.release();
            assert_eq!(other.join(), fails);
            let mut reads = rig.reads_of(reader.join());
            reads.sort_unstable();
            match fails {
                // Nothing was read ahead: what the stream still needs it reads at once.
                true if !rig.is_asynchronous() => assert_eq!(reads, [(4, 1), (5, 3)]),
                true => assert_eq!(reads, [(4, 1), (5, 1), (6, 2)]),
                false => assert_eq!(reads, [(4, 1), (6, 2)]),
            }
            rig.hooks.keep_results();
        }
    });
}

/// The wait for another session's read is by its reference: it counts as a hit that was joined, and
/// as a wait.
#[test]
fn pg_33_another_sessions_read_is_joined() {
    check(Setup::default(), |rig| {
        let held = rig.hold(2);
        let other = rig.spawn("other", |rig| rig.read_ok(&mut rig.backend(), 2));
        held.wait();
        let mut backend = rig.task_backend();
        let mut stream = rig.start_read(&mut backend, &[2]);
        let row = rig.pool.rows().into_iter().find(|row| row.block == 2).expect("it has a buffer");
        assert!(!row.valid && row.pins == 3 && row.io.is_some(), "{row:?}");
        held.release();
        other.join();
        assert_eq!(rig.drain(&mut backend, &mut stream), [Ok(2)]);
        drop((stream, backend));
        let total = rig.pool.total();
        assert_eq!((total.reads, total.hits, total.joins), (1, 1, 1));
    });
}
