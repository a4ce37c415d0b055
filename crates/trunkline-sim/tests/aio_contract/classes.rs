//! Classes order queues: the log's I/O waits neither behind other I/O nor for a mount that hangs, and
//! foreground reads overtake look-ahead, but do not stop it.
//!
//! Only `worker` is checked here, in virtual time: `sync` and the simulated device have no lanes, and
//! a ring's places fill too fast to observe. The rings have the same lanes, and the environment
//! tests of the command line fill a real ring.

use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::{Builder, Class, File, MethodKind, Operation, Session, Slots, WorkerSettings};
use trunkline_sim::matrix::io::{check_seeds, read, wait_ok};
use trunkline_sim::matrix::{Environment, Instance};
use trunkline_sim::{BLOCK, Fault, Rule};

/// Runs a case with this many workers at most.
fn check(workers: usize, case: impl FnOnce(Instance) + Clone + Send + 'static) {
    check_seeds(&[MethodKind::Worker], 20, move |environment: Environment| {
        let settings = WorkerSettings { min: 1, max: workers, ..WorkerSettings::default() };
        // A session would execute a fast write itself.
        let configure = |builder: Builder| builder.workers(settings).inline_write_max(0);
        case(environment.start_with(configure));
    });
}

/// Issues reads of single blocks into all slots, in one batch.
fn issue(session: &mut Session, class: Class, file: &File, slots: &mut Slots) {
    let mut batch = session.batch();
    for slot in 0..slots.len() {
        let io = batch.acquire(class).expect("a handle");
        io.read(file, slot as u64 * BLOCK as u64, BLOCK as u32, slots, slot).expect("defined");
    }
}

/// Waits for all slots.
fn drain(session: &mut Session, slots: &mut Slots) {
    for slot in 0..slots.len() {
        wait_ok(session, slots, slot);
    }
}

/// A mount that has answered before takes all workers and hangs. A commit to another mount must not
/// even wait until they count as stuck.
#[test]
fn the_log_does_not_wait_for_a_mount_that_hangs_with_all_workers() {
    check(4, |instance| {
        let data = instance.file_on("data", 16, 1);
        let log = instance.file_on("log", 1, 2);
        let mut session = instance.session();
        let (mut hung, mut one) = (instance.slots(16, 1), instance.slots(1, 1));
        for _ in 0..8 {
            read(&mut session, &data, 0, 1, &mut one, 0);
            wait_ok(&mut session, &mut one, 0);
        }
        instance.disk.hold(1);
        issue(&mut session, Class::LookAhead, &data, &mut hung);
        instance.disk.wait_stuck(4);
        for _ in 0..3 {
            let begin = clock::now();
            let io = session.acquire(Class::Log).expect("a handle");
            io.write(&log, 0, BLOCK as u32, &mut one, 0).expect("defined");
            wait_ok(&mut session, &mut one, 0);
            session.acquire(Class::Log).expect("a handle").fdatasync(&log, &mut one, 0);
            wait_ok(&mut session, &mut one, 0);
            let took = clock::now().since(begin);
            assert!(took < Duration::from_millis(1), "{took:?}");
        }
        assert_eq!(hung.pending(), 16);
        instance.disk.release(1);
        drain(&mut session, &mut hung);
    });
}

/// Lets every read take 10 ms, so that nothing else is done by the time a case looks.
fn slow_reads(instance: &Instance) {
    let slow = Fault::Delay(Duration::from_millis(10));
    instance.plan.set(vec![Rule::new(Operation::Readv, 1, slow).times(u64::MAX)]);
}

/// There is one worker, and look-ahead is queued when a foreground read and the log's write come.
/// The log's write gets a worker of its own, and the read is next.
#[test]
fn queued_look_ahead_is_overtaken() {
    check(1, |instance| {
        slow_reads(&instance);
        let file = instance.file("a", 16);
        let mut session = instance.session();
        let mut ahead = instance.slots(16, 1);
        let [mut now, mut log] = [instance.slots(1, 1), instance.slots(1, 1)];
        issue(&mut session, Class::LookAhead, &file, &mut ahead);
        issue(&mut session, Class::Foreground, &file, &mut now);
        let io = session.acquire(Class::Log).expect("a handle");
        io.write(&file, 0, BLOCK as u32, &mut log, 0).expect("defined");
        wait_ok(&mut session, &mut log, 0);
        assert_eq!(ahead.done_count(), 0, "before the log");
        wait_ok(&mut session, &mut now, 0);
        assert!(ahead.done_count() <= 1, "{} before the foreground", ahead.done_count());
        drain(&mut session, &mut ahead);
    });
}

/// There is one worker, and foreground reads always wait. One of four I/Os is look-ahead.
#[test]
fn foreground_reads_do_not_stop_look_ahead() {
    check(1, |instance| {
        slow_reads(&instance);
        let file = instance.file("a", 24);
        let mut session = instance.session();
        let (mut ahead, mut now) = (instance.slots(4, 1), instance.slots(24, 1));
        issue(&mut session, Class::LookAhead, &file, &mut ahead);
        issue(&mut session, Class::Foreground, &file, &mut now);
        drain(&mut session, &mut ahead);
        // Nine if the first I/O was look-ahead.
        assert!((9..=12).contains(&now.done_count()), "{} overtook", now.done_count());
        drain(&mut session, &mut now);
    });
}
