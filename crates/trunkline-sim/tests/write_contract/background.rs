//! The threads that write when nobody waits for it: the checkpointer with its requests, and the
//! background writer.

use crate::rig::{Rig, Setup, check, check_simulated};
use std::time::Duration;
use trunkline_aio::Operation;
use trunkline_aio::clock;
use trunkline_aio::sync::Arc;
use trunkline_engine::checkpoint::{
    BackgroundWriter, BackgroundWriterSettings, Cause, CheckpointOptions, Checkpointer,
    CheckpointerSettings,
};
use trunkline_engine::pool::BackendType;
use trunkline_sim::{Fault, pause};

fn change_sixteen(rig: &Arc<Rig>, version: u32) {
    let mut backend = rig.backend();
    (0..16).for_each(|block| rig.change(&mut backend, block, version));
}

fn is_all_on_disk(rig: &Arc<Rig>, version: u32) -> bool {
    (0..16).all(|block| rig.is_on_disk(block, version))
}

#[test]
fn a_request_hurries_a_timed_checkpoint() {
    check_simulated(Setup::default(), |rig| {
        change_sixteen(rig, 1);
        let timeout = Duration::from_millis(400);
        let options = CheckpointOptions { combine: 1, ..CheckpointOptions::default() };
        let settings = CheckpointerSettings { timeout, options, ..CheckpointerSettings::default() };
        let begin = clock::now();
        let checkpointer = Checkpointer::start(&rig.pool, settings).expect("starts");
        rig.wait_until("a timed checkpoint", || checkpointer.counts().num_timed == 1);
        assert!(clock::now().since(begin) >= timeout, "not before its time");
        assert_eq!(checkpointer.counts().num_done, 0);
        change_sixteen(rig, 2);
        let asked = clock::now();
        let report = checkpointer.request().expect("a checkpoint");
        assert!(clock::now().since(asked) < Duration::from_millis(150), "it hurried");
        assert_eq!(report.cause, Cause::Requested);
        let counts = checkpointer.counts();
        assert_eq!((counts.num_timed, counts.num_requested, counts.num_done), (1, 1, 2));
        assert!(is_all_on_disk(rig, 2));
        // One that nobody hurries takes its time.
        change_sixteen(rig, 3);
        rig.wait_until("the next", || checkpointer.counts().num_timed == 2);
        let begun = clock::now();
        rig.wait_until("its end", || checkpointer.counts().num_done == 3);
        let took = clock::now().since(begun);
        assert!(took > timeout.mul_f64(0.7) && took < timeout, "{took:?}");
        drop(checkpointer);
    });
}

/// The time until the next one is counted from any checkpoint.
#[test]
fn a_request_puts_the_timed_checkpoint_off() {
    check_simulated(Setup { seeds: 2, ..Setup::default() }, |rig| {
        let timeout = Duration::from_millis(400);
        let settings = CheckpointerSettings { timeout, ..CheckpointerSettings::default() };
        let checkpointer = Checkpointer::start(&rig.pool, settings).expect("starts");
        pause(timeout.mul_f64(0.8));
        let asked = clock::now();
        checkpointer.request().expect("a checkpoint");
        rig.wait_until("a timed checkpoint", || checkpointer.counts().num_timed == 1);
        assert!(clock::now().since(asked) >= timeout, "counted from the one before");
    });
}

/// A request that comes while a checkpoint runs gets the next one.
#[test]
fn a_request_is_served_by_a_checkpoint_that_began_after_it() {
    check(Setup::default(), |rig| {
        change_sixteen(rig, 1);
        let checkpointer = Checkpointer::start(&rig.pool, CheckpointerSettings::default());
        let checkpointer = Arc::new(checkpointer.expect("starts"));
        let held = rig.hold_write(3);
        let request = |rig: &Arc<Rig>| {
            let checkpointer = Arc::clone(&checkpointer);
            rig.spawn("asker", move |_| checkpointer.request().map(drop).expect("a checkpoint"))
        };
        let first = request(rig);
        held.wait();
        // Too late for the one that runs.
        rig.change(&mut rig.backend(), 20, 7);
        let second = request(rig);
        let third = request(rig);
        rig.let_others_go();
        assert!(!first.is_done() && !second.is_done());
        held.release();
        // Perhaps told of the next one, if that was quicker than it.
        first.join();
        assert!(is_all_on_disk(rig, 1));
        second.join();
        assert!(rig.is_on_disk(20, 7));
        third.join();
        let counts = checkpointer.counts();
        assert!((2..=3).contains(&counts.num_requested), "{counts:?}");
        assert_eq!(counts.num_done, counts.num_requested);
        assert_eq!((counts.num_timed, counts.buffers_written), (0, 17));
    });
}

#[test]
fn the_last_checkpoint_is_done_at_the_end() {
    check(Setup::default(), |rig| {
        change_sixteen(rig, 1);
        let checkpointer = Checkpointer::start(&rig.pool, CheckpointerSettings::default());
        let report = checkpointer.expect("starts").shut_down().expect("a checkpoint");
        assert_eq!((report.cause, report.buffers), (Cause::Shutdown, 16));
        assert!(is_all_on_disk(rig, 1));
        change_sixteen(rig, 2);
        drop(Checkpointer::start(&rig.pool, CheckpointerSettings::default()).expect("starts"));
        assert!(is_all_on_disk(rig, 2));
        change_sixteen(rig, 3);
        rig.trouble(Operation::Writev, Fault::Error(libc::ENOSPC), u64::MAX);
        let checkpointer = Checkpointer::start(&rig.pool, CheckpointerSettings::default());
        let error = checkpointer.expect("starts").shut_down().expect_err("no room");
        assert!(error.to_string().contains("base/5/16384"), "{error}");
        rig.no_trouble();
    });
}

#[test]
fn who_asks_is_told_of_a_failure() {
    check(Setup::default(), |rig| {
        change_sixteen(rig, 1);
        let checkpointer = Checkpointer::start(&rig.pool, CheckpointerSettings::default());
        let checkpointer = checkpointer.expect("starts");
        rig.trouble(Operation::Writev, Fault::Error(libc::EIO), u64::MAX);
        for _ in 0..2 {
            let error = checkpointer.request().expect_err("a failed write");
            assert!(error.to_string().contains("base/5/16384"), "{error}");
        }
        let counts = checkpointer.counts();
        assert_eq!((counts.num_requested, counts.num_done), (2, 0));
        rig.no_trouble();
        assert_eq!(checkpointer.request().expect("a checkpoint").buffers, 16);
        let counts = checkpointer.counts();
        assert_eq!((counts.num_requested, counts.num_done), (3, 1));
        assert_eq!(counts.buffers_written, 16);
        assert!(is_all_on_disk(rig, 1));
    });
}

/// With the background writer ahead of the clock, sessions find clean buffers and write none.
#[test]
fn the_background_writer_goes_ahead_of_the_clock() {
    check(Setup { buffers: 64, blocks: 256, seeds: 3, ..Setup::default() }, |rig| {
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            multiplier: 10.0,
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&rig.pool, settings).expect("starts");
        rig.hooks.record();
        let mut backend = rig.pool.backend(BackendType::Client).expect("a session");
        let mine = backend.session_id();
        for block in 0..1024 {
            // Every fourth page is changed; the clock passes by all of them.
            match block % 4 {
                0 => rig.change(&mut backend, block % 256, block / 256 + 1),
                _ => drop(backend.read(&rig.relation(0), block % 256).expect("reads")),
            }
            if block % 32 == 31 {
                let rounds = writer.counts().rounds;
                rig.wait_until("two rounds", || writer.counts().rounds >= rounds + 2);
            }
        }
        let counts = writer.counts();
        assert!(counts.buffers_clean > 0 && counts.buffers_alloc >= 1024 - 64, "{counts:?}");
        assert_eq!(counts.failed_rounds, 0);
        let written = rig.hooks.recorded();
        let by_me =
            written.iter().filter(|io| io.operation == Operation::Writev && io.session == mine);
        assert_eq!(by_me.count(), 0, "the session wrote nothing itself");
        drop(writer);
        rig.checkpoint(&mut backend).expect("a checkpoint");
        assert!((0..256).step_by(4).all(|block| rig.is_on_disk(block, 4)));
    });
}

/// No more than so many pages in a round.
#[test]
fn a_round_has_a_limit() {
    check_simulated(Setup { buffers: 64, blocks: 64, ..Setup::default() }, |rig| {
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            multiplier: 100.0,
            max_pages: 4,
            ..BackgroundWriterSettings::default()
        };
        let mut backend = rig.backend();
        (0..60).for_each(|block| rig.change(&mut backend, block, 1));
        let writer = BackgroundWriter::start(&rig.pool, settings).expect("starts");
        // The clock passes by until nothing is used any more.
        (0..20).for_each(|turn| rig.assert_reads(&mut backend, 60 + turn % 4, 0));
        rig.create(1, 64);
        rig.wait_until("a round at the limit", || {
            let block = 4 * (writer.counts().rounds % 8) as u32;
            (0..4).for_each(|at| drop(backend.read(&rig.relation(1), block + at).expect("reads")));
            writer.counts().maxwritten_clean > 0
        });
        let counts = writer.counts();
        assert!(counts.buffers_clean <= 4 * counts.rounds, "{counts:?}");
        drop(writer);
    });
}

#[test]
fn no_pages_a_round_is_off() {
    check_simulated(Setup { buffers: 64, blocks: 200, ..Setup::default() }, |rig| {
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            max_pages: 0,
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&rig.pool, settings).expect("starts");
        let mut backend = rig.backend();
        (0..20).for_each(|block| rig.change(&mut backend, block, 1));
        (20..150).for_each(|block| rig.assert_reads(&mut backend, block, 0));
        rig.wait_until("the counts", || writer.counts().buffers_alloc == 150);
        let counts = writer.counts();
        assert_eq!((counts.buffers_clean, counts.maxwritten_clean), (0, 0), "{counts:?}");
        drop(writer);
        rig.checkpoint(&mut backend).expect("a checkpoint");
    });
}

/// An idle pool is cleaned once; then the writer sleeps, and whoever takes a buffer wakes it.
#[test]
fn it_sleeps_long_and_is_woken() {
    check_simulated(Setup { buffers: 64, blocks: 200, ..Setup::default() }, |rig| {
        let delay = Duration::from_millis(20);
        let settings = BackgroundWriterSettings { delay, ..BackgroundWriterSettings::default() };
        let mut backend = rig.backend();
        (0..40).for_each(|block| rig.change(&mut backend, block, 1));
        // Nobody uses them any more.
        (40..200).for_each(|block| rig.assert_reads(&mut backend, block, 0));
        (0..20).for_each(|block| rig.change(&mut backend, block, 2));
        let writer = BackgroundWriter::start(&rig.pool, settings).expect("starts");
        for block in [100, 101, 120] {
            let mut last = (0, clock::now());
            rig.wait_until("a long sleep", || {
                let rounds = writer.counts().rounds;
                last = if rounds == last.0 { last } else { (rounds, clock::now()) };
                clock::now().since(last.1) >= delay * 10
            });
            let (begun, before) = (clock::now(), writer.counts());
            // A buffer is taken.
            rig.pool.evict_relation(&rig.relation(0), block);
            rig.assert_reads(&mut backend, block, 0);
            rig.wait_until("a round", || writer.counts().buffers_alloc > before.buffers_alloc);
            let took = clock::now().since(begun);
            assert!(took < delay, "woken after {took:?}");
        }
        assert!(writer.counts().buffers_clean > 0);
        drop(writer);
    });
}

/// A writer that is off sleeps its delay through, though sessions take buffers all the while.
#[test]
fn a_writer_that_is_off_is_not_woken() {
    check_simulated(Setup { buffers: 16, seeds: 1, ..Setup::default() }, |rig| {
        let settings =
            BackgroundWriterSettings { max_pages: 0, ..BackgroundWriterSettings::default() };
        let writer = BackgroundWriter::start(&rig.pool, settings).expect("starts");
        let mut backend = rig.backend();
        // Long enough for it to sleep long.
        pause(Duration::from_secs(1));
        let before = writer.counts().rounds;
        for step in 0..1000_u32 {
            rig.assert_reads(&mut backend, step % 32, 0);
            pause(Duration::from_millis(1));
        }
        let rounds = writer.counts().rounds - before;
        assert!(rounds <= 7, "{rounds} rounds of 200 ms in a second");
        drop(writer);
    });
}
