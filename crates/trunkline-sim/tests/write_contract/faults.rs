//! Storage faults at every site that writes or syncs.
//!
//! If a page can't be written, it must stay dirty, and it must still be possible to read it. The
//! operation that needed the write must fail, with an error that contains the file and the block.
//! Once the fault is gone, the page must be written after all. Only a failed fsync is permanent.

use std::time::Duration;
use trunkline_aio::{Operation, State};
use trunkline_engine::checkpoint::{
    BackgroundWriter, BackgroundWriterSettings, CheckpointError, CheckpointOptions,
};
use trunkline_engine::pool::{ExtendMethod, ReadError, WriteError};
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::Fault;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Needs, Pools};

const BLOCK: u32 = BLOCK_SIZE as u32;

/// Faults the issuer never sees, because they are retried or merely take time.
const HIDDEN: [Fault; 4] =
    [Fault::Interrupted, Fault::Again, Fault::Delay(Duration::from_millis(3)), Fault::Reorder];

/// Short writes of several blocks. The engine must write the rest, starting with the block that was
/// written only in part.
const SHORT: [Fault; 4] = [
    Fault::Short(BLOCK),
    Fault::Short(BLOCK + 512),
    Fault::Short(3 * BLOCK - 1),
    Fault::Short(2 * BLOCK),
];

/// Errors that leave pages unwritten.
const HARD: [i32; 3] = [libc::EIO, libc::ENOSPC, libc::EDQUOT];

fn small() -> Needs {
    Needs { pools: Pools::Both, blocks: 16, seeds: 3, ..Needs::writable() }
}

/// None of these faults may reach the checkpoint's caller.
#[test]
fn a_checkpoint_retries_interrupted_and_short_writes() {
    check(small(), |cluster| {
        for (fault, version) in HIDDEN.into_iter().chain(SHORT).zip(1..) {
            for times in [1, 3] {
                cluster.change_sixteen(0, version * 10 + times);
                cluster.inject(Operation::Writev, fault, u64::from(times));
                let report = cluster.checkpoint(&mut cluster.backend());
                cluster.clear_faults();
                let report = report.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
                assert_eq!(report.buffers, 16, "{fault:?}");
                cluster.assert_sixteen_on_disk(version * 10 + times);
            }
        }
    });
}

/// If one of its writes fails, a checkpoint must still write all other pages before it fails. The
/// pages of the failed write must stay dirty.
#[test]
fn a_checkpoint_that_cannot_write_fails_and_loses_nothing() {
    check(small(), |cluster| {
        let options = CheckpointOptions { combine: 4, ..CheckpointOptions::default() };
        for (errno, version) in HARD.into_iter().zip(1..) {
            for times in [1, u64::MAX] {
                let version = version * 10 + times as u32 % 7;
                cluster.change_sixteen(0, version);
                cluster.inject(Operation::Writev, Fault::Error(errno), times);
                let mut backend = cluster.backend();
                let error =
                    cluster.checkpoint_with(&mut backend, options).expect_err("a failed write");
                let text = error.to_string();
                let CheckpointError::Write(WriteError::Io { location, blocks, source }) = error
                else {
                    panic!("{text}");
                };
                assert_eq!(location.path(), cluster.relation(0).path(0));
                let block = location.block().expect("a block");
                assert_eq!(source.raw_os_error(), Some(errno));
                assert!(block % 4 == 0 && blocks == 4, "{text}");
                assert!(text.contains("base/5/16384") && text.contains(&block.to_string()));
                let dirty = (0..16).filter(|&block| cluster.is_dirty(0, block)).count();
                assert_eq!(dirty, if times == 1 { 4 } else { 16 });
                assert!((block..block + 4).all(|block| cluster.is_dirty(0, block)));
                (0..16).for_each(|block| cluster.assert_reads(&mut backend, block, version));
                // As long as the fault lasts, checkpoints keep failing.
                if times > 1 {
                    cluster.checkpoint(&mut backend).expect_err("fails again");
                }
                cluster.clear_faults();
                let report = cluster.checkpoint(&mut backend).expect("the fault is gone");
                assert_eq!(report.buffers, dirty as u64);
                cluster.assert_sixteen_on_disk(version);
            }
        }
    });
}

/// `pwritev` may return 0 without an errno. If we retried that, we would loop forever.
#[test]
fn a_write_of_zero_bytes_is_an_error() {
    check_simulated(small(), |cluster| {
        cluster.change_sixteen(0, 1);
        cluster.inject(Operation::Writev, Fault::EndOfFile, u64::MAX);
        let mut backend = cluster.backend();
        cluster.checkpoint(&mut backend).expect_err("nothing was written");
        cluster.clear_faults();
        cluster.checkpoint(&mut backend).expect("writes");
        cluster.assert_sixteen_on_disk(1);
    });
}

/// A failed fsync must be permanent, even if the next fsync would succeed. It must still be
/// possible to read the pages.
#[test]
fn a_failed_fsync_fails_every_later_checkpoint() {
    check(Needs { blocks: 16, seeds: 3, ..Needs::writable() }, |cluster| {
        cluster.change_sixteen(0, 1);
        cluster.inject(Operation::Fsync, Fault::Error(libc::EIO), 1);
        let mut backend = cluster.backend();
        let error = cluster.checkpoint(&mut backend).expect_err("a failed sync");
        let CheckpointError::Sync { location, source } = &error else {
            panic!("{error}");
        };
        let path = cluster.relation(0).path(0);
        assert_eq!((location.path(), source.raw_os_error()), (&*path, Some(libc::EIO)));
        cluster.clear_faults();
        for _ in 0..3 {
            let error = cluster.checkpoint(&mut backend).expect_err("permanent");
            assert!(matches!(error, CheckpointError::EarlierSync), "{error}");
            cluster.change_sixteen(0, 2);
        }
        (0..16).for_each(|block| cluster.assert_reads(&mut backend, block, 2));
    });
}

/// A checkpoint's session is cancelled while an fsync that will fail is in flight. No session is
/// waiting for the result any longer, so the completion callback must record the failure. A second
/// fsync would succeed, even though data was lost.
#[test]
fn a_failed_fsync_of_a_cancelled_checkpoint_is_not_lost() {
    check_simulated(
        Needs { blocks: 16, seeds: 6, ..Needs::writable().asynchronous() },
        |cluster| {
            cluster.change_sixteen(0, 1);
            cluster.disk.lose_syncs(1);
            let held = cluster.probe.hold_result(|io| io.operation == Operation::Fsync);
            let mut backend = cluster.backend();
            let canceller = backend.session().canceller();
            let task = cluster
                .spawn("checkpoint", move |cluster| cluster.checkpoint(&mut backend).map(drop));
            held.wait();
            canceller.cancel();
            task.join().expect_err("cancelled");
            held.release();
            cluster.settle();
            let again = cluster.checkpoint(&mut cluster.backend());
            assert!(
                again.as_ref().is_err_and(CheckpointError::is_sync_failure),
                "reported as done: {again:?}"
            );
        },
    );
}

/// All buffers are dirty, so a session must flush a victim to get a buffer. That write fails.
#[test]
fn an_eviction_that_cannot_write_fails_and_loses_nothing() {
    check(
        Needs { buffers: 16, blocks: 32, seeds: 3, pools: Pools::Both, ..Needs::writable() },
        |cluster| {
            for (errno, version) in HARD.into_iter().zip(1..) {
                cluster.change_sixteen(0, version);
                cluster.inject(Operation::Writev, Fault::Error(errno), u64::MAX);
                let mut backend = cluster.backend();
                let error =
                    backend.read(&cluster.relation(0), 20).map(drop).expect_err("no buffer");
                let ReadError::Eviction(error) = error else { panic!("{error}") };
                let WriteError::Io { location, source, .. } = *error else { panic!("{error}") };
                assert_eq!(location.path(), cluster.relation(0).path(0));
                assert_eq!(source.raw_os_error(), Some(errno));
                assert_eq!(backend.pins(), 0);
                (0..16).for_each(|block| cluster.assert_reads(&mut backend, block, version));
                cluster.settle();
                cluster.clear_faults();
                cluster.assert_reads(&mut backend, 20, 0);
                let mut backend = cluster.backend();
                cluster.checkpoint(&mut backend).expect("writes");
                cluster.assert_sixteen_on_disk(version);
            }
            for (fault, version) in HIDDEN.into_iter().chain(SHORT).zip(10..) {
                cluster.change_sixteen(0, version);
                cluster.inject(Operation::Writev, fault, 2);
                let mut backend = cluster.backend();
                (16..32).for_each(|block| cluster.assert_reads(&mut backend, block, 0));
                cluster.clear_faults();
                cluster.checkpoint(&mut backend).expect("writes");
                cluster.assert_sixteen_on_disk(version);
            }
        },
    );
}

/// A failed write isn't fatal for the background writer. It counts a failed round and tries again.
#[test]
fn the_background_writer_continues_after_a_fault() {
    check(Needs { buffers: 32, blocks: 64, seeds: 2, ..Needs::writable() }, |cluster| {
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            multiplier: 1000.0,
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
        cluster.inject(Operation::Writev, Fault::Error(libc::EIO), u64::MAX);
        let mut backend = cluster.backend();
        // Change a page, and then read enough other pages to make the clock hand pass it.
        let mut turn = |version| {
            cluster.change(&mut backend, 1, version);
            for block in (16..64).cycle().take(48 * 7) {
                let _ = backend.read(&cluster.relation(0), block).map(drop);
            }
            cluster.let_others_run();
        };
        cluster.wait_until("a round that failed", || {
            turn(1);
            writer.counts().failed_rounds > 0
        });
        let before = writer.counts().buffers_clean;
        cluster.clear_faults();
        cluster.wait_until("a round that wrote", || {
            turn(2);
            writer.counts().buffers_clean > before
        });
        drop(writer);
    });
}

/// If an extension can't write its zeros, the new blocks must be removed from the pool, and the
/// next extension must get the same blocks again.
#[test]
fn an_extension_that_cannot_write_gives_its_blocks_back() {
    check(Needs { pools: Pools::Both, seeds: 3, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        let relation = cluster.relation(0);
        for errno in HARD {
            for times in [1, u64::MAX] {
                cluster.inject(Operation::Writev, Fault::Error(errno), times);
                let result = backend.extend(&relation, 4, ExtendMethod::WriteZeros);
                let error = result.map(drop).expect_err("a failed write");
                let WriteError::Io { location, .. } = error else { panic!("{error}") };
                assert_eq!(location.path(), relation.path(0));
                assert_eq!(location.block(), Some(32));
                cluster.clear_faults();
                assert_eq!(backend.pins(), 0);
                assert!(!cluster.pool.contains(&relation, 32));
            }
        }
        let mut first = 32;
        for fault in HIDDEN.into_iter().chain(SHORT) {
            cluster.inject(Operation::Writev, fault, 2);
            let pins = backend.extend(&relation, 4, ExtendMethod::WriteZeros);
            cluster.clear_faults();
            let pins = pins.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
            let blocks: Vec<u32> = pins.iter().map(|pin| pin.page().block()).collect();
            assert_eq!(blocks, (first..first + blocks.len() as u32).collect::<Vec<_>>());
            first += blocks.len() as u32;
            assert_eq!(cluster.on_disk(0).len(), first as usize * BLOCK_SIZE, "{fault:?}");
            pins.iter().for_each(|pin| cluster.change_pinned(&mut backend, 0, pin, 5));
        }
        cluster.checkpoint(&mut backend).expect("writes");
        assert!((32..first).all(|block| cluster.is_on_disk(block, 5)));
    });
}

/// We stop a checkpoint's write in each handle state. In all of these states, other sessions must
/// be able to read the pages. Even if the checkpoint is cancelled, it is the result of the write
/// that determines whether the pages become clean.
#[test]
fn readers_continue_while_a_write_is_in_every_state() {
    check(Needs { blocks: 16, seeds: 1, ..Needs::writable() }, |cluster| {
        let states = [State::Defined, State::Staged, State::Submitted, State::CompletedIo];
        let cases = states.into_iter().flat_map(|state| {
            [0, libc::EIO, libc::ENOSPC]
                .into_iter()
                .flat_map(move |errno| [false, true].map(|cancelled| (state, errno, cancelled)))
        });
        for ((state, errno, cancelled), version) in cases.zip(1..) {
            cluster.change_sixteen(0, version);
            if errno != 0 {
                cluster.inject(Operation::Writev, Fault::Error(errno), u64::MAX);
            }
            let held = cluster.probe.pause_at(state, |io| io.operation == Operation::Writev);
            let mut backend = cluster.backend();
            let canceller = backend.session().canceller();
            let task = cluster
                .spawn("checkpoint", move |cluster| cluster.checkpoint(&mut backend).map(drop));
            held.wait();
            if cancelled {
                canceller.cancel();
            }
            let mut reader = cluster.backend();
            (0..16).for_each(|block| cluster.assert_reads(&mut reader, block, version));
            held.release();
            let ended = task.join();
            let case = format!("{state:?}, errno {errno}, cancelled {cancelled}: {ended:?}");
            assert!(ended.is_ok() || cancelled || errno != 0, "{case}");
            assert!(ended.is_err() || errno == 0, "{case}");
            cluster.settle();
            (0..16).for_each(|block| cluster.assert_reads(&mut reader, block, version));
            cluster.clear_faults();
            cluster.checkpoint(&mut reader).expect("writes the rest");
            cluster.assert_sixteen_on_disk(version);
        }
    });
}
