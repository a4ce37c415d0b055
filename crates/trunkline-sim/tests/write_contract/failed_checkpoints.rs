//! Failed checkpoints must be counted and logged, together with the pages they wrote.
//!
//! A checkpoint that fails may already have written most of its pages. If the statistics didn't
//! include these writes, they wouldn't agree with the I/O seen by the device.

use trunkline_aio::Operation;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_engine::checkpoint::{
    Cause, CheckpointEvent, CheckpointOptions, Checkpointer, CheckpointerCounts,
    CheckpointerSettings,
};
use trunkline_sim::Fault;
use trunkline_sim::matrix::Needs;
use trunkline_sim::matrix::cluster::{check, check_real};

/// Event counts. These are statics because the log callback is a plain function.
static STARTING: AtomicU64 = AtomicU64::new(0);
static COMPLETE: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);

/// The log callback, which counts events. It counts a failure only if the error contains the file
/// name.
fn count_event(event: CheckpointEvent<'_>) {
    let (count, counts) = match event {
        CheckpointEvent::Starting(_) => (&STARTING, true),
        CheckpointEvent::Complete(_) => (&COMPLETE, true),
        CheckpointEvent::Failed(error) => (&FAILED, error.to_string().contains("base/5/16384")),
    };
    count.fetch_add(u64::from(counts), Ordering::SeqCst);
}

/// Events since the last call: starting, complete, failed.
fn events() -> [u64; 3] {
    [&STARTING, &COMPLETE, &FAILED].map(|count| count.swap(0, Ordering::SeqCst))
}

/// Requested, completed and failed checkpoints, and the pages written.
fn numbers(counts: CheckpointerCounts) -> ([u64; 3], u64) {
    let checkpoints = [counts.num_requested, counts.num_done, counts.num_failed];
    (checkpoints, counts.buffers_written)
}

/// Makes first a write fail, and then an fsync. After that, every checkpoint fails. We compare the
/// counters after each step.
#[test]
fn failed_checkpoints_are_counted_with_their_pages() {
    check(Needs { blocks: 16, seeds: 3, ..Needs::writable() }, |cluster| {
        let options = CheckpointOptions { combine: 4, ..CheckpointOptions::default() };
        let settings = CheckpointerSettings {
            options,
            log: Some(count_event),
            ..CheckpointerSettings::default()
        };
        events();
        cluster.change_sixteen(0, 1);
        let checkpointer = Checkpointer::start(&cluster.pool, settings).expect("starts");

        // One of four writes of four pages each fails.
        cluster.inject(Operation::Writev, Fault::Error(libc::EIO), 1);
        checkpointer.request().expect_err("a failed write");
        assert_eq!(numbers(checkpointer.counts()), ([1, 0, 1], 12));
        assert_eq!(events(), [1, 0, 1]);
        let dirty = (0..16).filter(|&block| cluster.is_dirty(0, block)).count();
        assert_eq!(dirty, 4, "the pages that were not written");
        let counts = checkpointer.counts();
        assert!(counts.write_time.is_zero() && counts.sync_time.is_zero(), "{counts:?}");

        cluster.clear_faults();
        assert_eq!(checkpointer.request().expect("a checkpoint").buffers, 4);
        assert_eq!(numbers(checkpointer.counts()), ([2, 1, 1], 16));
        assert_eq!(events(), [1, 1, 0]);

        // All pages are written, but then the fsync fails.
        cluster.change_sixteen(0, 2);
        cluster.inject(Operation::Fsync, Fault::Error(libc::EIO), 1);
        checkpointer.request().expect_err("a failed sync");
        assert_eq!(numbers(checkpointer.counts()), ([3, 1, 2], 32));
        assert_eq!(events(), [1, 0, 1]);

        // From now on, every checkpoint fails before writing anything. The error doesn't refer to a
        // file.
        cluster.clear_faults();
        cluster.change_sixteen(0, 3);
        checkpointer.request().expect_err("fails without a write");
        assert_eq!(numbers(checkpointer.counts()), ([4, 1, 3], 32));
        assert_eq!(events(), [1, 0, 0]);
        // This makes the final checks expect that checkpoints can't succeed any more.
        cluster.checkpoint(&mut cluster.backend()).expect_err("fails without a write");
        drop(checkpointer);
        events();
    });
}

/// If the checkpointer thread panics during its shutdown checkpoint, `shut_down` must return an
/// error. It must not return the report of an earlier checkpoint that was successful.
#[test]
fn a_shutdown_checkpoint_that_panics_is_an_error() {
    check_real(Needs { blocks: 16, ..Needs::writable() }, |cluster| {
        let log: fn(CheckpointEvent<'_>) = |event| {
            let last = matches!(event, CheckpointEvent::Starting(Cause::Shutdown));
            assert!(!last, "on purpose");
        };
        let settings = CheckpointerSettings { log: Some(log), ..CheckpointerSettings::default() };
        let checkpointer = Checkpointer::start(&cluster.pool, settings).expect("starts");
        cluster.change_sixteen(0, 1);
        assert_eq!(checkpointer.request().expect("a checkpoint").buffers, 16);
        cluster.change_sixteen(0, 2);
        checkpointer.shut_down().expect_err("nothing was written");
        assert!(cluster.is_dirty(0, 3));
    });
}
