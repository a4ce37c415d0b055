//! Relation extension. Two sessions must never get the same block, and an extension must be able to
//! continue into the next segment. If the file system runs out of space, the blocks must be
//! released.

use std::fs;
use std::os::unix::fs::FileExt;
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::{Backend, ExtendMethod, WriteError};
use trunkline_engine::storage::StorageError;
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};
use trunkline_sim::PausePoint;
use trunkline_sim::matrix::cluster::{check, check_real, check_simulated};
use trunkline_sim::matrix::{Cluster, FileCall, Needs, Pools, TestThread, is_sound, is_version};

const METHODS: [ExtendMethod; 2] = [ExtendMethod::PosixFallocate, ExtendMethod::WriteZeros];

/// Extends a relation, checks that each new page is all zeros, and writes a version into it.
/// Returns the new blocks.
fn extend(
    cluster: &Cluster,
    backend: &mut Backend,
    number: u32,
    count: u32,
    method: ExtendMethod,
) -> Vec<u32> {
    let pins = backend.extend(&cluster.relation(number), count, method).expect("room");
    for pin in &pins {
        let page = backend.read_lock(pin.page()).expect("locks");
        assert!(page.iter().all(|&byte| byte == 0), "a new page is zeros");
    }
    pins.iter().for_each(|pin| cluster.change_pinned(backend, number, pin, 3));
    pins.iter().map(|pin| pin.page().block()).collect()
}

/// Several sessions extend the same relation concurrently, using both methods. Together they must
/// get every block exactly once, without gaps.
#[test]
fn two_sessions_never_get_the_same_block() {
    check(Needs { buffers: 64, seeds: 3, ..Needs::writable() }, |cluster| {
        let tasks: Vec<_> = (0..6_u32)
            .map(|session| {
                cluster.spawn("session", move |cluster| {
                    let mut backend = cluster.backend();
                    let mut blocks = Vec::new();
                    for step in 0..6 {
                        let method = METHODS[(session + step) as usize % 2];
                        let count = 1 + (session * 5 + step * 3) % 14;
                        blocks.extend(extend(cluster, &mut backend, 0, count, method));
                    }
                    blocks
                })
            })
            .collect();
        let mut blocks: Vec<u32> = tasks.into_iter().flat_map(TestThread::join).collect();
        blocks.sort_unstable();
        let end = 32 + blocks.len() as u32;
        assert_eq!(blocks, (32..end).collect::<Vec<_>>());
        cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint");
        assert_eq!(cluster.relation(0).blocks().expect("a length"), end);
        assert!((32..end).all(|block| cluster.is_on_disk(block, 3)));
    });
}

/// A segment has at most 131,072 blocks (1 GiB). To get close to that limit, we create a sparse
/// file, and then extend the relation into the next segment.
#[test]
fn an_extension_crosses_the_end_of_a_segment() {
    for direct in [false, true] {
        check_real(Needs { direct, pools: Pools::Both, ..Needs::writable() }, |cluster| {
            for (method, number) in METHODS.into_iter().zip(3..) {
                let relation = cluster.relation(number);
                cluster.create(number, 1);
                let file = fs::OpenOptions::new().write(true).open(relation.path(0));
                let length = u64::from(SEGMENT_BLOCKS - 12) * BLOCK_SIZE as u64;
                file.and_then(|file| file.set_len(length)).expect("made longer");
                let mut backend = cluster.backend();
                let mut blocks = Vec::new();
                while blocks.len() < 40 {
                    blocks.extend(extend(cluster, &mut backend, number, 16, method));
                }
                let first = SEGMENT_BLOCKS - 12;
                assert_eq!(blocks, (first..first + blocks.len() as u32).collect::<Vec<_>>());
                cluster.checkpoint(&mut backend).expect("a checkpoint");
                for &block in &blocks {
                    let segment =
                        fs::File::open(relation.path(block / SEGMENT_BLOCKS)).expect("there");
                    let mut found = [0; BLOCK_SIZE];
                    let at = u64::from(block % SEGMENT_BLOCKS) * BLOCK_SIZE as u64;
                    segment.read_exact_at(&mut found, at).expect("reads");
                    assert!(is_sound(&found, block) && is_version(&found, number, block, 3));
                }
                let end = first + blocks.len() as u32;
                assert_eq!(relation.blocks().expect("a length"), end);
                // Truncate to just below the boundary, and then cross it again.
                backend.truncate(&relation, SEGMENT_BLOCKS - 2).expect("cut off");
                assert_eq!(relation.blocks().expect("a length"), SEGMENT_BLOCKS - 2);
                let again = extend(cluster, &mut backend, number, 12, method);
                assert_eq!(again[..2], [SEGMENT_BLOCKS - 2, SEGMENT_BLOCKS - 1]);
                let again = extend(cluster, &mut backend, number, 12, method);
                assert!(again.contains(&(SEGMENT_BLOCKS + 1)));
                cluster.checkpoint(&mut backend).expect("a checkpoint");
                backend.drop_relation(&relation).expect("dropped");
                assert!(!relation.path(0).exists() && !relation.path(1).exists());
            }
        });
    }
}

/// If an extension fails because there is no space left, it must not leave any pages in the pool.
/// The next extension must get the same blocks.
#[test]
fn an_extension_without_room_gives_its_blocks_back() {
    check_simulated(Needs { pools: Pools::Both, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        for (method, count) in [
            (ExtendMethod::WriteZeros, 6),
            (ExtendMethod::WriteZeros, 20),
            (ExtendMethod::PosixFallocate, 6),
            (ExtendMethod::PosixFallocate, 20),
        ] {
            let before = cluster.relation(0).blocks().expect("a length");
            for room in [0, 1, BLOCK_SIZE, 2 * BLOCK_SIZE + 700] {
                cluster.disk.limit_space(Some(cluster.disk.used() + room as u64));
                let error = backend.extend(&cluster.relation(0), count, method).map(drop);
                let error = error.expect_err("no room");
                let (WriteError::Io { source, .. }
                | WriteError::Storage(StorageError::Io { source, .. })) = &error
                else {
                    panic!("{error}");
                };
                assert_eq!(source.raw_os_error(), Some(libc::ENOSPC), "{error}");
                assert_eq!(backend.pins(), 0);
                let left = cluster.relation(0).blocks().expect("a length");
                assert!(left <= before + 3, "{left} blocks");
                cluster.disk.limit_space(None);
                cluster.checkpoint(&mut backend).expect("no page of the extension is left");
            }
            let blocks = extend(cluster, &mut backend, 0, count, method);
            assert_eq!(blocks[0], before, "the same blocks are used again");
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            assert!(blocks.iter().all(|&block| cluster.is_on_disk(block, 3)));
        }
    });
}

/// If the file system doesn't support `posix_fallocate`, the extension writes zeros instead. It
/// returns any other error.
#[test]
fn zeros_are_written_where_allocation_is_not_supported() {
    check(Needs { pools: Pools::Both, seeds: 3, ..Needs::writable() }, |cluster| {
        cluster.files.fail(FileCall::Allocate, libc::EOPNOTSUPP);
        let mut backend = cluster.backend();
        let blocks = extend(cluster, &mut backend, 0, 14, ExtendMethod::PosixFallocate);
        assert!(cluster.on_disk(0).len() >= (32 + blocks.len()) * BLOCK_SIZE);
        cluster.files.fail(FileCall::Allocate, libc::EIO);
        let error =
            backend.extend(&cluster.relation(0), 14, ExtendMethod::PosixFallocate).map(drop);
        assert!(matches!(error, Err(WriteError::Storage(StorageError::Io { .. }))), "{error:?}");
        cluster.files.clear_fault();
        let more = extend(cluster, &mut backend, 0, 14, ExtendMethod::PosixFallocate);
        assert_eq!(more[0], 32 + blocks.len() as u32);
    });
}

/// A session is cancelled while it is writing zeros to new blocks. Until this write has completed,
/// no other session may get these blocks. Otherwise the zeros could overwrite a page that the other
/// session has already filled and written.
#[test]
fn the_blocks_of_a_cancelled_extension_are_not_reused_during_its_write() {
    check(Needs::writable().asynchronous(), |cluster: &Arc<Cluster>| {
        let held = cluster.hold_write(32);
        let mut backend = cluster.backend();
        backend.session().set_may_block(false);
        let canceller = backend.session().canceller();
        let task = cluster.spawn("cancelled", move |cluster| {
            let made = backend.extend(&cluster.relation(0), 4, ExtendMethod::WriteZeros);
            made.map(drop)
        });
        held.wait();
        canceller.cancel();
        cluster.wait_until("cancelled, with its write in flight", || task.is_done());
        let other = cluster.spawn("other", |cluster| {
            let mut backend = cluster.backend();
            extend(cluster, &mut backend, 0, 4, ExtendMethod::PosixFallocate)
        });
        cluster.let_others_run();
        held.release();
        task.join().expect_err("cancelled");
        let blocks = other.join();
        let mut backend = cluster.backend();
        let more = extend(cluster, &mut backend, 0, 4, ExtendMethod::WriteZeros);
        assert!(more.iter().all(|block| !blocks.contains(block)), "{more:?}, {blocks:?}");
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert!(blocks.iter().chain(&more).all(|&block| cluster.is_on_disk(block, 3)));
    });
}

/// Another session fills one of the new pages before the extension has written its zeros. The
/// extension then writes that page instead of zeros, so it must first flush the WAL up to the
/// page's LSN.
#[test]
fn a_page_filled_during_its_extension_is_written_after_its_wal() {
    check_simulated(Needs { seeds: 2, ..Needs::writable() }, |cluster| {
        let theirs = Arc::clone(cluster);
        let change = move || theirs.change(&mut theirs.backend(), 33, 7);
        cluster.files.before(FileCall::Allocate, change);
        cluster.files.fail(FileCall::Allocate, libc::EOPNOTSUPP);
        let mut backend = cluster.backend();
        let made = backend.extend(&cluster.relation(0), 12, ExtendMethod::PosixFallocate);
        assert_eq!(made.expect("room").len(), 12);
        cluster.files.clear_fault();
        assert_eq!(cluster.writes.violations(), Vec::<String>::new());
        assert!(cluster.is_on_disk(33, 7));
    });
}

/// A failed extension releases its unused blocks, but must keep a page that another session has
/// filled.
#[test]
fn a_failed_extension_keeps_the_changes_of_other_sessions() {
    check_simulated(Needs { seeds: 2, ..Needs::writable() }, |cluster| {
        let theirs = Arc::clone(cluster);
        let change = move || theirs.change(&mut theirs.backend(), 33, 7);
        cluster.files.before(FileCall::Allocate, change);
        cluster.files.fail(FileCall::Allocate, libc::ENOSPC);
        let mut backend = cluster.backend();
        let made = backend.extend(&cluster.relation(0), 12, ExtendMethod::PosixFallocate);
        made.map(drop).expect_err("no room");
        cluster.files.clear_fault();
        assert!(cluster.is_dirty(0, 33), "the change of the other session");
        cluster.assert_reads(&mut backend, 33, 7);
        assert!(!cluster.pool.contains(&cluster.relation(0), 34), "an unused block");
        let more = extend(cluster, &mut backend, 0, 2, ExtendMethod::WriteZeros);
        assert_eq!(more, [44, 45], "a block with contents is not used again");
    });
}

/// An extension waits while another session has one of the new pages locked. That wait can be
/// cancelled.
#[test]
fn an_extension_waits_for_a_reader_of_its_new_page() {
    check_simulated(Needs { seeds: 2, ..Needs::writable() }, |cluster: &Arc<Cluster>| {
        let (locked, let_go) = (PausePoint::new(), PausePoint::new());
        let allocates = PausePoint::new();
        let (asked, has_lock, gate) = (allocates.clone(), locked.clone(), let_go.clone());
        let reader = cluster.spawn("reader", move |cluster| {
            asked.wait();
            let mut backend = cluster.backend();
            let pin = backend.read(&cluster.relation(0), 33).expect("reads");
            let page = backend.read_lock(pin.page()).expect("locks");
            has_lock.release();
            gate.wait();
            drop(page);
        });
        let theirs = Arc::clone(cluster);
        cluster.files.before(FileCall::Allocate, move || {
            allocates.release();
            theirs.wait_until("a reader has the page", || locked.is_released());
        });
        cluster.files.fail(FileCall::Allocate, libc::EOPNOTSUPP);
        let mut backend = cluster.backend();
        let canceller = backend.session().canceller();
        let task = cluster.spawn("extender", move |cluster| {
            backend.extend(&cluster.relation(0), 12, ExtendMethod::PosixFallocate).map(drop)
        });
        cluster.let_others_run();
        assert!(!task.is_done());
        canceller.cancel();
        cluster.wait_until("cancelled", || task.is_done());
        let_go.release();
        task.join().expect_err("cancelled");
        reader.join();
        cluster.files.clear_fault();
    });
}
