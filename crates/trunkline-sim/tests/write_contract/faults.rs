//! Every place that writes or syncs meets every fault: what was not written stays dirty and readable,
//! whoever needed it on disk is told, with file and block, and it is written once the fault is gone.
//! A sync that failed is for ever.

use crate::rig::{Rig, Setup, check, check_simulated};
use std::time::Duration;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Operation, State};
use trunkline_engine::checkpoint::{
    BackgroundWriter, BackgroundWriterSettings, CheckpointError, CheckpointOptions,
};
use trunkline_engine::pool::{ExtendMethod, ReadError, WriteError};
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::Fault;

const BLOCK: u32 = BLOCK_SIZE as u32;

/// Faults that the issuer never hears of.
const HIDDEN: [Fault; 4] =
    [Fault::Interrupted, Fault::Again, Fault::Delay(Duration::from_millis(3)), Fault::Reorder];

/// Writes that end short, of runs of several blocks: the rest is written all the same.
const SHORT: [Fault; 4] = [
    Fault::Short(BLOCK),
    Fault::Short(BLOCK + 512),
    Fault::Short(3 * BLOCK - 1),
    Fault::Short(2 * BLOCK),
];

/// Faults that leave pages unwritten.
const HARD: [i32; 3] = [libc::EIO, libc::ENOSPC, libc::EDQUOT];

fn small() -> Setup {
    Setup { local: true, blocks: 16, seeds: 3, ..Setup::default() }
}

fn change_all(rig: &Arc<Rig>, version: u32) {
    let mut backend = rig.backend();
    (0..16).for_each(|block| rig.change(&mut backend, block, version));
}

fn assert_all_on_disk(rig: &Arc<Rig>, version: u32) {
    for block in 0..16 {
        assert!(rig.is_on_disk(block, version), "block {block} is not {version} on disk");
    }
}

#[test]
fn a_checkpoint_hides_what_the_system_does_now_and_then() {
    check(small(), |rig| {
        for (fault, version) in HIDDEN.into_iter().chain(SHORT).zip(1..) {
            for times in [1, 3] {
                change_all(rig, version * 10 + times);
                rig.trouble(Operation::Writev, fault, u64::from(times));
                let report = rig.checkpoint(&mut rig.backend());
                rig.no_trouble();
                let report = report.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
                assert_eq!(report.buffers, 16, "{fault:?}");
                assert_all_on_disk(rig, version * 10 + times);
            }
        }
    });
}

#[test]
fn a_checkpoint_that_cannot_write_says_so_and_loses_nothing() {
    check(small(), |rig| {
        let options = CheckpointOptions { combine: 4, ..CheckpointOptions::default() };
        for (errno, version) in HARD.into_iter().zip(1..) {
            for times in [1, u64::MAX] {
                let version = version * 10 + times as u32 % 7;
                change_all(rig, version);
                rig.trouble(Operation::Writev, Fault::Error(errno), times);
                let mut backend = rig.backend();
                let error = rig.checkpoint_with(&mut backend, options).expect_err("a failed write");
                let text = error.to_string();
                let CheckpointError::Write(WriteError::Io { path, block, blocks, source }) = error
                else {
                    panic!("{text}");
                };
                assert_eq!(path, rig.relation(0).path(0));
                assert_eq!(source.raw_os_error(), Some(errno));
                assert!(block % 4 == 0 && blocks == 4, "{text}");
                assert!(text.contains("base/5/16384") && text.contains(&block.to_string()));
                let dirty = (0..16).filter(|&block| rig.is_dirty(0, block)).count();
                assert_eq!(dirty, if times == 1 { 4 } else { 16 });
                assert!((block..block + 4).all(|block| rig.is_dirty(0, block)));
                (0..16).for_each(|block| rig.assert_reads(&mut backend, block, version));
                // Again and again, as long as the fault is there.
                if times > 1 {
                    rig.checkpoint(&mut backend).expect_err("still");
                }
                rig.no_trouble();
                let report = rig.checkpoint(&mut backend).expect("the fault is gone");
                assert_eq!(report.buffers, dirty as u64);
                assert_all_on_disk(rig, version);
            }
        }
    });
}

/// Nothing at all is written, without an error: the system has no room.
#[test]
fn writes_of_nothing_are_an_error() {
    check_simulated(small(), |rig| {
        change_all(rig, 1);
        rig.trouble(Operation::Writev, Fault::EndOfFile, u64::MAX);
        let mut backend = rig.backend();
        rig.checkpoint(&mut backend).expect_err("nothing was written");
        rig.no_trouble();
        rig.checkpoint(&mut backend).expect("writes");
        assert_all_on_disk(rig, 1);
    });
}

#[test]
fn a_failed_sync_is_for_ever() {
    check(Setup { blocks: 16, seeds: 3, ..Setup::default() }, |rig| {
        change_all(rig, 1);
        rig.trouble(Operation::Fsync, Fault::Error(libc::EIO), 1);
        let mut backend = rig.backend();
        let error = rig.checkpoint(&mut backend).expect_err("a failed sync");
        let CheckpointError::Sync { path: Some(path), source: Some(source) } = &error else {
            panic!("{error}");
        };
        assert_eq!((path, source.raw_os_error()), (&rig.relation(0).path(0), Some(libc::EIO)));
        rig.no_trouble();
        for _ in 0..3 {
            let error = rig.checkpoint(&mut backend).expect_err("for ever");
            assert!(matches!(error, CheckpointError::Sync { path: None, .. }), "{error}");
            change_all(rig, 2);
        }
        (0..16).for_each(|block| rig.assert_reads(&mut backend, block, 2));
    });
}

/// The session that does the checkpoint is cancelled while the sync that fails is under way: the
/// failure must not be lost, since a second sync would say that all is well.
#[test]
fn a_failed_sync_is_noticed_whoever_still_waits() {
    check_simulated(Setup { blocks: 16, seeds: 6, ..Setup::default() }, |rig| {
        if !rig.is_asynchronous() {
            return;
        }
        change_all(rig, 1);
        rig.disk.lose_syncs(1);
        let held = rig.hooks.hold_result(|io| io.operation == Operation::Fsync);
        let mut backend = rig.backend();
        let canceller = backend.session().canceller();
        let task = rig.spawn("checkpoint", move |rig| rig.checkpoint(&mut backend).map(drop));
        held.wait();
        canceller.cancel();
        task.join().expect_err("cancelled");
        held.release();
        rig.wait_until("the sync has ended", || rig.aio.handles_in_use() == 0);
        let again = rig.checkpoint(&mut rig.backend());
        assert!(matches!(again, Err(CheckpointError::Sync { .. })), "claimed: {again:?}");
    });
}

/// A session that needs a buffer, and can get one only by writing.
#[test]
fn an_eviction_that_cannot_write_is_an_error_and_loses_nothing() {
    check(Setup { buffers: 16, blocks: 32, seeds: 3, local: true, ..Setup::default() }, |rig| {
        for (errno, version) in HARD.into_iter().zip(1..) {
            change_all(rig, version);
            rig.trouble(Operation::Writev, Fault::Error(errno), u64::MAX);
            let mut backend = rig.backend();
            let error = backend.read(&rig.relation(0), 20).map(drop).expect_err("no buffer");
            let ReadError::WriteBack(error) = error else { panic!("{error}") };
            let WriteError::Io { path, source, .. } = *error else { panic!("{error}") };
            assert_eq!(path, rig.relation(0).path(0));
            assert_eq!(source.raw_os_error(), Some(errno));
            assert_eq!(backend.pins(), 0);
            (0..16).for_each(|block| rig.assert_reads(&mut backend, block, version));
            rig.wait_until("nothing in flight", || rig.aio.handles_in_use() == 0);
            rig.no_trouble();
            rig.assert_reads(&mut backend, 20, 0);
            let mut backend = rig.backend();
            rig.checkpoint(&mut backend).expect("writes");
            assert_all_on_disk(rig, version);
        }
        for (fault, version) in HIDDEN.into_iter().chain(SHORT).zip(10..) {
            change_all(rig, version);
            rig.trouble(Operation::Writev, fault, 2);
            let mut backend = rig.backend();
            (16..32).for_each(|block| rig.assert_reads(&mut backend, block, 0));
            rig.no_trouble();
            rig.checkpoint(&mut backend).expect("writes");
            assert_all_on_disk(rig, version);
        }
    });
}

#[test]
fn the_background_writer_goes_on_after_a_fault() {
    check(Setup { buffers: 32, blocks: 64, seeds: 2, ..Setup::default() }, |rig| {
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            multiplier: 1000.0,
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&rig.pool, settings).expect("starts");
        rig.trouble(Operation::Writev, Fault::Error(libc::EIO), u64::MAX);
        let mut backend = rig.backend();
        // Changes a page now and then, and lets the clock pass by meanwhile.
        let mut turn = |version| {
            rig.change(&mut backend, 1, version);
            for block in (16..64).cycle().take(48 * 7) {
                let _ = backend.read(&rig.relation(0), block).map(drop);
            }
            rig.let_others_go();
        };
        rig.wait_until("a round that failed", || {
            turn(1);
            writer.counts().failed_rounds > 0
        });
        let before = writer.counts().buffers_clean;
        rig.no_trouble();
        rig.wait_until("a round that wrote", || {
            turn(2);
            writer.counts().buffers_clean > before
        });
        drop(writer);
    });
}

#[test]
fn an_extension_that_cannot_write_gives_its_blocks_back() {
    check(Setup { local: true, seeds: 3, ..Setup::default() }, |rig| {
        let mut backend = rig.backend();
        let relation = rig.relation(0);
        for errno in HARD {
            for times in [1, u64::MAX] {
                rig.trouble(Operation::Writev, Fault::Error(errno), times);
                let result = backend.extend(&relation, 4, ExtendMethod::WriteZeros);
                let error = result.map(drop).expect_err("a failed write");
                let WriteError::Io { path, block, .. } = error else { panic!("{error}") };
                assert_eq!((path, block), (relation.path(0), 32));
                rig.no_trouble();
                assert_eq!(backend.pins(), 0);
                assert!(!rig.pool.contains(&relation, 32));
            }
        }
        let mut first = 32;
        for fault in HIDDEN.into_iter().chain(SHORT) {
            rig.trouble(Operation::Writev, fault, 2);
            let pins = backend.extend(&relation, 4, ExtendMethod::WriteZeros);
            rig.no_trouble();
            let pins = pins.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
            let blocks: Vec<u32> = pins.iter().map(|pin| pin.page().block()).collect();
            assert_eq!(blocks, (first..first + blocks.len() as u32).collect::<Vec<_>>());
            first += blocks.len() as u32;
            assert_eq!(rig.on_disk(0).len(), first as usize * BLOCK_SIZE, "{fault:?}");
            pins.iter().for_each(|pin| rig.change_pinned(&mut backend, 0, pin, 5));
        }
        rig.checkpoint(&mut backend).expect("writes");
        assert!((32..first).all(|block| rig.is_on_disk(block, 5)));
    });
}

/// Whatever state the handle of a write is in, and whoever brings it further: readers come in, and the
/// end is what the result says, also for a checkpoint whose session was cancelled meanwhile.
#[test]
fn in_every_state_of_the_handle() {
    check(Setup { blocks: 16, seeds: 1, ..Setup::default() }, |rig| {
        let states = [State::Defined, State::Staged, State::Submitted, State::CompletedIo];
        let cases = states.into_iter().flat_map(|state| {
            [0, libc::EIO, libc::ENOSPC]
                .into_iter()
                .flat_map(move |errno| [false, true].map(|cancelled| (state, errno, cancelled)))
        });
        for ((state, errno, cancelled), version) in cases.zip(1..) {
            change_all(rig, version);
            if errno != 0 {
                rig.trouble(Operation::Writev, Fault::Error(errno), u64::MAX);
            }
            let held = rig.hooks.stop(state, |io| io.operation == Operation::Writev);
            let mut backend = rig.backend();
            let canceller = backend.session().canceller();
            let task = rig.spawn("checkpoint", move |rig| rig.checkpoint(&mut backend).map(drop));
            held.wait();
            if cancelled {
                canceller.cancel();
            }
            let mut reader = rig.backend();
            (0..16).for_each(|block| rig.assert_reads(&mut reader, block, version));
            held.release();
            let ended = task.join();
            let case = format!("{state:?}, errno {errno}, cancelled {cancelled}: {ended:?}");
            assert!(ended.is_ok() || cancelled || errno != 0, "{case}");
            assert!(ended.is_err() || errno == 0, "{case}");
            rig.wait_until("nothing in flight", || rig.aio.handles_in_use() == 0);
            (0..16).for_each(|block| rig.assert_reads(&mut reader, block, version));
            rig.no_trouble();
            rig.checkpoint(&mut reader).expect("writes the rest");
            assert_all_on_disk(rig, version);
        }
    });
}
