//! Tests that switch the I/O method while I/O is in flight, or break a ring at run time.
//!
//! An I/O must be completed by the method it was submitted with. The exception is when a ring
//! breaks: I/Os that the kernel hasn't accepted yet are then moved to the workers.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Cause, Completer, Feature, MethodKind, Session, Slots, State};
use trunkline_sim::BLOCK;
use trunkline_sim::matrix::io::{check_seeds, memory, original, read, wait_ok};
use trunkline_sim::matrix::{Environment, Instance, REAL, SIMULATED};

/// Reads one block into each of `count` slots, in one batch.
fn batch_of(
    instance: &Instance,
    session: &mut Session,
    slots: &mut Slots,
    first: usize,
    count: usize,
) {
    let file = instance.file("a", 64);
    let mut batch = session.batch();
    for slot in first..first + count {
        read(&mut batch, &file, slot as u32, 1, slots, slot);
    }
}

/// Waits for all slots and checks their contents.
fn drain(session: &mut Session, slots: &mut Slots) {
    while slots.pending() > 0 {
        let (slot, outcome) = session.wait_any(slots).expect("not cancelled");
        assert_eq!(outcome.count, BLOCK as u32, "slot {slot}: {outcome:?}");
        assert_eq!(memory(slots, slot), original(slot as u32, 1), "slot {slot}");
    }
}

/// Tests every ordered pair of methods, with the first method's I/O in flight when we switch to the
/// second.
#[test]
fn io_in_flight_stays_with_its_method_when_another_takes_over() {
    for from in [MethodKind::Worker, MethodKind::Custom] {
        check_seeds(&[from], 10, |environment| {
            for to in SIMULATED {
                let instance = environment.start();
                let mut session = instance.session();
                let mut slots = instance.slots(8, 1);
                drop(instance.file("a", 64));
                // If no I/O has completed on a mount yet, only one I/O at a time is allowed there,
                // so we issue some reads first.
                batch_of(&instance, &mut session, &mut slots, 0, 4);
                drain(&mut session, &mut slots);
                instance.disk.hold(1);
                batch_of(&instance, &mut session, &mut slots, 0, 4);
                instance.disk.wait_stuck(2);
                let status = instance.aio.set_method(to);
                assert_eq!((status.requested, status.used), (to, to));
                let good = instance.file_on("good", 8, 2);
                read(&mut session, &good, 5, 1, &mut slots, 5);
                wait_ok(&mut session, &mut slots, 5);
                assert_eq!(
                    memory(&mut slots, 5),
                    original(5, 1),
                    "the new method is used immediately"
                );
                let methods: Vec<_> =
                    instance.aio.snapshot().into_iter().filter_map(|row| row.method).collect();
                assert_eq!(methods, [environment.method.name(); 4], "{environment:?} to {to}");
                instance.disk.release(1);
                drain(&mut session, &mut slots);
            }
        });
    }
}

#[test]
fn real_methods_alternate_under_load() {
    for from in REAL {
        let instance = Environment::real(from).start();
        let mut session = instance.session();
        let mut slots = instance.slots(30, 1);
        for round in 0..20 {
            for (at, to) in REAL.into_iter().enumerate() {
                let status = instance.aio.set_method(to);
                assert_eq!(status.used, to, "{status:?}");
                batch_of(&instance, &mut session, &mut slots, at * 10, 10);
                if round % 3 == 0 {
                    drain(&mut session, &mut slots);
                }
            }
            drain(&mut session, &mut slots);
        }
        assert_eq!(instance.aio.counters().completers.iter().sum::<u64>(), 600);
        assert_eq!(instance.aio.handles_in_use(), 0);
    }
}

/// Only `sync` issues `posix_fadvise` instead of reading ahead.
#[test]
fn only_sync_advises() {
    check_seeds(&SIMULATED, 3, |environment| {
        let instance = environment.start();
        let file = instance.file("a", 8);
        let session = instance.session();
        let sync = environment.method == MethodKind::Sync;
        assert_eq!(session.advise(&file, 0, 65536), sync);
        assert_eq!(
            (instance.executor.advised(), instance.aio.counters().advised),
            (u64::from(sync), u64::from(sync))
        );
    });
}

/// The ring fails before the kernel has accepted any I/O. All of the I/O must then be executed by
/// the workers, and the fallback must be reported.
#[test]
fn a_ring_that_fails_moves_its_io_to_the_workers() {
    let instance = Environment::real(MethodKind::IoUring).start();
    let mut session = instance.session();
    let mut slots = instance.slots(32, 1);
    // Wait until the driver sleeps in the kernel. Otherwise it would notice the failure on entry,
    // without any I/O.
    instance.wait_until("the ring is entered", || instance.probe.ring_entries() > 0);
    instance.probe.break_rings(1);
    batch_of(&instance, &mut session, &mut slots, 0, 32);
    drain(&mut session, &mut slots);
    let status = instance.aio.method_status();
    assert_eq!((status.requested, status.used), (MethodKind::IoUring, MethodKind::Worker));
    let note = status.fallbacks.first().expect("a fallback");
    assert_eq!((note.feature, note.errno), (Feature::IoUring, 1));
    assert!(matches!(note.cause, Cause::Permission | Cause::Seccomp | Cause::Sysctl(_)), "{note}");
    assert_eq!(status.fallbacks.len(), 1, "reported once");
    let counters = instance.aio.counters();
    assert_eq!(counters.moved, 32);
    // The ring can be enabled again.
    instance.probe.break_rings(0);
    let status = instance.aio.set_method(MethodKind::IoUring);
    assert_eq!(status.used, MethodKind::IoUring, "{status:?}");
    let before = instance.aio.counters().completed_by(Completer::Reaper);
    batch_of(&instance, &mut session, &mut slots, 0, 32);
    drain(&mut session, &mut slots);
    assert_eq!(instance.aio.counters().completed_by(Completer::Reaper) - before, 32);
}

/// The ring fails after the kernel has accepted some of the I/O. The kernel may still be writing to
/// the memory of those I/Os, so we must keep reaping them. Only I/O submitted after the failure
/// goes to the workers.
#[test]
fn a_ring_that_fails_under_load_still_reaps_accepted_io() {
    for round in 0..20 {
        let instance = Environment::real(MethodKind::IoUring)
            .start_with(|builder| builder.region_bytes(64 << 20).handles(128, 4, 8));
        let file = instance.file("big", 512);
        let mut session = instance.session();
        let mut slots = instance.slots(24, 128);
        {
            let mut batch = session.batch();
            for slot in 0..12 {
                read(&mut batch, &file, slot % 4 * 128, 128, &mut slots, slot as usize);
            }
        }
        if round % 2 == 0 {
            instance.wait_until("the ring is entered", || instance.probe.ring_entries() > 1);
        }
        instance.probe.break_rings(1);
        for slot in 12..24 {
            read(&mut session, &file, slot % 4 * 128, 128, &mut slots, slot as usize);
        }
        for slot in 0..24 {
            wait_ok(&mut session, &mut slots, slot);
            let first = slot as u32 % 4 * 128;
            assert!(memory(&mut slots, slot) == original(first, 128), "round {round} slot {slot}");
        }
        assert_eq!(instance.aio.method_status().used, MethodKind::Worker);
        assert_eq!(instance.aio.counters().completers.iter().sum::<u64>(), 24);
    }
}

/// A new ring is requested while the broken one is still waiting for accepted I/O.
#[test]
fn a_broken_ring_can_be_replaced_while_it_still_reaps() {
    let instance = Arc::new(
        Environment::real(MethodKind::IoUring).start_with(|builder| builder.region_bytes(4 << 20)),
    );
    let file = instance.file("a", 64);
    let mut session = instance.session();
    let mut slots = instance.slots(2, 1);
    // Stop the driver in its first completion while its ring fails.
    let held = instance.probe.pause_at(State::CompletedIo, |_| true);
    read(&mut session, &file, 0, 1, &mut slots, 0);
    held.wait();
    instance.probe.break_rings(1);
    read(&mut session, &file, 1, 1, &mut slots, 1);
    let theirs = Arc::clone(&instance);
    let again = trunkline_sim::matrix::io::spawn("again", move || {
        theirs.wait_until("the failure is known", || {
            !theirs.aio.method_status().fallbacks.is_empty()
        });
        theirs.probe.break_rings(0);
        let status = theirs.aio.set_method(MethodKind::IoUring);
        assert_eq!(status.used, MethodKind::IoUring, "{status:?}");
    });
    held.release();
    drain(&mut session, &mut slots);
    again.join().expect("replaces the ring");
    batch_of(&instance, &mut session, &mut slots, 0, 2);
    drain(&mut session, &mut slots);
}
