//! Inline writes, i.e. buffered writes that the session executes itself. Writing to the page cache
//! costs little more than copying the data, so passing the write to another thread would take
//! longer than executing it.
//!
//! They must behave exactly like the method's writes. See decision 0008.

use std::time::Duration;
use trunkline_aio::{Class, Completer, MethodKind, Operation, Status};
use trunkline_sim::matrix::Environment;
use trunkline_sim::matrix::io::{check, check_simulated, original, read, spawn, wait_ok, write};
use trunkline_sim::{BLOCK, Fault, Rule, content, pause};

/// A delay that makes a write slow on the simulated disk.
const SLOW: Fault = Fault::Delay(Duration::from_millis(5));

fn writes_inline(environment: Environment) -> bool {
    environment.method != MethodKind::Sync
}

/// An inline write is complete when the call returns, even in a batch. I/Os staged before it must
/// be submitted first.
#[test]
fn an_inline_write_is_complete_when_it_is_issued() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.inline_write_max(u32::MAX));
        let file = instance.file("a", 8);
        let (mut session, mut slots) = (instance.session(), instance.slots(3, 2));
        let mut batch = session.batch();
        let io = read(&mut batch, &file, 4, 1, &mut slots, 2);
        for (slot, first) in [(0, 0), (1, 2)] {
            write(&mut batch, &file, first, 2, 3, &mut slots, slot);
            if writes_inline(environment) {
                assert!(slots.is_done(slot), "{environment:?}: the session did not write");
                let row = instance.row(io);
                let waits = row.is_some_and(|row| row.state == "STAGED");
                assert!(!waits, "{environment:?}: a staged read waits for a write");
            }
        }
        drop(batch);
        for slot in 0..3 {
            wait_ok(&mut session, &mut slots, slot);
        }
        let counters = instance.aio.counters();
        assert_eq!(
            counters.inline_writes,
            if writes_inline(environment) { 2 } else { 0 },
            "{environment:?}"
        );
        assert!(counters.completed_by(Completer::Inline) >= 2, "{environment:?}");
        let expected: Vec<u8> = (0..4).flat_map(|block| content(0, block, 3)).collect();
        assert_eq!(instance.bytes("a")[..4 * BLOCK], expected);
        assert_eq!(instance.bytes("a")[4 * BLOCK..], original(4, 4));
    });
}

/// Errors, short writes and interruptions must have the same outcome as with any other way of
/// writing.
#[test]
fn faults_of_inline_writes_have_the_usual_outcome() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.inline_write_max(u32::MAX));
        let file = instance.file("a", 4);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 2));
        for (raw, wanted) in [(-5, (Status::Error, 0)), (5000, (Status::Partial, 5000))] {
            instance.probe.change_results(move |_, _| raw);
            write(&mut session, &file, 0, 2, 1, &mut slots, 0);
            let outcome = session.wait(&mut slots, 0).expect("not cancelled");
            assert_eq!((outcome.status, outcome.count), wanted, "{environment:?}");
        }
        let mut left = 3;
        instance.probe.change_results(move |_, raw| {
            left -= 1;
            if left >= 0 { -4 } else { raw }
        });
        let before = instance.aio.counters().retried;
        write(&mut session, &file, 0, 2, 2, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(instance.aio.counters().retried - before, 3, "{environment:?}");
    });
}

/// Long writes, reads, fsyncs and direct I/O must go to the method. The same is true of any I/O
/// issued by a session that isn't allowed to block.
#[test]
fn other_io_is_not_executed_inline() {
    check_simulated(|environment| {
        let instance = environment.start_with(|builder| builder.inline_write_max(BLOCK as u32));
        let file = instance.file("a", 8);
        let direct = instance.aio.open_virtual("/sim/direct".as_ref(), 1, true);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 2));
        write(&mut session, &file, 0, 2, 1, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        let io = session.acquire(Class::Eviction).expect("a handle");
        io.write(&direct, 0, BLOCK as u32, &mut slots, 0).expect("defined");
        session.wait(&mut slots, 0).expect("not cancelled");
        for (may_block, made) in [(false, 0), (true, 2 * u64::from(writes_inline(environment)))] {
            session.set_may_block(may_block);
            write(&mut session, &file, 0, 1, 2, &mut slots, 0);
            wait_ok(&mut session, &mut slots, 0);
            let io = session.acquire(Class::Eviction).expect("a handle");
            io.begin_writeback(&file, 0, 8 * BLOCK as u32, &mut slots, 0);
            wait_ok(&mut session, &mut slots, 0);
            assert_eq!(instance.aio.counters().inline_writes, made, "{environment:?}");
        }
    });
}

/// Once a mount has become slow, sessions must pass writes on that mount to the method, which can
/// keep many of them in flight. Now and then a write is still executed inline, to see whether the
/// mount has become faster. If so, sessions must go back to inline writes.
#[test]
fn writes_to_a_slow_mount_go_to_the_method() {
    check_simulated(|environment| {
        if !writes_inline(environment) {
            return;
        }
        let instance = environment.start_with(|builder| builder.inline_write_max(u32::MAX));
        let (file, other) = (instance.file_on("a", 8, 1), instance.file_on("b", 8, 2));
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 1));
        instance.plan.set(vec![Rule::new(Operation::Writev, 1, SLOW).times(u64::MAX)]);
        let mut made = |file, writes: u32| {
            let before = instance.aio.counters().inline_writes;
            for version in 0..writes {
                write(&mut session, file, 0, 1, version, &mut slots, 0);
                wait_ok(&mut session, &mut slots, 0);
            }
            instance.aio.counters().inline_writes - before
        };
        assert_eq!(made(&file, 20), 4, "{environment:?}: four slow writes decide");
        assert_eq!(made(&file, 200), 3, "{environment:?}: a probe every 320 ms");
        instance.plan.set(Vec::new());
        assert_eq!(made(&other, 20), 20, "{environment:?}: each mount is measured separately");
        pause(Duration::from_secs(1));
        assert_eq!(made(&file, 40), 40, "{environment:?}: the mount is fast again");
    });
}

/// If a mount hangs, a session that is executing an inline write hangs along with it. From then on,
/// no other session may start an inline write to that mount.
#[test]
fn a_mount_that_hangs_blocks_only_the_first_inline_write() {
    check_simulated(|environment| {
        if !writes_inline(environment) {
            return;
        }
        let instance = environment.start_with(|builder| builder.inline_write_max(u32::MAX));
        let (theirs, file) = (instance.file_on("a", 8, 1), instance.file_on("b", 8, 1));
        let (mut other, mut slots) = (instance.session(), instance.slots(1, 1));
        instance.disk.hold(1);
        let caught = spawn("caught", move || {
            write(&mut other, &theirs, 0, 1, 1, &mut slots, 0);
            wait_ok(&mut other, &mut slots, 0);
        });
        instance.disk.wait_stuck(1);
        pause(Duration::from_millis(20));
        let (mut session, mut slots) = (instance.session(), instance.slots(2, 1));
        write(&mut session, &file, 0, 1, 1, &mut slots, 0);
        let io = session.acquire(Class::Eviction).expect("a handle");
        io.begin_writeback(&file, 0, BLOCK as u32, &mut slots, 1);
        session.submit();
        assert!(!slots.is_done(0) && !slots.is_done(1), "{environment:?}: the mount hangs");
        session.canceller().cancel();
        assert!(session.wait(&mut slots, 0).is_err(), "{environment:?}: the wait can be cancelled");
        instance.disk.release_all();
        caught.join().expect("no panic");
        instance.settle();
        assert_eq!(instance.aio.counters().inline_writes, 1, "{environment:?}");
    });
}
