//! Which thread completes an I/O: its issuer, an I/O worker, the thread that reaped it, a helper,
//! or a waiting session.
//!
//! The cases check that every completion path is used, and that the statistics count each path
//! separately. A single read whose result is needed immediately must be executed and completed
//! without the help of any other thread.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Class, Completer, Completion, MethodKind, Outcome, Weight};
use trunkline_sim::BLOCK;
use trunkline_sim::matrix::Environment;
use trunkline_sim::matrix::io::{check_asynchronous, check_seeds, memory, original, read, wait_ok};

/// A callback that adds up all the bytes that were read. This would keep the reaping thread busy
/// for too long, so that thread leaves the I/O to a waiting session or a helper.
pub(crate) struct Heavy;

impl Callback<Vec<u64>> for Heavy {
    fn name(&self) -> &'static str {
        "heavy"
    }
    fn weight(&self) -> Weight {
        Weight::Heavy
    }
    fn complete(&self, io: &mut Completion<'_, Vec<u64>>, prior: Outcome) -> Outcome {
        let sum =
            io.memory.iter().flat_map(|lease| lease.iter()).map(|&byte| u64::from(byte)).sum();
        io.payload.fill(sum);
        prior
    }
}

/// Each kind of thread must complete some I/O, and the counts must add up to the number of I/Os.
#[test]
fn every_kind_of_thread_completes_and_is_counted() {
    let one = |environment: Environment, heavy: bool, wait: bool| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let callbacks: Vec<Arc<dyn Callback<Vec<u64>>>> =
            if heavy { vec![Arc::new(Heavy)] } else { Vec::new() };
        let mut slots = instance.slots_with(1, 1, callbacks);
        if heavy {
            slots.payload(0).expect("idle").push(0);
        }
        read(&mut session, &file, 1, 1, &mut slots, 0);
        if !wait {
            instance.wait_until("complete", || slots.is_done(0));
        }
        wait_ok(&mut session, &mut slots, 0);
        if heavy {
            let wanted = original(1, 1).iter().map(|&byte| u64::from(byte)).sum::<u64>();
            assert_eq!(slots.payload(0).expect("idle")[..], [wanted]);
        }
        let counters = instance.aio.counters();
        assert_eq!(counters.completers.iter().sum::<u64>(), 1);
        counters
    };
    check_one(MethodKind::Sync, Completer::Inline, one, false, true);
    check_one(MethodKind::Worker, Completer::Worker, one, false, false);
    check_one(MethodKind::IoUring, Completer::Reaper, one, false, true);
    check_one(MethodKind::IoUring, Completer::Helper, one, true, false);
    // A waiting session can complete the I/O either because the I/O was offered to it or because it
    // found the I/O itself. Under the scheduler, another thread may get there first, so we only
    // require that the waiting session completes the I/O in some of the runs.
    static WAITED: trunkline_aio::facade::atomic::AtomicU64 =
        trunkline_aio::facade::atomic::AtomicU64::new(0);
    use trunkline_aio::facade::atomic::Ordering;
    check_seeds(&[MethodKind::Custom], 50, |environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots_with(1, 1, vec![Arc::new(Heavy)]);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        let waiter = instance.aio.counters().completed_by(Completer::Waiter);
        WAITED.fetch_add(waiter, Ordering::SeqCst);
    });
    assert!(WAITED.load(Ordering::SeqCst) > 10);
}

fn check_one(
    method: MethodKind,
    completer: Completer,
    one: fn(Environment, bool, bool) -> trunkline_aio::Counters,
    heavy: bool,
    wait: bool,
) {
    let counters = one(Environment::real(method), heavy, wait);
    assert_eq!(counters.completed_by(completer), 1, "{method}: {:?}", counters.completers);
}

/// If the result of a read is needed immediately and no other I/O is in flight, the issuer executes
/// the read itself. If other I/O is in flight, or if the issuer is a task, the read goes to the
/// method instead.
#[test]
fn a_needed_read_is_executed_by_its_issuer_when_it_is_alone() {
    check_asynchronous(|environment| {
        let instance = environment.start();
        let (file, slow) = (instance.file_on("a", 4, 1), instance.file_on("slow", 4, 2));
        instance.disk.hold(2);
        let mut session = instance.session();
        let mut slots = instance.slots(2, 1);
        let needed = |session: &mut trunkline_aio::Session, slots: &mut _| {
            let io = session.acquire(Class::Foreground).expect("a handle").needed_now();
            io.read(&file, BLOCK as u64, BLOCK as u32, slots, 1).expect("defined");
            wait_ok(session, slots, 1);
            assert_eq!(memory(slots, 1), original(1, 1));
        };
        needed(&mut session, &mut slots);
        let counters = instance.aio.counters();
        assert_eq!((counters.needed_now, counters.completed_by(Completer::Inline)), (1, 1));
        session.set_may_block(false);
        needed(&mut session, &mut slots);
        session.set_may_block(true);
        read(&mut session, &slow, 0, 1, &mut slots, 0);
        needed(&mut session, &mut slots);
        let counters = instance.aio.counters();
        assert_eq!((counters.needed_now, counters.completed_by(Completer::Inline)), (1, 1));
        instance.disk.release(2);
        wait_ok(&mut session, &mut slots, 0);
    });
}
