//! What is asked of a file system beside I/O, refused at every place where it is asked for: making a
//! relation, making it longer, cutting it off, removing it.
//!
//! Either nothing has happened, or the error says that the relation is damaged; and in either case it
//! can be tried again.

use crate::rig::{
    Call, Rig, Setup, check, check_real, check_simulated, is_version, relation, storage,
};
use std::path::Path;
use trunkline_aio::sync::Arc;
use trunkline_engine::checkpoint::CheckpointError;
use trunkline_engine::pool::{ExtendMethod, WriteError};
use trunkline_engine::storage::StorageError;
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};
use trunkline_sim::rig::pages;

const ERRNOS: [i32; 6] =
    [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::EMFILE, libc::EACCES];

/// What the system says of data that it could not write; ext4 says the last one when it has given up.
const LOSSES: [i32; 4] = [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EROFS];

const SETUP: Setup =
    Setup { local: true, buffers: 64, blocks: 16, handles: 64, seeds: 1, direct: false };

fn is_damaged(error: &WriteError) -> bool {
    let damaged = matches!(error, WriteError::Storage(StorageError::Damaged { .. }));
    assert_eq!(damaged, error.to_string().ends_with("the relation is damaged"), "{error}");
    damaged
}

/// Reads the meter: each of these calls was refused with every error.
fn assert_refused(rig: &Rig, calls: &[Call]) {
    for &call in calls {
        for errno in ERRNOS {
            let is_for_ever = call == Call::SyncDirectory && LOSSES.contains(&errno);
            assert!(is_for_ever || rig.files.was_refused(call, errno), "{call:?}, {errno}");
        }
    }
}

/// Runs `case` for every call and error, each beginning with all that is open forgotten, or not.
fn each(rig: &Arc<Rig>, mut case: impl FnMut(Call, i32, bool)) {
    for call in Call::ALL {
        for errno in ERRNOS {
            for open in [true, false] {
                if !open {
                    (0..3).for_each(|number| rig.storage.forget(rig.relation(number).locator()));
                }
                case(call, errno, open);
                rig.files.refuse_nothing();
            }
        }
    }
}

#[test]
fn cutting_off() {
    check(SETUP, |rig| {
        let mut backend = rig.backend();
        let relation = rig.relation(0);
        let mut version = 0;
        each(rig, |call, errno, _| {
            version += 1;
            (0..16).for_each(|block| rig.change(&mut backend, block, version));
            rig.files.refuse(call, errno);
            let cut = backend.truncate(&relation, 8);
            rig.files.refuse_nothing();
            match cut {
                Ok(()) => {}
                Err(error) if is_damaged(&error) => {
                    assert!(call == Call::Truncate, "{call:?}: {error}");
                    assert!(rig.is_dirty(0, 7) && !rig.is_dirty(0, 8));
                    backend.truncate(&relation, 8).expect("cut off");
                }
                Err(error) => {
                    assert!(matches!(call, Call::Open | Call::Length), "{call:?}: {error}");
                    // Nothing has happened.
                    assert!((0..16).all(|block| rig.is_dirty(0, block)));
                    backend.truncate(&relation, 8).expect("cut off");
                }
            }
            assert_eq!(relation.blocks().expect("looks"), 8);
            rig.checkpoint(&mut backend).expect("a checkpoint");
            assert!((0..8).all(|block| rig.is_on_disk(block, version)));
            let more = backend.extend(&relation, 8, ExtendMethod::WriteZeros).expect("room");
            assert_eq!(more.len(), 8);
        });
        assert_refused(rig, &[Call::Open, Call::Length, Call::Truncate]);
    });
}

#[test]
fn removing() {
    check(SETUP, |rig| {
        let mut backend = rig.backend();
        let relation = rig.relation(1);
        each(rig, |call, errno, _| {
            rig.create(1, 4);
            (0..4).for_each(|block| rig.change_in(&mut backend, 1, block, 1));
            rig.change(&mut backend, 2, 9);
            rig.files.refuse(call, errno);
            let dropped = backend.drop_relation(&relation);
            rig.files.refuse_nothing();
            if let Err(error) = dropped {
                let expected = if is_damaged(&error) { Call::Remove } else { Call::Length };
                assert_eq!(call, expected, "{error}");
                assert!(rig.exists(1));
                assert_eq!(rig.is_dirty(1, 0), call == Call::Length);
                backend.drop_relation(&relation).expect("dropped");
            }
            assert!(!rig.exists(1));
            rig.checkpoint(&mut backend).expect("nothing is left of it");
            assert!(rig.is_on_disk(2, 9));
        });
        assert_refused(rig, &[Call::Length, Call::Remove]);
    });
}

#[test]
fn making() {
    check(SETUP, |rig| {
        let mut backend = rig.backend();
        let relation = rig.relation(1);
        each(rig, |call, errno, _| {
            if call == Call::SyncDirectory && LOSSES.contains(&errno) {
                // For ever, see below.
                return;
            }
            rig.files.refuse(call, errno);
            let created = relation.create();
            rig.files.refuse_nothing();
            if let Err(error) = created {
                let may = matches!(call, Call::Open | Call::Length | Call::SyncDirectory);
                assert!(may && !rig.exists(1), "{call:?}: {error}");
                relation.create().expect("made");
            }
            assert!(relation.create().is_err(), "it is there");
            rig.files.refuse(call, errno);
            let made = backend.extend(&relation, 10, ExtendMethod::PosixFallocate).map(drop);
            rig.files.refuse_nothing();
            if let Err(error) = made {
                assert!(!matches!(call, Call::Truncate | Call::Remove), "{call:?}: {error}");
            }
            assert_eq!(backend.pins(), 0);
            let pins = backend.extend(&relation, 10, ExtendMethod::PosixFallocate).expect("room");
            pins.iter().for_each(|pin| rig.change_pinned(&mut backend, 1, pin, 5));
            let blocks: Vec<u32> = pins.iter().map(|pin| pin.page().block()).collect();
            drop(pins);
            rig.checkpoint(&mut backend).expect("a checkpoint");
            let found = rig.on_disk(1);
            for block in blocks {
                let at = block as usize * 8192;
                assert!(is_version(&found[at..at + 8192], 1, block, 5), "{call:?}, {block}");
            }
            backend.drop_relation(&relation).expect("dropped");
        });
        let calls = [Call::Open, Call::Length, Call::Allocate, Call::SyncDirectory];
        assert_refused(rig, &calls);
    });
}

/// The directory of a new file cannot be synced: that may succeed the next time, and prove nothing.
fn a_lost_name_is_for_ever(rig: &Arc<Rig>, errno: i32) {
    let (relation, mut backend) = (rig.relation(1), rig.backend());
    rig.files.refuse(Call::SyncDirectory, errno);
    let refused = relation.create().expect_err("a failed sync").to_string();
    assert!(refused.contains("make durable the directory") && !rig.exists(1), "{refused}");
    rig.files.refuse_nothing();
    relation.create().expect("made");
    let made = backend.extend(&relation, 4, ExtendMethod::WriteZeros).expect("room");
    made.iter().for_each(|pin| rig.change_pinned(&mut backend, 1, pin, 1));
    drop(made);
    assert_refused_for_ever(rig);
}

fn assert_refused_for_ever(rig: &Rig) {
    for _ in 0..2 {
        let refused = rig.checkpoint(&mut rig.backend()).expect_err("for ever");
        assert!(matches!(refused, CheckpointError::Sync { path: None, .. }), "{refused}");
    }
}

#[test]
fn a_lost_name_is_for_ever_after_eio() {
    check(SETUP, |rig| a_lost_name_is_for_ever(rig, libc::EIO));
}

#[test]
fn a_lost_name_is_for_ever_after_enospc() {
    check(SETUP, |rig| a_lost_name_is_for_ever(rig, libc::ENOSPC));
}

#[test]
fn a_lost_name_is_for_ever_after_edquot() {
    check(SETUP, |rig| a_lost_name_is_for_ever(rig, libc::EDQUOT));
}

#[test]
fn a_lost_name_is_for_ever_after_erofs() {
    check(SETUP, |rig| a_lost_name_is_for_ever(rig, libc::EROFS));
}

/// And when everybody has closed the cluster: the pool does not forget it.
#[test]
fn a_lost_name_is_for_ever_in_a_closed_cluster() {
    check_simulated(SETUP, |rig| {
        let other = storage(Path::new("/sim/b"), &rig.files, false);
        let first = relation(&other, 0).path(0);
        rig.disk.create(first.to_str().expect("a name"), 1, &pages(0, 4));
        let mut backend = rig.backend();
        drop(backend.read(&relation(&other, 0), 0).expect("reads"));
        rig.files.refuse(Call::SyncDirectory, libc::EIO);
        relation(&other, 1).create().expect_err("a failed sync");
        rig.files.refuse_nothing();
        drop(other);
        assert_refused_for_ever(rig);
    });
}

/// The same of a later segment.
#[test]
fn a_lost_name_of_a_segment_is_for_ever() {
    check_real(Setup::default(), |rig| {
        let (relation, mut backend) = (rig.relation(3), rig.backend());
        rig.create(3, 1);
        let file = std::fs::OpenOptions::new().write(true).open(relation.path(0));
        let length = u64::from(SEGMENT_BLOCKS) * BLOCK_SIZE as u64;
        file.and_then(|file| file.set_len(length)).expect("made longer");
        rig.files.refuse(Call::SyncDirectory, libc::EIO);
        let mut extend = || backend.extend(&relation, 12, ExtendMethod::PosixFallocate).map(drop);
        extend().expect_err("a failed sync");
        rig.files.refuse_nothing();
        extend().expect("room");
        assert_refused_for_ever(rig);
    });
}
