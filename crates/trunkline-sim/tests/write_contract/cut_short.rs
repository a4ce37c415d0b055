//! Writers that stop before they have written everything: a write stream whose session is
//! cancelled, and an eviction that gets a free buffer before it has written all its victims.
//!
//! No page may be lost, or stay claimed or locked. Pages that weren't written must stay dirty.

use trunkline_aio::facade::Arc;
use trunkline_aio::{MethodKind, Operation};
use trunkline_engine::pool::{Backend, WriteError};
use trunkline_engine::write_stream::{WriteOptions, WriteStats, WriteStream};
use trunkline_sim::PausePoint;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, TestThread};

/// Whether we can cancel a session while its write is held back. If the session executes the write
/// itself, we can't.
fn is_cancellable(cluster: &Cluster) -> bool {
    cluster.is_asynchronous() && !cluster.environment.writes_inline()
}

/// Adds the pages of relation 0 to a write stream.
fn gather(
    cluster: &Cluster,
    stream: &mut WriteStream,
    backend: &mut Backend,
) -> Result<(), WriteError> {
    let relation = cluster.relation(0);
    let mut rows = cluster.pool.rows();
    rows.retain(|row| row.relation == relation.locator());
    rows.sort_unstable_by_key(|row| row.block);
    rows.iter().try_for_each(|row| stream.write(backend, &relation, row.block, row.bufferid - 1))
}

/// Adds the pages to a write stream and waits for them.
fn write_all(
    cluster: &Cluster,
    stream: &mut WriteStream,
    backend: &mut Backend,
) -> Result<WriteStats, WriteError> {
    gather(cluster, stream, backend)?;
    stream.finish(backend)
}

/// Asserts that every page is either dirty or on disk, and that only pages under I/O are locked.
fn assert_nothing_lost(cluster: &Cluster, blocks: u32, version: u32) {
    let mut backend = cluster.backend();
    for block in 0..blocks {
        let under_io = cluster.is_under_io(block);
        let safe = cluster.is_dirty(0, block) || cluster.is_on_disk(block, version);
        assert!(safe, "block {block} is neither dirty nor on disk");
        let pin = backend.read(&cluster.relation(0), block).expect("a hit");
        let free = pin.page().try_write().is_some();
        assert!(free || under_io, "block {block} is locked");
    }
}

/// Writes that are in flight must continue even though the stream has been cancelled. Pages that
/// the stream has collected but not submitted must be unlocked.
#[test]
fn a_stream_cancelled_while_it_collects_pages_loses_nothing() {
    check(Needs { blocks: 32, seeds: 3, ..Needs::writable() }, |cluster| {
        for (must, version) in [(false, 1), (true, 2)] {
            let mut backend = cluster.backend();
            (0..32).for_each(|block| cluster.change(&mut backend, block, version));
            let held = cluster.hold_write(3);
            let canceller = backend.session().canceller();
            let task = cluster.spawn("stream", move |cluster| {
                let options =
                    WriteOptions { concurrency: 2, combine: 2, must, ..WriteOptions::default() };
                let mut stream = WriteStream::new(&backend, options);
                write_all(cluster, &mut stream, &mut backend).map(drop)
            });
            held.wait();
            canceller.cancel();
            if is_cancellable(cluster) {
                cluster.wait_until("cancelled", || task.is_done());
                let under_io = (0..32).filter(|&block| cluster.is_under_io(block)).count();
                assert!((1..=4).contains(&under_io), "{under_io} pages in flight");
                assert_nothing_lost(cluster, 32, version);
                // Other sessions can change pages that aren't being written.
                cluster.change(&mut cluster.backend(), 20, version);
            }
            held.release();
            let ended = task.join();
            assert!(ended.is_err() || !is_cancellable(cluster), "{ended:?}");
            cluster.settle();
            assert!((0..32).all(|block| !cluster.is_under_io(block)));
            assert_nothing_lost(cluster, 32, version);
            assert!((0..32).any(|block| cluster.is_dirty(0, block)) || !is_cancellable(cluster));
            cluster.checkpoint(&mut cluster.backend()).expect("writes the rest");
            assert!((0..32).all(|block| cluster.is_on_disk(block, version)));
        }
    });
}

/// Starts a thread that writes all pages until its session is cancelled. The thread then releases
/// the first of the two pause points returned, waits at the second one, and writes the remaining
/// pages after that.
fn write_until_cancelled(
    cluster: &Arc<Cluster>,
    mut backend: Backend,
) -> (TestThread<WriteStats>, PausePoint, PausePoint) {
    let (cancelled, again) = (PausePoint::new(), PausePoint::new());
    let (reached, gate) = (cancelled.clone(), again.clone());
    let writer = cluster.spawn("stream", move |cluster| {
        let options = WriteOptions { must: true, ..WriteOptions::default() };
        let mut stream = WriteStream::new(&backend, options);
        let ended = write_all(cluster, &mut stream, &mut backend);
        assert!(matches!(ended, Err(WriteError::Cancelled)), "{ended:?}");
        reached.release();
        gate.wait();
        backend.session().clear_cancel();
        stream.finish(&mut backend).expect("written")
    });
    (writer, cancelled, again)
}

/// A stream is cancelled while it waits for sessions that are changing some of its pages. When the
/// stream continues later, it must not skip these pages.
#[test]
fn a_cancelled_stream_continues_where_it_stopped() {
    check(Needs { blocks: 8, seeds: 4, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        (0..8).for_each(|block| cluster.change(&mut backend, block, 1));
        let (locked, let_go) = (PausePoint::new(), PausePoint::new());
        let (reached, gate) = (locked.clone(), let_go.clone());
        let holder = cluster.spawn("holder", move |cluster| {
            let mut backend = cluster.backend();
            let relation = cluster.relation(0);
            let pins = [2, 3, 6].map(|block| backend.read(&relation, block).expect("reads"));
            let pages = [&pins[0], &pins[1], &pins[2]]
                .map(|pin| backend.write_lock(pin.page()).expect("locks"));
            reached.release();
            gate.wait();
            drop(pages);
        });
        locked.wait();
        let canceller = backend.session().canceller();
        let (writer, cancelled, again) = write_until_cancelled(cluster, backend);
        cluster.wait_until("the other pages are written", || {
            [0, 1, 4, 5, 7].into_iter().all(|block| cluster.is_on_disk(block, 1))
        });
        cluster.let_others_run();
        assert!(!cancelled.is_released(), "the stream waits");
        canceller.cancel();
        cancelled.wait();
        assert!([2, 3, 6].into_iter().all(|block| cluster.is_dirty(0, block)));
        let_go.release();
        holder.join();
        again.release();
        let stats = writer.join();
        assert_eq!((stats.blocks, stats.copies), (8, 0), "{stats:?}");
        assert!((0..8).all(|block| cluster.is_on_disk(block, 1)));
    });
}

/// A reader has locked a page, so the stream writes a copy of that page. The stream is cancelled
/// before this write completes. When it continues, it must wait for the write before it reports the
/// page as written.
#[test]
fn a_stream_cancelled_while_it_writes_a_copy_waits_for_it_later() {
    check(Needs { blocks: 8, seeds: 4, ..Needs::writable() }, |cluster| {
        if !is_cancellable(cluster) {
            return;
        }
        let mut backend = cluster.backend();
        (0..8).for_each(|block| cluster.change(&mut backend, block, 1));
        let mut reader = cluster.backend();
        let relation = cluster.relation(0);
        let pins = [2, 5].map(|block| reader.read(&relation, block).expect("reads"));
        // The read locks keep the writer from getting an exclusive lock.
        let pages = [&pins[0], &pins[1]].map(|pin| reader.read_lock(pin.page()).expect("locks"));
        let held = cluster.hold_write(2);
        let canceller = backend.session().canceller();
        let (writer, cancelled, again) = write_until_cancelled(cluster, backend);
        held.wait();
        canceller.cancel();
        cancelled.wait();
        assert!(cluster.is_dirty(0, 5), "the stream has not reached this page");
        again.release();
        cluster.let_others_run();
        assert!(!writer.is_done(), "the copy is still being written");
        held.release();
        let stats = writer.join();
        assert_eq!((stats.blocks, stats.copies), (8, 2), "{stats:?}");
        drop(pages);
        assert!((0..8).all(|block| cluster.is_on_disk(block, 1)));
    });
}

/// An eviction stages writes for several victims, but has a free buffer as soon as the first write
/// completes. In that case, the remaining writes must not be submitted, and their victims must be
/// left unchanged.
#[test]
fn eviction_writes_as_few_pages_as_possible() {
    check(Needs { buffers: 16, blocks: 64, seeds: 4, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        let dirty: Vec<u32> = (0..16).map(|at| at * 2).collect();
        for (turn, version) in [(0, 1), (1, 2), (2, 3)] {
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            dirty.iter().for_each(|&block| cluster.change(&mut backend, block, version));
            let dirty_now = |block: &&u32| cluster.is_dirty(0, **block);
            if dirty.iter().filter(dirty_now).count() < 16 {
                // A clean page was still in the pool and occupied a buffer.
                cluster.pool.evict_all();
                dirty.iter().for_each(|&block| cluster.change(&mut backend, block, version));
            }
            assert_eq!(dirty.iter().filter(dirty_now).count(), 16, "the pool has no other page");
            cluster.probe.record();
            cluster.assert_reads(&mut backend, 33 + 2 * turn, 0);
            let recorded = cluster.probe.recorded();
            let writes = recorded.iter().filter(|io| io.operation == Operation::Writev).count();
            // Inline writes complete one at a time.
            let inline = cluster.environment.writes_inline()
                && cluster.environment.method != MethodKind::Sync;
            match inline {
                true => {
                    assert_eq!(writes, 1, "the first write is complete before the second begins")
                }
                false => assert!((1..=8).contains(&writes), "{writes} together"),
            }
            cluster.settle();
            let rows = cluster.pool.rows();
            assert!(rows.iter().all(|row| row.io.is_none() && row.pins == 0), "{rows:?}");
            let left = dirty.iter().filter(dirty_now).count();
            assert_eq!(left, 16 - writes, "pages that were not written stay dirty");
            for &block in dirty.iter().filter(dirty_now) {
                let pin = backend.read(&cluster.relation(0), block).expect("a hit");
                assert!(pin.page().try_write().is_some(), "block {block} is locked");
            }
        }
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert!(dirty.iter().all(|&block| cluster.is_on_disk(block, 3)));
    });
}

/// An eviction writes several victims, and one of the writes hangs. The session must use a buffer
/// whose write has completed. No page other than the one in the hanging write may stay locked.
#[test]
fn a_write_that_hangs_blocks_only_its_own_page() {
    check_simulated(Needs { buffers: 16, blocks: 64, seeds: 6, ..Needs::writable() }, |cluster| {
        if !is_cancellable(cluster) || cluster.environment.method == MethodKind::Custom {
            return;
        }
        let mut backend = cluster.backend();
        let dirty: Vec<u32> = (0..16).map(|at| at * 2).collect();
        dirty.iter().for_each(|&block| cluster.change(&mut backend, block, 1));
        let held = cluster.hold_write(4);
        let reader =
            cluster.spawn("reader", |cluster| cluster.assert_reads(&mut cluster.backend(), 41, 0));
        cluster.wait_until("a free buffer", || reader.is_done());
        cluster.wait_until("one is left", || cluster.aio.handles_in_use() == 1);
        let rows = cluster.pool.rows();
        let claimed: Vec<u32> =
            rows.iter().filter(|row| row.io.is_some()).map(|row| row.block).collect();
        assert_eq!(claimed, [4]);
        for row in rows.iter().filter(|row| row.dirty && row.block != 4) {
            let pin = backend.read(&cluster.relation(0), row.block).expect("a hit");
            assert!(pin.page().try_write().is_some(), "block {} is locked", row.block);
        }
        held.release();
        reader.join();
    });
}
