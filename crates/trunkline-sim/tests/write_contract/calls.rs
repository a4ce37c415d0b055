//! File system call failures at every step of creating, extending, truncating or removing a
//! relation.
//!
//! When a call fails, either nothing has changed, or the error says that the relation is damaged.
//! In both cases the caller can repeat the operation. In some of these places PostgreSQL has to
//! PANIC, because an error after the point of no return would leave memory and disk inconsistent.

use std::path::Path;
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::{ExtendMethod, WriteError};
use trunkline_engine::storage::StorageError;
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};
use trunkline_sim::matrix::cluster::{check, check_real, check_simulated, relation, storage};
use trunkline_sim::matrix::pages;
use trunkline_sim::matrix::{Cluster, FileCall, Needs, Pools, is_version};

/// The errors we inject into each call.
const ERRNOS: [i32; 6] =
    [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::EMFILE, libc::EACCES];

/// Errors after which unsynced data may be lost. ext4 returns EROFS after it has shut down.
const LOSSES: [i32; 4] = [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EROFS];

const NEEDS: Needs = Needs {
    pools: Pools::Both,
    buffers: 64,
    blocks: 16,
    handles: 64,
    seeds: 1,
    ..Needs::writable()
};

/// Whether an error reports the relation as damaged. In that case its text must say so, too.
fn is_damaged(error: &WriteError) -> bool {
    let damaged = matches!(error, WriteError::Storage(StorageError::Damaged { .. }));
    assert_eq!(damaged, error.to_string().ends_with("the relation is damaged"), "{error}");
    damaged
}

/// Asserts that each of these calls has failed with each error. Otherwise a case could pass without
/// testing anything.
fn assert_all_failed(cluster: &Cluster, calls: &[FileCall]) {
    for &call in calls {
        for errno in ERRNOS {
            let is_permanent = call == FileCall::SyncDirectory && LOSSES.contains(&errno);
            assert!(is_permanent || cluster.files.has_failed(call, errno), "{call:?}, {errno}");
        }
    }
}

/// Runs `case` for every combination of call and error, both with the files open and with the files
/// closed.
fn for_each_fault(cluster: &Arc<Cluster>, mut case: impl FnMut(FileCall, i32, bool)) {
    for call in FileCall::ALL {
        for errno in ERRNOS {
            for open in [true, false] {
                if !open {
                    (0..3).for_each(|number| {
                        cluster.storage.forget(cluster.relation(number).locator())
                    });
                }
                case(call, errno, open);
                cluster.files.clear_fault();
            }
        }
    }
}

/// Truncation first invalidates the pages, and then truncates the file. If truncating the file
/// fails, the dirty pages have already been discarded. The relation is therefore considered damaged
/// until the truncation has been repeated successfully.
#[test]
fn a_truncation_that_fails_can_be_repeated() {
    check(NEEDS, |cluster| {
        let mut backend = cluster.backend();
        let relation = cluster.relation(0);
        let mut version = 0;
        for_each_fault(cluster, |call, errno, _| {
            version += 1;
            (0..16).for_each(|block| cluster.change(&mut backend, block, version));
            cluster.files.fail(call, errno);
            let cut = backend.truncate(&relation, 8);
            cluster.files.clear_fault();
            match cut {
                Ok(()) => {}
                Err(error) if is_damaged(&error) => {
                    assert!(call == FileCall::Truncate, "{call:?}: {error}");
                    assert!(cluster.is_dirty(0, 7) && !cluster.is_dirty(0, 8));
                    backend.truncate(&relation, 8).expect("cut off");
                }
                Err(error) => {
                    assert!(matches!(call, FileCall::Open | FileCall::Length), "{call:?}: {error}");
                    // The call failed before we invalidated any page.
                    assert!((0..16).all(|block| cluster.is_dirty(0, block)));
                    backend.truncate(&relation, 8).expect("cut off");
                }
            }
            assert_eq!(relation.blocks().expect("a length"), 8);
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            assert!((0..8).all(|block| cluster.is_on_disk(block, version)));
            let more = backend.extend(&relation, 8, ExtendMethod::WriteZeros).expect("room");
            assert_eq!(more.len(), 8);
        });
        assert_all_failed(cluster, &[FileCall::Open, FileCall::Length, FileCall::Truncate]);
    });
}

/// Dropping a relation first invalidates its pages and then removes its files.
#[test]
fn a_removal_that_fails_can_be_repeated() {
    check(NEEDS, |cluster| {
        let mut backend = cluster.backend();
        let relation = cluster.relation(1);
        for_each_fault(cluster, |call, errno, _| {
            cluster.create(1, 4);
            (0..4).for_each(|block| cluster.change_in(&mut backend, 1, block, 1));
            cluster.change(&mut backend, 2, 9);
            cluster.files.fail(call, errno);
            let dropped = backend.drop_relation(&relation);
            cluster.files.clear_fault();
            if let Err(error) = dropped {
                let expected = if is_damaged(&error) { FileCall::Remove } else { FileCall::Length };
                assert_eq!(call, expected, "{error}");
                assert!(cluster.exists(1));
                assert_eq!(cluster.is_dirty(1, 0), call == FileCall::Length);
                backend.drop_relation(&relation).expect("dropped");
            }
            assert!(!cluster.exists(1));
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            assert!(cluster.is_on_disk(2, 9));
        });
        assert_all_failed(cluster, &[FileCall::Length, FileCall::Remove]);
    });
}

/// If creating a relation fails, no file may be left behind. If extending it fails, no pin may be
/// left behind. In both cases, repeating the operation must succeed.
#[test]
fn a_creation_or_extension_that_fails_can_be_repeated() {
    check(NEEDS, |cluster| {
        let mut backend = cluster.backend();
        let relation = cluster.relation(1);
        for_each_fault(cluster, |call, errno, _| {
            if call == FileCall::SyncDirectory && LOSSES.contains(&errno) {
                // This error is permanent; see `a_lost_name_is_permanent`.
                return;
            }
            cluster.files.fail(call, errno);
            let created = relation.create();
            cluster.files.clear_fault();
            if let Err(error) = created {
                let may =
                    matches!(call, FileCall::Open | FileCall::Length | FileCall::SyncDirectory);
                assert!(may && !cluster.exists(1), "{call:?}: {error}");
                relation.create().expect("made");
            }
            assert!(relation.create().is_err(), "it exists");
            cluster.files.fail(call, errno);
            let made = backend.extend(&relation, 10, ExtendMethod::PosixFallocate).map(drop);
            cluster.files.clear_fault();
            if let Err(error) = made {
                assert!(
                    !matches!(call, FileCall::Truncate | FileCall::Remove),
                    "{call:?}: {error}"
                );
            }
            assert_eq!(backend.pins(), 0);
            let pins = backend.extend(&relation, 10, ExtendMethod::PosixFallocate).expect("room");
            pins.iter().for_each(|pin| cluster.change_pinned(&mut backend, 1, pin, 5));
            let blocks: Vec<u32> = pins.iter().map(|pin| pin.page().block()).collect();
            drop(pins);
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            let found = cluster.on_disk(1);
            for block in blocks {
                let at = block as usize * 8192;
                assert!(is_version(&found[at..at + 8192], 1, block, 5), "{call:?}, {block}");
            }
            backend.drop_relation(&relation).expect("dropped");
        });
        let calls = [FileCall::Open, FileCall::Length, FileCall::Allocate, FileCall::SyncDirectory];
        assert_all_failed(cluster, &calls);
    });
}

/// A file is created, but the fsync of its directory fails. The kernel reports this error only
/// once, so even if a second fsync succeeds, that doesn't mean that the directory entry is on disk.
/// Every later checkpoint must therefore fail.
fn a_lost_name_is_permanent(cluster: &Arc<Cluster>, errno: i32) {
    let (relation, mut backend) = (cluster.relation(1), cluster.backend());
    cluster.files.fail(FileCall::SyncDirectory, errno);
    let refused = relation.create().expect_err("a failed sync").to_string();
    assert!(refused.contains("make durable the directory") && !cluster.exists(1), "{refused}");
    cluster.files.clear_fault();
    relation.create().expect("made");
    let made = backend.extend(&relation, 4, ExtendMethod::WriteZeros).expect("room");
    made.iter().for_each(|pin| cluster.change_pinned(&mut backend, 1, pin, 1));
    drop(made);
    cluster.assert_checkpoints_fail(&mut cluster.backend());
}

#[test]
fn a_lost_name_is_permanent_after_eio() {
    check(NEEDS, |cluster| a_lost_name_is_permanent(cluster, libc::EIO));
}

#[test]
fn a_lost_name_is_permanent_after_enospc() {
    check(NEEDS, |cluster| a_lost_name_is_permanent(cluster, libc::ENOSPC));
}

#[test]
fn a_lost_name_is_permanent_after_edquot() {
    check(NEEDS, |cluster| a_lost_name_is_permanent(cluster, libc::EDQUOT));
}

#[test]
fn a_lost_name_is_permanent_after_erofs() {
    check(NEEDS, |cluster| a_lost_name_is_permanent(cluster, libc::EROFS));
}

/// The pool must remember the failure even after the cluster has been closed.
#[test]
fn a_lost_name_is_permanent_in_a_closed_cluster() {
    check_simulated(NEEDS, |cluster| {
        let other = storage(Path::new("/sim/b"), Arc::clone(&cluster.files) as _, false);
        let first = relation(&other, 0).path(0);
        cluster.disk.create(first.to_str().expect("a name"), 1, &pages(0, 4));
        let mut backend = cluster.backend();
        drop(backend.read(&relation(&other, 0), 0).expect("reads"));
        cluster.files.fail(FileCall::SyncDirectory, libc::EIO);
        relation(&other, 1).create().expect_err("a failed sync");
        cluster.files.clear_fault();
        drop(other);
        cluster.assert_checkpoints_fail(&mut cluster.backend());
    });
}

/// A later segment's name can be lost, too.
#[test]
fn a_lost_name_of_a_segment_is_permanent() {
    check_real(Needs::writable(), |cluster| {
        let (relation, mut backend) = (cluster.relation(3), cluster.backend());
        cluster.create(3, 1);
        let file = std::fs::OpenOptions::new().write(true).open(relation.path(0));
        let length = u64::from(SEGMENT_BLOCKS) * BLOCK_SIZE as u64;
        file.and_then(|file| file.set_len(length)).expect("made longer");
        cluster.files.fail(FileCall::SyncDirectory, libc::EIO);
        let mut extend = || backend.extend(&relation, 12, ExtendMethod::PosixFallocate).map(drop);
        extend().expect_err("a failed sync");
        cluster.files.clear_fault();
        extend().expect("room");
        cluster.assert_checkpoints_fail(&mut cluster.backend());
    });
}
