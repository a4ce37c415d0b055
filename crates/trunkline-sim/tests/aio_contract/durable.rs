//! Durable writes (`RWF_DSYNC`): the data is durable when the write completes, and nothing else is.
//!
//! Only the simulated disk shows what a crash leaves. On real files, the cases check that the kernel
//! takes the flag in every form of a write, and that it leaves no dirty page behind. `swallowed`
//! among the environment tests of the command line checks that it reports errors.

use std::fs;
use trunkline_aio::{
    Class, Completer, File, Io, MethodKind, Operation, Session, Slots, Status, WaitRef,
};
use trunkline_sim::matrix::Instance;
use trunkline_sim::matrix::io::{check, check_real, memory, original, read, wait_ok, write};
use trunkline_sim::{BLOCK, Fault, content};

/// Writes the slot's memory durably at a block, without waiting for it.
fn write_durably(session: &mut Session, file: &File, first: u32, slots: &mut Slots) -> WaitRef {
    let length: usize = slots.memory(0).expect("idle").iter().map(|lease| lease.len()).sum();
    let offset = u64::from(first) * BLOCK as u64;
    let io = session.acquire(Class::Log).map(Io::durable).expect("a handle");
    io.write(file, offset, length as u32, slots, 0).expect("defined")
}

/// A slot whose memory is this many separate leases, with a version of the blocks from `first` on.
fn scattered(instance: &Instance, first: u32, pieces: u32) -> Slots {
    let mut slots = Slots::new(1);
    for block in first..first + pieces {
        let mut lease = instance.aio.region().lease(1).expect("a frame");
        lease.copy_from_slice(&content(0, block, 1));
        slots.memory(0).expect("idle").push(lease);
    }
    slots
}

#[test]
fn a_durable_write_survives_a_crash_and_others_may_not() {
    check(|environment| {
        for pieces in [1, 3] {
            let instance = environment.start();
            let name = format!("a{pieces}");
            let file = instance.file(&name, 8);
            let (mut session, mut plain) = (instance.session(), instance.slots(1, 1));
            write(&mut session, &file, 0, 1, 1, &mut plain, 0);
            wait_ok(&mut session, &mut plain, 0);
            let mut slots = scattered(&instance, 4, pieces);
            write_durably(&mut session, &file, 4, &mut slots);
            assert_eq!(wait_ok(&mut session, &mut slots, 0).count, pieces * BLOCK as u32);
            let new: Vec<u8> = (4..4 + pieces).flat_map(|block| content(0, block, 1)).collect();
            let (start, end) = (4 * BLOCK, (4 + pieces as usize) * BLOCK);
            assert!(instance.bytes(&name)[start..end] == new);
            if instance.is_simulated() {
                let durable = instance.disk.durable(&name);
                assert!(durable[start..end] == new, "{environment:?}");
                assert!(durable[..BLOCK] == original(0, 1), "only that write, {environment:?}");
                for seed in 0..8 {
                    let left = instance.disk.after_crash(seed).content(&name);
                    assert!(left[start..end] == new, "{environment:?}, crash {seed}");
                }
            }
            // The next I/O on the handle is not durable by accident.
            write(&mut session, &file, 1, 1, 1, &mut plain, 0);
            wait_ok(&mut session, &mut plain, 0);
            if instance.is_simulated() {
                assert_eq!(instance.disk.durable(&name)[BLOCK..2 * BLOCK], original(1, 1));
            }
        }
    });
}

/// How many bytes of dirty pages this thread has thrown away so far by truncating files.
fn thrown_away() -> u64 {
    let counts = fs::read_to_string("/proc/thread-self/io").expect("read");
    let line = counts.lines().find_map(|line| line.strip_prefix("cancelled_write_bytes: "));
    line.expect("counted").parse().expect("a number")
}

/// A durable write leaves no dirty page behind. (On a `tmpfs`, whose pages aren't counted, this
/// proves nothing.)
#[test]
fn the_kernel_writes_durable_pages_at_once() {
    check_real(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 8);
        let whole = fs::File::options().write(true).open(instance.path("a")).expect("opens");
        whole.sync_all().expect("synced");
        let (mut session, mut slots) = (instance.session(), scattered(&instance, 4, 3));
        write_durably(&mut session, &file, 4, &mut slots);
        wait_ok(&mut session, &mut slots, 0);
        let before = thrown_away();
        whole.set_len(0).expect("truncated");
        assert_eq!(thrown_away() - before, 0, "{environment:?}");
    });
}

/// Under io_uring, the workers execute durable writes into the page cache and all writes of the
/// log.
#[test]
fn a_ring_does_not_execute_the_logs_writes() {
    check(|environment| {
        if environment.method != MethodKind::IoUring {
            return;
        }
        // A session would execute a fast write itself.
        let instance = environment.start_with(|builder| builder.inline_write_max(0));
        let file = instance.file("a", 8);
        let mut session = instance.session();
        for (class, durable, expected) in [
            (Class::Log, false, 1),
            (Class::Log, true, 1),
            (Class::Checkpoint, true, 1),
            (Class::Checkpoint, false, 0),
        ] {
            let by_workers = || instance.aio.counters().completed_by(Completer::Worker);
            let before = by_workers();
            let mut slots = scattered(&instance, 4, 2);
            let mut io = session.acquire(class).expect("a handle");
            if durable {
                io = io.durable();
            }
            io.write(&file, 4 * BLOCK as u64, 2 * BLOCK as u32, &mut slots, 0).expect("defined");
            wait_ok(&mut session, &mut slots, 0);
            assert_eq!(by_workers() - before, expected, "{class:?}, durable: {durable}");
        }
    });
}

/// A read that is called durable is an ordinary read.
#[test]
fn only_writes_are_durable() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 2);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 1));
        let io = session.acquire(Class::Foreground).map(Io::durable).expect("a handle");
        io.read(&file, 0, BLOCK as u32, &mut slots, 0).expect("defined");
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0), original(0, 1));
        session.acquire(Class::Log).map(Io::durable).expect("a handle").fsync(&file, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
    });
}

/// The sync within the write fails: the issuer gets the error, and the data is not durable.
#[test]
fn a_durable_write_reports_a_failed_sync() {
    check(|environment| {
        if !environment.is_simulated() {
            return;
        }
        let instance = environment.start();
        let file = instance.file("a", 2);
        let mut session = instance.session();
        let mut slots = scattered(&instance, 1, 1);
        instance.disk.lose_syncs(1);
        write_durably(&mut session, &file, 1, &mut slots);
        let outcome = session.wait(&mut slots, 0).expect("not cancelled");
        assert_eq!(outcome.errno(), Some(5), "{environment:?}");
        assert_eq!(instance.disk.durable("a")[BLOCK..], original(1, 1));
        write_durably(&mut session, &file, 1, &mut slots);
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(instance.disk.durable("a")[BLOCK..], content(0, 1, 1));
    });
}

/// A short durable write has made durable what it reports.
#[test]
fn a_short_durable_write_is_durable_as_far_as_it_goes() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = scattered(&instance, 0, 2);
        instance.inject(Operation::Writev, Fault::Short(BLOCK as u32), 1);
        write_durably(&mut session, &file, 0, &mut slots);
        let outcome = session.wait(&mut slots, 0).expect("not cancelled");
        assert_eq!((outcome.status, outcome.count), (Status::Partial, BLOCK as u32));
        if instance.is_simulated() {
            assert_eq!(instance.disk.durable("a")[..BLOCK], content(0, 0, 1));
            assert_eq!(instance.disk.durable("a")[BLOCK..], original(1, 3));
        }
        instance.clear_faults();
        let mut back = instance.slots(1, 1);
        read(&mut session, &file, 0, 1, &mut back, 0);
        wait_ok(&mut session, &mut back, 0);
        assert_eq!(memory(&mut back, 0), content(0, 0, 1));
    });
}
