//! Coverage matrix of the I/O core. We combine every fault with every operation it applies to and
//! every kind of executor. In each of these combinations, another session joins the I/O, once for
//! each state of its handle.
//!
//! A cell counts as reached only if the fault actually struck, and we saw the handle in the cell's
//! state. The test fails if there is a cell that was never reached.

use std::time::Duration;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::{
    Callback, Class, MethodKind, OPERATIONS, Operation, Outcome, STATES, Session, State, Status,
    WaitRef, Weight,
};
use trunkline_sim::matrix::io::{self, PassThrough, original, read, spawn, wait_ok, write};
use trunkline_sim::matrix::{Coverage, Environment, Instance};
use trunkline_sim::{BLOCK, Fault, PausePoint, Rule, content};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Blocks of the I/O under test, and the first of them.
const BLOCKS: u32 = 2;
const FIRST: u32 = 1;
const LENGTH: u32 = BLOCKS * BLOCK as u32;
/// The version the writes store.
const NEW: u32 = 3;
const DELAY: Duration = Duration::from_millis(7);

/// The fault that strikes the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FaultKind {
    Short,
    Interrupted,
    Again,
    ErrorOnce,
    ErrorForGood,
    NoSpace,
    EndOfFile,
    Lost,
    Misdirected,
    Torn,
    BitRot,
    Delay,
    Reorder,
}

/// Which fault to inject for each kind, and how many times.
const FAULTS: [(FaultKind, Fault, u64); 13] = [
    (FaultKind::Short, Fault::Short(5000), 1),
    (FaultKind::Interrupted, Fault::Interrupted, 3),
    (FaultKind::Again, Fault::Again, 3),
    (FaultKind::ErrorOnce, Fault::Error(EIO), 1),
    (FaultKind::ErrorForGood, Fault::Error(EIO), u64::MAX),
    (FaultKind::NoSpace, Fault::Error(ENOSPC), 1),
    (FaultKind::EndOfFile, Fault::EndOfFile, 1),
    (FaultKind::Lost, Fault::LostWrite, 1),
    (FaultKind::Misdirected, Fault::Misdirected(LENGTH), 1),
    (FaultKind::Torn, Fault::TornWrite(512), 1),
    (FaultKind::BitRot, Fault::BitRot(9000), 1),
    (FaultKind::Delay, Fault::Delay(DELAY), 1),
    (FaultKind::Reorder, Fault::Reorder, 1),
];

/// The component that executes the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExecutedBy {
    Inline,
    Worker,
    /// The simulated device, which completes light I/O itself.
    DeviceLight,
    /// The simulated device, which leaves heavy I/O to waiting sessions and helpers.
    DeviceHeavy,
    /// io_uring on real files. The fault replaces the result when it is reaped.
    Ring,
}

const EXECUTORS: [ExecutedBy; 5] = [
    ExecutedBy::Inline,
    ExecutedBy::Worker,
    ExecutedBy::DeviceLight,
    ExecutedBy::DeviceHeavy,
    ExecutedBy::Ring,
];

impl FaultKind {
    fn applies_to(self, operation: Operation) -> bool {
        let (read, write) = (operation == Operation::Readv, operation == Operation::Writev);
        match self {
            FaultKind::Short => read || write,
            FaultKind::EndOfFile | FaultKind::BitRot => read,
            FaultKind::Lost | FaultKind::Misdirected | FaultKind::Torn => write,
            FaultKind::NoSpace => !read,
            _ => true,
        }
    }

    /// Whether we can inject the fault with this executor. Under io_uring the disk is real, so we
    /// can only replace results.
    fn applies_at(self, executor: ExecutedBy) -> bool {
        use FaultKind::{BitRot, Delay, Lost, Misdirected, Reorder, Torn};
        executor != ExecutedBy::Ring
            || !matches!(self, BitRot | Delay | Lost | Misdirected | Reorder | Torn)
    }

    /// The outcome the issuer must receive: status, errno, and bytes transferred.
    fn outcome(self, operation: Operation) -> (Status, Option<i32>, u32) {
        let length = match operation {
            Operation::Readv | Operation::Writev => LENGTH,
            Operation::Fsync | Operation::Fdatasync | Operation::BeginWriteback => 0,
        };
        match self {
            FaultKind::Short => (Status::Partial, None, 5000),
            FaultKind::EndOfFile => (Status::Partial, None, 0),
            FaultKind::ErrorOnce | FaultKind::ErrorForGood => (Status::Error, Some(EIO), 0),
            FaultKind::NoSpace => (Status::Error, Some(ENOSPC), 0),
            _ => (Status::Ok, None, length),
        }
    }
}

/// The size of the matrix.
const CELLS: usize = 1528;

/// One cell of the matrix.
type Cell = (FaultKind, Operation, ExecutedBy, State);

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (kind, ..) in FAULTS {
        for operation in OPERATIONS {
            for executor in EXECUTORS {
                if kind.applies_to(operation) && kind.applies_at(executor) {
                    cells.extend(STATES.map(|state| (kind, operation, executor, state)));
                }
            }
        }
    }
    cells
}

#[test]
fn every_fault_at_every_operation_in_every_state_with_every_executor() {
    let coverage = Coverage::new(cells());
    for (cell, seed) in coverage.cells().zip(0..) {
        let environment = match cell.2 {
            ExecutedBy::Inline => Environment::simulated(MethodKind::Sync, seed),
            ExecutedBy::Worker => Environment::simulated(MethodKind::Worker, seed),
            ExecutedBy::DeviceLight | ExecutedBy::DeviceHeavy => {
                Environment::simulated(MethodKind::Custom, seed)
            }
            ExecutedBy::Ring => Environment::real(MethodKind::IoUring),
        };
        let coverage = coverage.clone();
        environment.run(move |environment| {
            run(environment, cell);
            coverage.hit(cell);
        });
    }
    coverage.assert_complete(CELLS);
}

fn issue(
    instance: &Instance,
    session: &mut Session,
    operation: Operation,
    slots: &mut trunkline_aio::Slots,
) -> WaitRef {
    let file = instance.file("a", 8);
    let io = session.acquire(Class::Foreground).expect("a handle");
    let offset = u64::from(FIRST) * BLOCK as u64;
    match operation {
        Operation::Readv => io.read(&file, offset, LENGTH, slots, 0).expect("defined"),
        Operation::Writev => {
            let new: Vec<u8> = (FIRST..FIRST + BLOCKS).flat_map(|b| content(0, b, NEW)).collect();
            let lease = &mut slots.memory(0).expect("idle")[0];
            lease[..new.len()].copy_from_slice(&new);
            io.write(&file, offset, LENGTH, slots, 0).expect("defined")
        }
        Operation::Fsync => io.fsync(&file, slots, 0),
        Operation::Fdatasync => io.fdatasync(&file, slots, 0),
        Operation::BeginWriteback => io.begin_writeback(&file, offset, LENGTH, slots, 0),
    }
}

/// Runs one cell. When a thread moves the handle to the cell's state, we stop that thread.
/// Meanwhile another session reads the handle's row and joins the I/O.
fn run(environment: Environment, cell: Cell) {
    let (kind, operation, executor, state) = cell;
    let instance = Arc::new(environment.start());
    drop(instance.file("a", 8));
    let (_, fault, times) = FAULTS[kind as usize];
    instance.inject(operation, fault, times);
    let held = instance
        .probe
        .pause_at(state, move |io| io.operation == operation || state <= State::HandedOut);
    let (theirs, seen) = (Arc::clone(&instance), PausePoint::new());
    let before_wait = seen.clone();
    let weight = if executor == ExecutedBy::DeviceHeavy { Weight::Heavy } else { Weight::Light };
    let issuer = spawn("issuer", move || {
        let mut session = theirs.session();
        let callbacks: Vec<Arc<dyn Callback>> = vec![Arc::new(PassThrough(weight))];
        let mut slots = theirs.slots_with(1, BLOCKS, callbacks);
        issue(&theirs, &mut session, operation, &mut slots);
        // Read the row before waiting, because a waiting session may complete the I/O.
        before_wait.wait();
        let outcome = session.wait(&mut slots, 0).expect("not cancelled");
        check_outcome(&theirs, cell, outcome, &mut slots);
        let again = repeat(&theirs, &mut session, cell, &mut slots);
        assert_eq!(again, kind != FaultKind::ErrorForGood, "{cell:?}: the second I/O");
    });
    let io = held.wait();
    let in_state = match instance.row(io) {
        Some(row) => row.state == state.name(),
        None => state == State::Idle,
    };
    assert!(in_state, "{cell:?}: the handle is in another state");
    seen.release();
    let joining = Arc::new(AtomicBool::new(false));
    let (theirs, begun) = (Arc::clone(&instance), Arc::clone(&joining));
    let joiner = spawn("joiner", move || {
        let mut session = theirs.session();
        begun.store(true, Ordering::SeqCst);
        session.join(io).expect("not cancelled");
        assert!(session.is_complete(io));
    });
    instance.wait_until("the joiner", || joining.load(Ordering::SeqCst));
    if environment.is_simulated() {
        // The joiner sleeps, or it has completed the I/O itself.
        instance.quiesce();
    }
    held.release();
    joiner.join().unwrap_or_else(|_| panic!("joiner of {cell:?}"));
    issuer.join().unwrap_or_else(|_| panic!("issuer of {cell:?}"));
    assert!(instance.injected() > 0, "{cell:?}: no fault");
    instance.settle();
}

fn check_outcome(
    instance: &Instance,
    cell: Cell,
    outcome: Outcome,
    slots: &mut trunkline_aio::Slots,
) {
    let (kind, operation, executor, _) = cell;
    let found = (outcome.status, outcome.errno(), outcome.count);
    assert_eq!(found, kind.outcome(operation), "{cell:?}");
    let retried = instance.aio.counters().retried;
    let wanted = if matches!(kind, FaultKind::Interrupted | FaultKind::Again) { 3 } else { 0 };
    assert_eq!(retried, wanted, "{cell:?}");
    if kind == FaultKind::Delay {
        assert!(slots.device_time(0) >= DELAY, "{cell:?}: {:?}", slots.device_time(0));
    }
    let count = outcome.count as usize;
    if operation == Operation::Readv {
        let found = io::memory(slots, 0);
        let wanted = original(FIRST, BLOCKS);
        let wrong = found.iter().zip(&wanted).take(count).filter(|(a, b)| a != b).count();
        assert_eq!(wrong, usize::from(kind == FaultKind::BitRot), "{cell:?}");
    }
    if operation == Operation::Writev && executor != ExecutedBy::Ring {
        let start = FIRST as usize * BLOCK;
        let new: Vec<u8> = (FIRST..FIRST + BLOCKS).flat_map(|b| content(0, b, NEW)).collect();
        let found = instance.bytes("a");
        let old = original(0, 8);
        let written = found[start..start + new.len()].iter().zip(&new).filter(|(a, b)| a == b);
        let same = written.count();
        match kind {
            FaultKind::Short => assert_eq!(found[start..start + 5000], new[..5000], "{cell:?}"),
            FaultKind::Lost
            | FaultKind::ErrorOnce
            | FaultKind::ErrorForGood
            | FaultKind::NoSpace => {
                assert_eq!(found, old, "{cell:?}");
            }
            FaultKind::Misdirected => {
                assert_eq!(found[..start + new.len()], old[..start + new.len()], "{cell:?}");
                assert_eq!(found[start + new.len()..start + 2 * new.len()], new, "{cell:?}");
            }
            FaultKind::Torn => {
                let (head, tail) = (&found[start..start + 512], &found[start + 512..start + 1024]);
                assert!(head == &new[..512] && tail == &old[start + 512..start + 1024], "{cell:?}");
            }
            _ => assert_eq!(same, new.len(), "{cell:?}"),
        }
    }
}

/// Issues the same I/O again. Returns whether it succeeded.
fn repeat(
    instance: &Instance,
    session: &mut Session,
    cell: Cell,
    slots: &mut trunkline_aio::Slots,
) -> bool {
    issue(instance, session, cell.1, slots);
    session.wait(slots, 0).expect("not cancelled").status == Status::Ok
}

/// A reordered read must return what a later write stored. Otherwise the reorder fault would have
/// no effect.
#[test]
fn a_reordered_read_is_executed_after_a_later_write() {
    io::check_seeds(&io::ASYNCHRONOUS, 20, |environment: Environment| {
        let instance = environment.start();
        let file = instance.file("a", 8);
        let mut session = instance.session();
        let mut slots = instance.slots(2, 1);
        // If no I/O has completed on a mount yet, only one I/O at a time is allowed there.
        read(&mut session, &file, 0, 1, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        instance.plan.set(vec![Rule::new(Operation::Readv, 1, Fault::Reorder)]);
        read(&mut session, &file, 3, 1, &mut slots, 0);
        write(&mut session, &file, 3, 1, NEW, &mut slots, 1);
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(io::memory(&mut slots, 0), content(0, 3, NEW));
        wait_ok(&mut session, &mut slots, 1);
    });
}
