//! The checkpointer with its requests, and the background writer.
//!
//! The engine runs both of these in threads of its own. The tests check when the threads run, what
//! they write, and which sessions they wake. Since time is virtual under the scheduler, we can
//! check timeouts exactly.

use std::time::Duration;
use trunkline_aio::Operation;
use trunkline_aio::clock;
use trunkline_aio::facade::Arc;
use trunkline_engine::checkpoint::{
    BackgroundWriter, BackgroundWriterSettings, Cause, CheckpointOptions, Checkpointer,
    CheckpointerSettings,
};
use trunkline_engine::pool::BackendType;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs};
use trunkline_sim::{Fault, pause};

/// A requested checkpoint must start immediately and must not be throttled. A timed checkpoint must
/// start when the timeout has elapsed, and must spread its writes over the interval, as specified
/// by `checkpoint_completion_target`.
#[test]
fn a_request_hurries_a_timed_checkpoint() {
    check_simulated(Needs::writable(), |cluster| {
        cluster.change_sixteen(0, 1);
        let timeout = Duration::from_millis(400);
        let options = CheckpointOptions { combine: 1, ..CheckpointOptions::default() };
        let settings = CheckpointerSettings { timeout, options, ..CheckpointerSettings::default() };
        let begin = clock::now();
        let checkpointer = Checkpointer::start(&cluster.pool, settings).expect("starts");
        cluster.wait_until("a timed checkpoint", || checkpointer.counts().num_timed == 1);
        assert!(clock::now().since(begin) >= timeout, "not before the timeout");
        assert_eq!(checkpointer.counts().num_done, 0);
        cluster.change_sixteen(0, 2);
        let asked = clock::now();
        let report = checkpointer.request().expect("a checkpoint");
        assert!(
            clock::now().since(asked) < Duration::from_millis(150),
            "the request was not throttled"
        );
        assert_eq!(report.cause, Cause::Requested);
        let counts = checkpointer.counts();
        assert_eq!((counts.num_timed, counts.num_requested, counts.num_done), (1, 1, 2));
        cluster.assert_sixteen_on_disk(2);
        // A timed checkpoint spreads its writes over its interval.
        cluster.change_sixteen(0, 3);
        cluster.wait_until("the next", || checkpointer.counts().num_timed == 2);
        let begun = clock::now();
        cluster.wait_until("its end", || checkpointer.counts().num_done == 3);
        let took = clock::now().since(begun);
        assert!(took > timeout.mul_f64(0.7) && took < timeout, "{took:?}");
        drop(checkpointer);
    });
}

/// The timeout counts from the last checkpoint, even if that checkpoint was requested.
#[test]
fn a_request_restarts_the_checkpoint_timeout() {
    check_simulated(Needs { seeds: 2, ..Needs::writable() }, |cluster| {
        let timeout = Duration::from_millis(400);
        let settings = CheckpointerSettings { timeout, ..CheckpointerSettings::default() };
        let checkpointer = Checkpointer::start(&cluster.pool, settings).expect("starts");
        pause(timeout.mul_f64(0.8));
        let asked = clock::now();
        checkpointer.request().expect("a checkpoint");
        cluster.wait_until("a timed checkpoint", || checkpointer.counts().num_timed == 1);
        assert!(clock::now().since(asked) >= timeout, "counted from the requested checkpoint");
    });
}

/// If a session requests a checkpoint while one is already running, the request must be served by
/// the next one. The running checkpoint may already have gone past the pages that the session has
/// changed.
#[test]
fn a_request_is_served_by_a_checkpoint_that_began_after_it() {
    check(Needs::writable(), |cluster| {
        cluster.change_sixteen(0, 1);
        let checkpointer = Checkpointer::start(&cluster.pool, CheckpointerSettings::default());
        let checkpointer = Arc::new(checkpointer.expect("starts"));
        let held = cluster.hold_write(3);
        let request = |cluster: &Arc<Cluster>| {
            let checkpointer = Arc::clone(&checkpointer);
            cluster.spawn("requester", move |_| {
                checkpointer.request().map(drop).expect("a checkpoint")
            })
        };
        let first = request(cluster);
        held.wait();
        // This change comes too late for the current checkpoint.
        cluster.change(&mut cluster.backend(), 20, 7);
        let second = request(cluster);
        let third = request(cluster);
        cluster.let_others_run();
        assert!(!first.is_done() && !second.is_done());
        held.release();
        // The request returns the report of the latest checkpoint, which may already be the next
        // one if this thread was slow.
        first.join();
        cluster.assert_sixteen_on_disk(1);
        second.join();
        assert!(cluster.is_on_disk(20, 7));
        third.join();
        let counts = checkpointer.counts();
        assert!((2..=3).contains(&counts.num_requested), "{counts:?}");
        assert_eq!(counts.num_done, counts.num_requested);
        assert_eq!((counts.num_timed, counts.buffers_written), (0, 17));
    });
}

/// Shutting down runs a shutdown checkpoint and returns its error. Dropping the checkpointer also
/// runs a shutdown checkpoint.
#[test]
fn shutdown_runs_a_last_checkpoint() {
    check(Needs::writable(), |cluster| {
        cluster.change_sixteen(0, 1);
        let checkpointer = Checkpointer::start(&cluster.pool, CheckpointerSettings::default());
        let report = checkpointer.expect("starts").shut_down().expect("a checkpoint");
        assert_eq!((report.cause, report.buffers), (Cause::Shutdown, 16));
        cluster.assert_sixteen_on_disk(1);
        cluster.change_sixteen(0, 2);
        drop(Checkpointer::start(&cluster.pool, CheckpointerSettings::default()).expect("starts"));
        cluster.assert_sixteen_on_disk(2);
        cluster.change_sixteen(0, 3);
        cluster.inject(Operation::Writev, Fault::Error(libc::ENOSPC), u64::MAX);
        let checkpointer = Checkpointer::start(&cluster.pool, CheckpointerSettings::default());
        let error = checkpointer.expect("starts").shut_down().expect_err("no room");
        assert!(error.to_string().contains("base/5/16384"), "{error}");
        cluster.clear_faults();
    });
}

/// After a failed write, the checkpointer must keep running, and the next request must retry the
/// write.
#[test]
fn a_requester_receives_the_failure_of_its_checkpoint() {
    check(Needs::writable(), |cluster| {
        cluster.change_sixteen(0, 1);
        let checkpointer = Checkpointer::start(&cluster.pool, CheckpointerSettings::default());
        let checkpointer = checkpointer.expect("starts");
        cluster.inject(Operation::Writev, Fault::Error(libc::EIO), u64::MAX);
        for _ in 0..2 {
            let error = checkpointer.request().expect_err("a failed write");
            assert!(error.to_string().contains("base/5/16384"), "{error}");
        }
        let counts = checkpointer.counts();
        assert_eq!((counts.num_requested, counts.num_done), (2, 0));
        cluster.clear_faults();
        assert_eq!(checkpointer.request().expect("a checkpoint").buffers, 16);
        let counts = checkpointer.counts();
        assert_eq!((counts.num_requested, counts.num_done), (3, 1));
        assert_eq!(counts.buffers_written, 16);
        cluster.assert_sixteen_on_disk(1);
    });
}

/// The background writer must stay ahead of the clock hand, so that a session always finds clean
/// buffers and never has to flush a page itself.
#[test]
fn the_background_writer_stays_ahead_of_the_clock_hand() {
    check(Needs { buffers: 64, blocks: 256, seeds: 3, ..Needs::writable() }, |cluster| {
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            multiplier: 10.0,
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
        cluster.probe.record();
        let mut backend = cluster.pool.backend(BackendType::Client).expect("a session");
        let mine = backend.session_id();
        for block in 0..1024 {
            // Change only every fourth page. The clock hand still passes all pages.
            match block % 4 {
                0 => cluster.change(&mut backend, block % 256, block / 256 + 1),
                _ => drop(backend.read(&cluster.relation(0), block % 256).expect("reads")),
            }
            if block % 32 == 31 {
                let rounds = writer.counts().rounds;
                cluster.wait_until("two rounds", || writer.counts().rounds >= rounds + 2);
            }
        }
        let counts = writer.counts();
        assert!(counts.buffers_clean > 0 && counts.buffers_alloc >= 1024 - 64, "{counts:?}");
        assert_eq!(counts.failed_rounds, 0);
        let written = cluster.probe.recorded();
        let by_me =
            written.iter().filter(|io| io.operation == Operation::Writev && io.session == mine);
        assert_eq!(by_me.count(), 0, "the session wrote nothing");
        drop(writer);
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert!((0..256).step_by(4).all(|block| cluster.is_on_disk(block, 4)));
    });
}

/// A round writes at most `max_pages` pages (`bgwriter_lru_maxpages`). Rounds that stop because of
/// this limit are counted (`maxwritten_clean`).
#[test]
fn a_round_of_the_background_writer_has_a_page_limit() {
    check_simulated(Needs { buffers: 64, blocks: 64, ..Needs::writable() }, |cluster| {
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            multiplier: 100.0,
            max_pages: 4,
            ..BackgroundWriterSettings::default()
        };
        let mut backend = cluster.backend();
        (0..60).for_each(|block| cluster.change(&mut backend, block, 1));
        let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
        // Re-reading the same few pages moves the clock hand until all usage counts are zero.
        (0..20).for_each(|turn| cluster.assert_reads(&mut backend, 60 + turn % 4, 0));
        cluster.create(1, 64);
        cluster.wait_until("a round at the limit", || {
            let block = 4 * (writer.counts().rounds % 8) as u32;
            (0..4).for_each(|at| {
                drop(backend.read(&cluster.relation(1), block + at).expect("reads"))
            });
            writer.counts().maxwritten_clean > 0
        });
        let counts = writer.counts();
        assert!(counts.buffers_clean <= 4 * counts.rounds, "{counts:?}");
        drop(writer);
    });
}

/// If `max_pages` is 0, the writer only counts allocations.
#[test]
fn a_page_limit_of_zero_disables_the_background_writer() {
    check_simulated(Needs { buffers: 64, blocks: 200, ..Needs::writable() }, |cluster| {
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            max_pages: 0,
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
        let mut backend = cluster.backend();
        (0..20).for_each(|block| cluster.change(&mut backend, block, 1));
        (20..150).for_each(|block| cluster.assert_reads(&mut backend, block, 0));
        cluster.wait_until("the counts", || writer.counts().buffers_alloc == 150);
        let counts = writer.counts();
        assert_eq!((counts.buffers_clean, counts.maxwritten_clean), (0, 0), "{counts:?}");
        drop(writer);
        cluster.checkpoint(&mut backend).expect("a checkpoint");
    });
}

/// When the pool is idle, the background writer flushes all dirty pages and then hibernates. As
/// soon as a session allocates a buffer, the writer must be woken, rather than left to sleep until
/// its long timeout expires.
#[test]
fn an_idle_background_writer_hibernates_and_is_woken() {
    check_simulated(Needs { buffers: 64, blocks: 200, ..Needs::writable() }, |cluster| {
        let delay = Duration::from_millis(20);
        let settings = BackgroundWriterSettings { delay, ..BackgroundWriterSettings::default() };
        let mut backend = cluster.backend();
        (0..40).for_each(|block| cluster.change(&mut backend, block, 1));
        // These pages are unpinned and clean, so the writer doesn't need to flush them.
        (40..200).for_each(|block| cluster.assert_reads(&mut backend, block, 0));
        (0..20).for_each(|block| cluster.change(&mut backend, block, 2));
        let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
        for block in [100, 101, 120] {
            let mut last = (0, clock::now());
            cluster.wait_until("a long sleep", || {
                let rounds = writer.counts().rounds;
                last = if rounds == last.0 { last } else { (rounds, clock::now()) };
                clock::now().since(last.1) >= delay * 10
            });
            let (begun, before) = (clock::now(), writer.counts());
            // Evict the block, so that the read below must allocate a buffer.
            cluster.pool.evict_relation(&cluster.relation(0), block);
            cluster.assert_reads(&mut backend, block, 0);
            cluster.wait_until("a round", || writer.counts().buffers_alloc > before.buffers_alloc);
            let took = clock::now().since(begun);
            assert!(took < delay, "woken after {took:?}");
        }
        assert!(writer.counts().buffers_clean > 0);
        drop(writer);
    });
}

/// With `max_pages` set to 0, the background writer never writes anything, so sessions that
/// allocate buffers must not wake it. That would only cost them a system call.
#[test]
fn a_disabled_background_writer_is_not_woken() {
    check_simulated(Needs { buffers: 16, seeds: 1, ..Needs::writable() }, |cluster| {
        let settings =
            BackgroundWriterSettings { max_pages: 0, ..BackgroundWriterSettings::default() };
        let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
        let mut backend = cluster.backend();
        // Long enough that the writer hibernates.
        pause(Duration::from_secs(1));
        let before = writer.counts().rounds;
        for step in 0..1000_u32 {
            cluster.assert_reads(&mut backend, step % 32, 0);
            pause(Duration::from_millis(1));
        }
        let rounds = writer.counts().rounds - before;
        assert!(rounds <= 7, "{rounds} rounds of 200 ms in a second");
        drop(writer);
    });
}
