//! The coverage matrix: every fault of the menu, at every operation that it applies to, under every
//! kind of executor, while another session joins the I/O in each state of its handle.
//!
//! One test runs all of it and then reads the meter: a cell that was not hit fails the run, and so
//! does one that was hit without the fault having struck or the state having been seen.

use crate::rig::{Bench, Rig, original, read, run_seed, spawn, wait_ok, write};
use std::collections::BTreeMap;
use std::time::Duration;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{
    Callback, Class, Completion, MethodKind, OPERATIONS, Operation, Outcome, STATES, Session,
    State, Status, WaitRef, Weight,
};
use trunkline_sim::{BLOCK, Fault, Gate, Rule, content};

const EIO: i32 = 5;
const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const ENOSPC: i32 = 28;

/// Blocks of the I/O under test.
const BLOCKS: u32 = 2;
const FIRST: u32 = 1;
const LENGTH: u32 = BLOCKS * BLOCK as u32;
/// The version that writes bring.
const NEW: u32 = 3;
const DELAY: Duration = Duration::from_millis(7);

/// The menu of the issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Menu {
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

const MENU: [Menu; 13] = [
    Menu::Short,
    Menu::Interrupted,
    Menu::Again,
    Menu::ErrorOnce,
    Menu::ErrorForGood,
    Menu::NoSpace,
    Menu::EndOfFile,
    Menu::Lost,
    Menu::Misdirected,
    Menu::Torn,
    Menu::BitRot,
    Menu::Delay,
    Menu::Reorder,
];

/// Who carries the I/O out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Site {
    Inline,
    Worker,
    /// The simulated device, which completes light I/O itself.
    DeviceLight,
    /// The simulated device, which leaves heavy I/O to waiters and helpers.
    DeviceHeavy,
    /// A ring on real files; the fault is injected where the result is reaped.
    Ring,
}

const SITES: [Site; 5] =
    [Site::Inline, Site::Worker, Site::DeviceLight, Site::DeviceHeavy, Site::Ring];

impl Menu {
    fn applies_to(self, operation: Operation) -> bool {
        let (read, write) = (operation == Operation::Readv, operation == Operation::Writev);
        match self {
            Menu::Short => read || write,
            Menu::EndOfFile | Menu::BitRot => read,
            Menu::Lost | Menu::Misdirected | Menu::Torn => write,
            Menu::NoSpace => !read,
            _ => true,
        }
    }

    /// At a ring only what a completion can say is injected; the disk is the real one.
    fn applies_at(self, site: Site) -> bool {
        use Menu::{BitRot, Delay, Lost, Misdirected, Reorder, Torn};
        site != Site::Ring || !matches!(self, BitRot | Delay | Lost | Misdirected | Reorder | Torn)
    }

    fn fault(self) -> (Fault, u64) {
        match self {
            Menu::Short => (Fault::Short(5000), 1),
            Menu::Interrupted => (Fault::Interrupted, 3),
            Menu::Again => (Fault::Again, 3),
            Menu::ErrorOnce => (Fault::Error(EIO), 1),
            Menu::ErrorForGood => (Fault::Error(EIO), u64::MAX),
            Menu::NoSpace => (Fault::Error(ENOSPC), 1),
            Menu::EndOfFile => (Fault::EndOfFile, 1),
            Menu::Lost => (Fault::LostWrite, 1),
            Menu::Misdirected => (Fault::Misdirected(BLOCKS * BLOCK as u32), 1),
            Menu::Torn => (Fault::TornWrite(512), 1),
            Menu::BitRot => (Fault::BitRot(9000), 1),
            Menu::Delay => (Fault::Delay(DELAY), 1),
            Menu::Reorder => (Fault::Reorder, 1),
        }
    }

    /// What a ring's completion says instead of `raw`, and how often.
    fn raw(self, raw: i32) -> i32 {
        match self {
            Menu::Short => 5000,
            Menu::Interrupted => -EINTR,
            Menu::Again => -EAGAIN,
            Menu::ErrorOnce | Menu::ErrorForGood => -EIO,
            Menu::NoSpace => -ENOSPC,
            Menu::EndOfFile => 0,
            _ => raw,
        }
    }

    /// What the issuer is told.
    fn outcome(self, operation: Operation) -> (Status, Option<i32>, u32) {
        let length = match operation {
            Operation::Readv | Operation::Writev => LENGTH,
            Operation::Fsync | Operation::Fdatasync | Operation::BeginWriteback => 0,
        };
        match self {
            Menu::Short => (Status::Partial, None, 5000),
            Menu::EndOfFile => (Status::Partial, None, 0),
            Menu::ErrorOnce | Menu::ErrorForGood => (Status::Error, Some(EIO), 0),
            Menu::NoSpace => (Status::Error, Some(ENOSPC), 0),
            _ => (Status::Ok, None, length),
        }
    }
}

/// What must have been hit.
type Cell = (Menu, Operation, Site, State);

/// Counts cells.
#[derive(Default)]
struct Meter(Mutex<BTreeMap<Cell, u64>>);

impl Meter {
    fn hit(&self, cell: Cell) {
        *self.0.lock().entry(cell).or_default() += 1;
    }

    fn wanted() -> Vec<Cell> {
        let mut cells = Vec::new();
        for menu in MENU {
            for operation in OPERATIONS {
                for site in SITES {
                    if menu.applies_to(operation) && menu.applies_at(site) {
                        cells.extend(STATES.map(|state| (menu, operation, site, state)));
                    }
                }
            }
        }
        cells
    }
}

struct Weighted(Weight);

impl Callback for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }
    fn weight(&self) -> Weight {
        self.0
    }
    fn complete(&self, _io: &mut Completion<'_>, prior: Outcome) -> Outcome {
        prior
    }
}

#[test]
fn every_fault_at_every_call_in_every_state_by_every_executor() {
    let meter = Arc::new(Meter::default());
    let wanted = Meter::wanted();
    for (number, &cell) in wanted.iter().enumerate() {
        let method = match cell.2 {
            Site::Inline => MethodKind::Sync,
            Site::Worker => MethodKind::Worker,
            Site::DeviceLight | Site::DeviceHeavy => MethodKind::Custom,
            Site::Ring => {
                run(Bench::real(MethodKind::IoUring), cell, &meter);
                continue;
            }
        };
        // The closure of a scheduled run is a function: the cell goes by way of the seed.
        let (meter, seed) = (Arc::clone(&meter), number as u64);
        let config = trunkline_aio::sync::sched::Config::new(seed);
        let result = trunkline_aio::sync::sched::run(config, move || {
            run(Bench::simulated(method, seed), cell, &meter);
        });
        result.unwrap_or_else(|failure| panic!("{cell:?}: {failure}"));
    }
    let hit = meter.0.lock();
    let empty: Vec<&Cell> = wanted.iter().filter(|cell| !hit.contains_key(cell)).collect();
    assert!(empty.is_empty(), "{} of {} cells empty: {empty:?}", empty.len(), wanted.len());
    assert_eq!(hit.len(), wanted.len());
    assert!(wanted.len() > 1200, "the menu has shrunk to {} cells", wanted.len());
}

fn issue(
    rig: &Rig,
    session: &mut Session,
    operation: Operation,
    slots: &mut trunkline_aio::Slots,
) -> WaitRef {
    let file = rig.file("a", 8);
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

/// One cell: an issuer and, while the thread that brought the handle into the state is held there,
/// a session that looks at the handle and joins it.
fn run(bench: Bench, cell: Cell, meter: &Arc<Meter>) {
    let (menu, operation, site, state) = cell;
    let rig = Arc::new(bench.start());
    drop(rig.file("a", 8));
    let struck = inject(&rig, menu, operation, site);
    let held =
        rig.hooks.stop(state, move |io| io.operation == operation || state <= State::HandedOut);
    let (theirs, looked) = (Arc::clone(&rig), Gate::new());
    let waits = looked.clone();
    let weight = if site == Site::DeviceHeavy { Weight::Heavy } else { Weight::Light };
    let issuer = spawn("issuer", move || {
        let mut session = theirs.session();
        let callbacks: Vec<Arc<dyn Callback>> = vec![Arc::new(Weighted(weight))];
        let mut slots = theirs.slots_with(1, BLOCKS, callbacks);
        issue(&theirs, &mut session, operation, &mut slots);
        // Not before it was looked at: one who waits may complete what is ready.
        waits.pass();
        let outcome = session.wait(&mut slots, 0).expect("not cancelled");
        judge(&theirs, cell, outcome, &mut slots);
        let again = repeat(&theirs, &mut session, cell, &mut slots);
        assert_eq!(again, menu != Menu::ErrorForGood, "{cell:?}: the second time");
    });
    let io = held.wait();
    let seen = match rig.row(io) {
        Some(row) => row.state == state.name(),
        None => state == State::Idle,
    };
    assert!(seen, "{cell:?} was not seen in its state");
    looked.open();
    let joining = Arc::new(AtomicBool::new(false));
    let (theirs, begun) = (Arc::clone(&rig), Arc::clone(&joining));
    let joiner = spawn("joiner", move || {
        let mut session = theirs.session();
        begun.store(true, Ordering::SeqCst);
        session.join(io).expect("not cancelled");
        assert!(session.is_complete(io));
    });
    rig.wait_until("the joiner", || joining.load(Ordering::SeqCst));
    if bench.is_simulated() {
        // Asleep in its join, or done where it can complete the I/O by itself.
        rig.quiet();
    }
    held.release();
    joiner.join().unwrap_or_else(|_| panic!("joiner of {cell:?}"));
    issuer.join().unwrap_or_else(|_| panic!("issuer of {cell:?}"));
    assert!(struck.load(Ordering::SeqCst) + rig.plan.struck() > 0, "{cell:?}: no fault");
    rig.settle();
    meter.hit(cell);
}

/// Sets the fault up; the counter says how often it has struck at a ring.
fn inject(rig: &Rig, menu: Menu, operation: Operation, site: Site) -> Arc<AtomicU64> {
    let struck = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&struck);
    let (fault, times) = menu.fault();
    if site != Site::Ring {
        rig.plan.set(vec![Rule::new(operation, 1, fault).times(times)]);
        return struck;
    }
    rig.hooks.change_results(move |io, raw| {
        if io.operation != operation || count.load(Ordering::SeqCst) >= times {
            return raw;
        }
        count.fetch_add(1, Ordering::SeqCst);
        menu.raw(raw)
    });
    struck
}

fn judge(rig: &Rig, cell: Cell, outcome: Outcome, slots: &mut trunkline_aio::Slots) {
    let (menu, operation, site, _) = cell;
    let told = (outcome.status, outcome.errno(), outcome.count);
    assert_eq!(told, menu.outcome(operation), "{cell:?}");
    let retried = rig.aio.counters().retried;
    let wanted = if matches!(menu, Menu::Interrupted | Menu::Again) { 3 } else { 0 };
    assert_eq!(retried, wanted, "{cell:?}");
    if menu == Menu::Delay {
        assert!(slots.device_time(0) >= DELAY, "{cell:?}: {:?}", slots.device_time(0));
    }
    let count = outcome.count as usize;
    if operation == Operation::Readv {
        let found = crate::rig::memory(slots, 0);
        let wanted = original(FIRST, BLOCKS);
        let wrong = found.iter().zip(&wanted).take(count).filter(|(a, b)| a != b).count();
        assert_eq!(wrong, usize::from(menu == Menu::BitRot), "{cell:?}");
    }
    if operation == Operation::Writev && site != Site::Ring {
        let start = FIRST as usize * BLOCK;
        let new: Vec<u8> = (FIRST..FIRST + BLOCKS).flat_map(|b| content(0, b, NEW)).collect();
        let found = rig.bytes("a");
        let old = original(0, 8);
        let written = found[start..start + new.len()].iter().zip(&new).filter(|(a, b)| a == b);
        let same = written.count();
        match menu {
            Menu::Short => assert_eq!(found[start..start + 5000], new[..5000], "{cell:?}"),
            Menu::Lost | Menu::ErrorOnce | Menu::ErrorForGood | Menu::NoSpace => {
                assert_eq!(found, old, "{cell:?}");
            }
            Menu::Misdirected => {
                assert_eq!(found[..start + new.len()], old[..start + new.len()], "{cell:?}");
                assert_eq!(found[start + new.len()..start + 2 * new.len()], new, "{cell:?}");
            }
            Menu::Torn => {
                let (head, tail) = (&found[start..start + 512], &found[start + 512..start + 1024]);
                assert!(head == &new[..512] && tail == &old[start + 512..start + 1024], "{cell:?}");
            }
            _ => assert_eq!(same, new.len(), "{cell:?}"),
        }
    }
}

/// Does the same once more; whether it went well.
fn repeat(rig: &Rig, session: &mut Session, cell: Cell, slots: &mut trunkline_aio::Slots) -> bool {
    issue(rig, session, cell.1, slots);
    session.wait(slots, 0).expect("not cancelled").status == Status::Ok
}

/// Reordering is real: a read that is told to be overtaken finds what was written by an I/O that
/// was issued after it.
#[test]
fn a_reordered_io_is_overtaken() {
    for method in [MethodKind::Worker, MethodKind::Custom] {
        for seed in 0..20 {
            run_seed(method, seed, |bench| {
                let rig = bench.start();
                let file = rig.file("a", 8);
                let mut session = rig.session();
                let mut slots = rig.slots(2, 1);
                // A mount that has never answered would be asked for one thing at a time.
                read(&mut session, &file, 0, 1, &mut slots, 0);
                wait_ok(&mut session, &mut slots, 0);
                rig.plan.set(vec![Rule::new(Operation::Readv, 1, Fault::Reorder)]);
                read(&mut session, &file, 3, 1, &mut slots, 0);
                write(&mut session, &file, 3, 1, NEW, &mut slots, 1);
                wait_ok(&mut session, &mut slots, 0);
                assert_eq!(crate::rig::memory(&mut slots, 0), content(0, 3, NEW));
                wait_ok(&mut session, &mut slots, 1);
            });
        }
    }
}
