//! Small pools where all buffers are dirty and sessions keep changing pages. Every session must
//! make progress and be able to use all its guaranteed pins, and no change may be lost.

use trunkline_aio::Operation;
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::PINS_GUARANTEED;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, Pools, TestThread};

use crate::starved::{Starved, needs};

const SESSIONS: u32 = 8;
const BLOCKS: u32 = 48;

/// Changes the blocks of one session over and over. In every other step, the session also pins as
/// many other pages as its guarantee allows.
fn work(cluster: &Arc<Cluster>, session: u32, steps: u32) {
    let mut backend = cluster.backend();
    let relation = cluster.relation(0);
    for step in 0..steps {
        let own = session + SESSIONS * (step % (BLOCKS / SESSIONS));
        let pin = backend.read(&relation, own).unwrap_or_else(|error| panic!("{error}"));
        let others: Vec<_> = (1..PINS_GUARANTEED * (step % 2))
            .map(|other| {
                let block = (own + other * 7) % BLOCKS;
                backend.read(&relation, block).unwrap_or_else(|error| panic!("{error}"))
            })
            .collect();
        cluster.change_pinned(&mut backend, 0, &pin, step + 1);
        drop((others, pin));
    }
}

/// The block's version after `work`.
fn last_version(block: u32, steps: u32) -> u32 {
    let (turn, turns) = (block / SESSIONS, BLOCKS / SESSIONS);
    (0..steps).rev().find(|step| step % turns == turn).map_or(0, |step| step + 1)
}

/// Runs the sessions, and checks that every page's last version is on disk.
fn run(cluster: &Arc<Cluster>, sessions: u32) {
    let steps = if cluster.is_simulated() { 12 } else { 120 };
    if cluster.environment.local_pool {
        (0..SESSIONS).for_each(|session| work(cluster, session, steps));
    } else {
        let work = |session| cluster.spawn("session", move |cluster| work(cluster, session, steps));
        let tasks: Vec<_> = (0..sessions).map(work).collect();
        tasks.into_iter().for_each(TestThread::join);
    }
    assert!(cluster.pool.permits() <= cluster.pool.buffers());
    cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint");
    for block in 0..BLOCKS {
        assert!(cluster.is_on_disk(block, last_version(block, steps)), "block {block}");
    }
}

/// The smallest pool, in which every read must flush a victim first.
#[test]
fn sessions_make_progress_with_sixteen_dirty_buffers() {
    let needs =
        Needs { buffers: 16, blocks: BLOCKS, pools: Pools::Both, seeds: 2, ..Needs::writable() };
    check(needs, |cluster| run(cluster, SESSIONS));
}

/// With only 8 handles, sessions also have to wait for handles.
#[test]
fn sessions_make_progress_with_few_handles() {
    let needs = Needs {
        buffers: 32,
        blocks: BLOCKS,
        pools: Pools::Both,
        seeds: 2,
        handles: 8,
        ..Needs::writable()
    };
    check(needs, |cluster| run(cluster, SESSIONS));
}

/// As before, but with continuous checkpoints and the background writer.
#[test]
fn sessions_make_progress_beside_checkpoints_and_the_background_writer() {
    use trunkline_engine::checkpoint::{BackgroundWriter, BackgroundWriterSettings};
    let needs = Needs { buffers: 16, blocks: BLOCKS, seeds: 2, ..Needs::writable() };
    check(needs, |cluster| {
        let settings = BackgroundWriterSettings {
            delay: std::time::Duration::from_millis(1),
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
        let worker = cluster.spawn("all", |cluster| run(cluster, SESSIONS));
        let mut backend = cluster.backend();
        while !worker.is_done() {
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            cluster.let_others_run();
        }
        worker.join();
        drop(writer);
    });
}

/// All handles are in use by writes to a mount that hangs. A session that needs a buffer must not
/// wait only for these writes. If another session unpins a clean page, the waiting session must be
/// woken and use that buffer.
#[test]
fn a_session_uses_a_freed_buffer_while_no_handle_is_free() {
    check_simulated(needs(6), |cluster| {
        let Some(Starved { clean, held, checkpoint }) = Starved::new(cluster) else { return };
        let reader =
            cluster.spawn("reader", |cluster| cluster.assert_reads(&mut cluster.backend(), 20, 0));
        cluster.let_others_run();
        assert!(!reader.is_done(), "no buffer is free");
        drop(clean);
        cluster.wait_until("a page that is read", || reader.is_done());
        assert!(!checkpoint.is_done());
        drop(held);
        reader.join();
        checkpoint.join();
    });
}

/// There is only one clean page, and it has the highest usage count. It must still be the one that
/// is evicted, because that doesn't require a write. PostgreSQL would evict a dirty page with a
/// lower usage count instead.
#[test]
fn a_clean_page_is_evicted_before_a_dirty_one() {
    let needs =
        Needs { buffers: 16, blocks: 64, pools: Pools::Both, seeds: 3, ..Needs::writable() };
    check(needs, |cluster| {
        let mut backend = cluster.backend();
        (1..16).for_each(|block| cluster.change(&mut backend, block, 1));
        (0..6).for_each(|_| cluster.assert_reads(&mut backend, 0, 0));
        cluster.probe.record();
        for block in 20..40 {
            cluster.assert_reads(&mut backend, block, 0);
        }
        let written = cluster.probe.recorded();
        let written = written.iter().filter(|io| io.operation == Operation::Writev).count();
        assert_eq!(written, 0);
        assert!((1..16).all(|block| cluster.is_dirty(0, block)));
    });
}

/// Writes are counted for the page's relation, and the evictions' writeback is counted as well.
#[test]
fn writes_and_writebacks_are_counted() {
    let needs = Needs { buffers: 64, blocks: 256, seeds: 2, ..Needs::writable() };
    check(needs, |cluster| {
        cluster.create(1, 64);
        let mut backend = cluster.backend();
        backend.set_flush_after(4);
        (0..64).for_each(|block| cluster.change_in(&mut backend, 1, block, 1));
        (0..256).for_each(|block| cluster.change(&mut backend, block, 1));
        cluster.settle();
        drop(backend);
        let before = cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint").buffers;
        let mut written = [0; 2];
        let mut writebacks = 0;
        for (key, tally) in cluster.pool.counts() {
            assert_eq!(tally.writes > 0, tally.written_blocks > 0, "{key:?}");
            let number = key.relation.relfilenode - cluster.relation(0).locator().relfilenode;
            written[number as usize] += tally.written_blocks;
            writebacks += tally.writebacks;
        }
        assert_eq!(written, [256, 64], "{before} by the checkpoint");
        // There are only a few, because adjacent ranges share one writeback.
        assert!(writebacks >= 2, "{writebacks}");
    });
}
