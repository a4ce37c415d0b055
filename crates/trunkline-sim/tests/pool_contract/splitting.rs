//! How adjacent blocks are combined into reads: test_aio's cases 30 to 33.
//!
//! If `full` is set, a stream collects blocks and reads them with as few I/Os as possible, as
//! `StartReadBuffers` does in PostgreSQL. The probe records these reads.

use trunkline_aio::facade::Arc;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs};

/// One row of the table: blocks already in the pool, blocks requested, combine limit, and the reads
/// we expect.
struct Line {
    present: &'static [BlockNo],
    wanted: &'static [BlockNo],
    combine: u32,
    reads: &'static [(BlockNo, u32)],
}

const LINES: &[Line] = &[
    // Two misses become one read, two hits none.
    Line { present: &[], wanted: &[0, 1], combine: 16, reads: &[(0, 2)] },
    Line { present: &[0, 1], wanted: &[0, 1], combine: 16, reads: &[] },
    // A hit ends a read.
    Line { present: &[1], wanted: &[0, 1, 2, 3], combine: 16, reads: &[(0, 1), (2, 2)] },
    Line { present: &[0, 1], wanted: &[0, 1, 2], combine: 16, reads: &[(2, 1)] },
    Line { present: &[1, 2], wanted: &[0, 1, 2], combine: 16, reads: &[(0, 1)] },
    Line { present: &[0, 2], wanted: &[0, 1, 2, 3, 4], combine: 16, reads: &[(1, 1), (3, 2)] },
    // The combine limit ends a read, too.
    Line { present: &[], wanted: &[0, 1, 2, 3, 4], combine: 3, reads: &[(0, 3), (3, 2)] },
    Line { present: &[], wanted: &[5, 6, 7], combine: 1, reads: &[(5, 1), (6, 1), (7, 1)] },
    // A block that isn't adjacent starts a new read; descending blocks are never combined.
    Line { present: &[], wanted: &[4, 5, 8, 9], combine: 16, reads: &[(4, 2), (8, 2)] },
    Line { present: &[], wanted: &[3, 2, 1], combine: 16, reads: &[(3, 1), (2, 1), (1, 1)] },
];

/// Runs one row and compares the reads.
fn read_line(cluster: &Arc<Cluster>, line: &Line) {
    cluster.pool.evict_all();
    let mut backend = cluster.backend();
    line.present.iter().for_each(|&block| cluster.read_ok(&mut backend, block));
    backend.publish_counts();
    let before = cluster.pool.total();
    cluster.probe.record();
    let options = StreamOptions { combine: line.combine, full: true, ..StreamOptions::default() };
    let mut stream = cluster.stream(&backend, line.wanted, options);
    let seen = cluster.drain(&mut backend, &mut stream);
    let wanted: Vec<_> = line.wanted.iter().map(|&block| Ok(block)).collect();
    assert_eq!(seen, wanted);
    assert_eq!(cluster.reads(), line.reads, "{:?} of {:?}", line.wanted, line.present);
    let stats = stream.stats();
    let blocks: u32 = line.reads.iter().map(|read| read.1).sum();
    assert_eq!((stats.ios, stats.io_blocks), (line.reads.len() as u64, u64::from(blocks)));
    assert_eq!(stats.pages, line.wanted.len() as u64);
    drop(stream);
    let total = cluster.pool.total();
    assert_eq!(total.reads - before.reads, line.reads.len() as u64);
    assert_eq!(total.read_blocks - before.read_blocks, u64::from(blocks));
    assert_eq!(total.hits - before.hits, line.wanted.len() as u64 - u64::from(blocks));
}

#[test]
fn pg_30_hits_and_limits_split_reads() {
    check(Needs::one_session(), |cluster| LINES.iter().for_each(|line| read_line(cluster, line)));
}

/// Ring buffers must not change how reads are split.
#[test]
fn pg_30_a_ring_buffer_does_not_change_the_splits() {
    use trunkline_engine::pool::Strategy;
    check(Needs { buffers: 128, ..Needs::one_session() }, |cluster| {
        for strategy in [Strategy::BulkRead, Strategy::Vacuum] {
            cluster.pool.evict_all();
            let mut backend = cluster.backend();
            cluster.read_ok(&mut backend, 2);
            cluster.probe.record();
            let options = StreamOptions { full: true, strategy, ..StreamOptions::default() };
            let mut stream = cluster.stream(&backend, &[0, 1, 2, 3, 4, 5], options);
            assert_eq!(cluster.drain(&mut backend, &mut stream).len(), 6);
            assert_eq!(cluster.reads(), [(0, 2), (3, 3)]);
        }
    });
}

/// If one of the blocks is already being read by the same session, the read is split at that block.
/// We test this for the first, the middle and the last block.
#[test]
fn pg_31_a_read_in_flight_of_the_same_session_splits_a_read() {
    type Case = (BlockNo, &'static [(BlockNo, u32)]);
    const CASES: [Case; 3] =
        [(4, &[(4, 1), (5, 2)]), (5, &[(5, 1), (4, 1), (6, 1)]), (6, &[(6, 1), (4, 2)])];
    check(Needs::one_session(), |cluster| {
        for (under_way, reads) in CASES {
            cluster.pool.evict_all();
            cluster.probe.record();
            let mut backend = cluster.backend();
            let mut first = cluster.start_read(&mut backend, &[under_way]);
            let options = StreamOptions { full: true, ..StreamOptions::default() };
            let mut second = cluster.stream(&backend, &[4, 5, 6], options);
            assert_eq!(cluster.drain(&mut backend, &mut second), [Ok(4), Ok(5), Ok(6)]);
            assert_eq!(cluster.reads(), reads, "block {under_way} in flight");
            first.release_ahead();
            assert_eq!(backend.pins(), 0);
        }
    });
}

/// If another session is already reading one of the blocks, our read is split at that block. If the
/// other session's read fails, we read that block again by itself. If it succeeds, the block counts
/// as a hit. In both cases the blocks after it are read separately.
#[test]
fn pg_32_another_sessions_read_splits_a_read() {
    check(Needs::default(), |cluster| {
        for fails in [false, true] {
            cluster.pool.evict_all();
            cluster.probe.record();
            let held = cluster.hold(5);
            let other = cluster.spawn("other", |cluster| {
                cluster.backend().read(&cluster.relation(0), 5).map(drop).is_err()
            });
            held.wait();
            let reader = cluster.spawn("reader", |cluster| {
                let mut backend = cluster.backend();
                let options = StreamOptions { full: true, ..StreamOptions::default() };
                let mut stream = cluster.stream(&backend, &[4, 5, 6, 7], options);
                let seen = cluster.drain(&mut backend, &mut stream);
                assert_eq!(seen, [Ok(4), Ok(5), Ok(6), Ok(7)]);
                backend.session_id()
            });
            // One pin each of the other session, its I/O, and the reader.
            cluster.wait_pins(5, 3);
            if fails {
                let mut times = 0;
                cluster.probe.change_results(move |io, raw| {
                    times += u32::from(io.offset == 5 * 8192);
                    if io.offset == 5 * 8192 && times == 1 { -5 } else { raw }
                });
            }
            held.release();
            assert_eq!(other.join(), fails);
            let mut reads = cluster.reads_of(reader.join());
            reads.sort_unstable();
            match fails {
                // Nothing was read ahead, so the rest is one read.
                true if !cluster.is_asynchronous() => assert_eq!(reads, [(4, 1), (5, 3)]),
                true => assert_eq!(reads, [(4, 1), (5, 1), (6, 2)]),
                false => assert_eq!(reads, [(4, 1), (6, 2)]),
            }
            cluster.probe.keep_results();
        }
    });
}

/// Another session's read is joined through its wait reference. It counts as a hit, a join and a
/// wait.
#[test]
fn pg_33_another_sessions_read_is_joined() {
    check(Needs::default(), |cluster| {
        let held = cluster.hold(2);
        let other = cluster.spawn("other", |cluster| cluster.read_ok(&mut cluster.backend(), 2));
        held.wait();
        let mut backend = cluster.async_backend();
        let mut stream = cluster.start_read(&mut backend, &[2]);
        let row = cluster.pool.rows().into_iter().find(|row| row.block == 2).expect("a buffer");
        assert!(!row.valid && row.pins == 3 && row.io.is_some(), "{row:?}");
        held.release();
        other.join();
        assert_eq!(cluster.drain(&mut backend, &mut stream), [Ok(2)]);
        drop((stream, backend));
        let total = cluster.pool.total();
        assert_eq!((total.reads, total.hits, total.joins), (1, 1, 1));
    });
}
