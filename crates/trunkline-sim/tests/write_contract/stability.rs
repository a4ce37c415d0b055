//! A page must not change while it is being written, but other sessions must still be able to read
//! it. Also, when a writer has to wait for a page, it must not keep other pages locked in the
//! meantime.
//!
//! Up to version 18, PostgreSQL holds only a share lock while it writes a page. Other backends can
//! set hint bits under that lock, so if checksums are enabled, the page must be copied before each
//! write. We don't need that copy, because we hold the share-exclusive lock during the write.

use trunkline_aio::facade::Arc;
use trunkline_format::PageBytes;
use trunkline_sim::PausePoint;
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs, TestThread, is_version};

/// Starts a checkpoint on another thread.
fn start_checkpoint(cluster: &Arc<Cluster>) -> TestThread<()> {
    cluster.spawn("checkpoint", |cluster| {
        cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint");
    })
}

/// While a write is held back, share locks must be granted, but exclusive and share-exclusive locks
/// must not.
#[test]
fn readers_continue_and_writers_wait_during_a_write() {
    check(Needs::writable(), |cluster| {
        let mut backend = cluster.backend();
        (0..8).for_each(|block| cluster.change(&mut backend, block, 1));
        let held = cluster.hold_write(3);
        let checkpoint = start_checkpoint(cluster);
        held.wait();
        let pin = backend.read(&cluster.relation(0), 3).expect("a hit");
        {
            let page = backend.read_lock(pin.page()).expect("readers continue");
            assert!(is_version(&*page, 0, 3, 1));
            assert!(pin.page().try_read().is_some(), "several readers");
        }
        assert!(pin.page().try_write().is_none(), "it does not change");
        assert!(pin.page().try_read_stable().is_none(), "the write holds the share-exclusive lock");
        let writer =
            cluster.spawn("writer", |cluster| cluster.change(&mut cluster.backend(), 3, 2));
        cluster.let_others_run();
        assert!(!writer.is_done() && pin.page().try_read().is_some());
        held.release();
        writer.join();
        checkpoint.join();
        assert!(cluster.is_on_disk(3, 1), "the version at the start of the write");
        assert!(cluster.is_dirty(0, 3), "it must be written again");
        cluster.assert_reads(&mut backend, 3, 2);
    });
}

/// A write pins its page, so a cleanup lock must wait until the write completes and drops that pin.
#[test]
fn a_cleanup_lock_waits_for_the_pin_of_the_write() {
    check(Needs::writable(), |cluster| {
        cluster.change(&mut cluster.backend(), 3, 1);
        let held = cluster.hold_write(3);
        let checkpoint = start_checkpoint(cluster);
        held.wait();
        let cleaner = cluster.spawn("cleaner", |cluster| {
            let mut backend = cluster.backend();
            let pin = backend.read(&cluster.relation(0), 3).expect("a hit");
            assert!(backend.cleanup_lock(pin.page()).is_ok());
        });
        cluster.let_others_run();
        assert!(!cleaner.is_done());
        held.release();
        cleaner.join();
        checkpoint.join();
        assert!(cluster.is_on_disk(3, 1));
    });
}

/// Every session changes every page while checkpoints run. The write checker verifies the checksum
/// of every page that reaches the disk.
#[test]
fn pages_that_change_continuously_are_written_whole() {
    check(Needs { blocks: 24, seeds: 8, ..Needs::writable() }, |cluster| {
        let tasks: Vec<_> = (0..4)
            .map(|session| {
                cluster.spawn("session", move |cluster| {
                    let mut backend = cluster.backend();
                    for step in 0..60 {
                        // Every session changes every page and reads the next one.
                        cluster.change_in(&mut backend, 0, (step * 5 + session) % 24, step);
                        let pin =
                            backend.read(&cluster.relation(0), (step + 1) % 24).expect("reads");
                        let page = backend.read_lock(pin.page()).expect("locks");
                        assert!((0..60).any(|version| is_version(
                            &*page,
                            0,
                            (step + 1) % 24,
                            version
                        )));
                    }
                })
            })
            .collect();
        let mut backend = cluster.backend();
        while tasks.iter().any(|task| !task.is_done()) {
            cluster.checkpoint(&mut backend).expect("a checkpoint");
        }
        tasks.into_iter().for_each(TestThread::join);
        // On real files the sessions may all end before this thread has run a single checkpoint.
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert!(cluster.writes.pages_checked() > 0);
    });
}

/// Flips a hint bit in the infomask of the tuple that starts at `pd_upper` (bytes 14 and 15 of the
/// page header). The pages here have only one tuple.
fn change_hint(bytes: &mut PageBytes) {
    let row = usize::from(u16::from_le_bytes([bytes[14], bytes[15]]));
    bytes[row + 21] ^= 1;
}

/// To set a hint bit, a session must upgrade its share lock to an exclusive lock, which it can do
/// only if there are no other readers. The attempt must fail if another session is reading the
/// page, or if the page is being written.
#[test]
fn hint_bits_are_set_only_without_other_readers_and_writes() {
    check(Needs::writable(), |cluster| {
        let mut backend = cluster.backend();
        let pin = backend.read(&cluster.relation(0), 3).expect("reads");
        let mut page = pin.page().try_read().expect("locks");
        assert!(page.try_set_hints(change_hint), "the only reader");
        let other = pin.page().try_read().expect("a reader again");
        let before = *page;
        assert!(!page.try_set_hints(change_hint), "another reader has the page locked");
        assert_eq!(*page, before);
        drop(other);
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            page.try_set_hints(|_| panic!("on purpose"));
        }));
        assert!(refused.is_err() && pin.page().try_read().is_some(), "the share lock is back");
        drop(page);
        assert!(cluster.is_dirty(0, 3));
        let held = cluster.hold_write(3);
        let checkpoint = start_checkpoint(cluster);
        held.wait();
        let mut page = pin.page().try_read().expect("readers continue");
        let mut stable = before;
        stable[8..10].copy_from_slice(&page[8..10]);
        assert!(!page.try_set_hints(change_hint), "the page is being written");
        assert_eq!(*page, stable, "only its checksum is new");
        drop(page);
        held.release();
        checkpoint.join();
        assert!(!cluster.is_dirty(0, 3), "a hint that was refused makes nothing dirty");
        let mut page = pin.page().try_read().expect("locks");
        assert!(page.try_set_hints(change_hint), "the write is complete");
        drop(page);
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert!(cluster.is_on_disk(3, 0), "the hint bit is restored");
    });
}

/// Some sessions set hint bits, others change pages, and checkpoints write the pages at the same
/// time. The write checker verifies all checksums on disk. With direct I/O, if a hint bit were set
/// during a write, the checksum on disk would be wrong.
#[test]
fn pages_with_changing_hint_bits_are_written_whole() {
    for direct in [false, true] {
        check(Needs { blocks: 12, seeds: 8, direct, ..Needs::writable() }, |cluster| {
            let tasks: Vec<_> = (0..4)
                .map(|session| {
                    cluster.spawn("session", move |cluster| {
                        let (mut backend, mut set) = (cluster.backend(), 0);
                        for step in 0..80 {
                            let block = (step * 5 + session) % 12;
                            if step % 8 == 0 {
                                cluster.change_in(&mut backend, 0, block, step);
                            }
                            let pin = backend.read(&cluster.relation(0), block).expect("reads");
                            let mut page = backend.read_lock(pin.page()).expect("locks");
                            set += u32::from(page.try_set_hints(change_hint));
                        }
                        set
                    })
                })
                .collect();
            let mut backend = cluster.backend();
            loop {
                let over = tasks.iter().all(TestThread::is_done);
                cluster.checkpoint(&mut backend).expect("a checkpoint");
                if over {
                    break;
                }
            }
            let set: u32 = tasks.into_iter().map(TestThread::join).sum();
            assert!(set > 0 && cluster.writes.pages_checked() > 0);
        });
    }
}

/// A writer has claimed page A and is waiting for page D, while the session that has locked D is
/// waiting for A. This must not end in a deadlock. Nothing prevents the write of A from completing,
/// so the writer must submit A before it waits for D.
#[test]
fn a_writer_submits_its_pages_before_it_waits_for_a_lock() {
    check(Needs { seeds: 20, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        (0..8).for_each(|block| cluster.change(&mut backend, block, 1));
        let (has_d, go) = (PausePoint::new(), PausePoint::new());
        let (theirs, then) = (has_d.clone(), go.clone());
        let holder = cluster.spawn("holder", move |cluster| {
            let mut backend = cluster.backend();
            let a = backend.read(&cluster.relation(0), 0).expect("a hit");
            let d = backend.read(&cluster.relation(0), 3).expect("a hit");
            let held = backend.write_lock(d.page()).expect("locks");
            theirs.release();
            then.wait();
            drop(backend.write_lock(a.page()).expect("locks"));
            drop(held);
        });
        cluster.wait_until("D is held", || has_d.is_released());
        let held = cluster.hold_write(0);
        let checkpoint = start_checkpoint(cluster);
        cluster.wait_until("A is being written", || cluster.is_under_io(0));
        go.release();
        cluster.let_others_run();
        held.release();
        holder.join();
        checkpoint.join();
        assert!((0..8).all(|block| cluster.is_on_disk(block, 1)));
    });
}

/// A reader may keep its share lock on a page for a long time. Rather than wait for that reader, a
/// checkpoint must write a copy of the page.
#[test]
fn a_page_that_stays_locked_by_a_reader_is_written() {
    check(Needs::writable(), |cluster| {
        let mut backend = cluster.backend();
        (0..4).for_each(|block| cluster.change(&mut backend, block, 1));
        let pin = backend.read(&cluster.relation(0), 2).expect("a hit");
        let page = pin.page().try_read().expect("locks");
        let report = cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint");
        assert_eq!(report.buffers, 4);
        assert!((0..4).all(|block| cluster.is_on_disk(block, 1)));
        drop(page);
    });
}
