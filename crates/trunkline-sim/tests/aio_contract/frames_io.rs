//! I/O by frame number, into frames leased by another owner. The buffer pool reads and writes its
//! buffers this way.
//!
//! The cases cover order and adjacency of frames, partial results, and invalid numbers. The slot's
//! own memory must not be used.

#[path = "../../../trunkline-aio/tests/it/frames.rs"]
mod frames;

use frames::{Frames, read_frames, write_frames};
use trunkline_aio::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{
    Batch, Builder, Callback, Class, Completer, Completion, DefineError, Executor, File, InFlight,
    Io, Kernel, Method, MethodKind, OpenOptions, Operation, Outcome, Request, Session, Slots,
    Status, Weight,
};
use trunkline_sim::BLOCK;
use trunkline_sim::matrix::io::{check, check_seeds, memory, original, read, wait_ok};
use trunkline_sim::matrix::{Environment, Instance, REAL, SIMULATED};

/// Orders of frames: adjacent, scattered, descending, and runs with gaps.
const ORDERS: [&[usize]; 5] =
    [&[0, 1, 2, 3], &[6, 1, 4, 9], &[3, 2, 1, 0], &[4, 5, 6, 0, 1, 9], &[7]];

/// A callback that records how many leases a completion sees, and for which I/O.
#[derive(Default)]
struct Recorder {
    heavy: bool,
    completed: AtomicU32,
    io: AtomicU64,
    leases: AtomicU64,
}

impl Callback<Vec<u64>> for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }
    fn weight(&self) -> Weight {
        if self.heavy { Weight::Heavy } else { Weight::Light }
    }
    fn complete(&self, io: &mut Completion<'_, Vec<u64>>, prior: Outcome) -> Outcome {
        self.completed.fetch_add(1, Ordering::SeqCst);
        self.io.store(io.wait_ref.to_bits(), Ordering::SeqCst);
        self.leases.store(io.memory.len() as u64, Ordering::SeqCst);
        assert_eq!(io.payload, &[17], "the callback finds its frames by the words");
        prior
    }
}

/// A slot with one data word but no memory.
fn bare_slot(recorder: &Arc<Recorder>) -> Slots<Vec<u64>> {
    let mut slots =
        Slots::with_callbacks(1, vec![Arc::clone(recorder) as Arc<dyn Callback<Vec<u64>>>]);
    slots.payload(0).expect("idle").push(17);
    slots
}

fn io(session: &mut Session) -> Io<'_> {
    session.acquire(Class::Foreground).expect("a handle")
}

#[test]
fn a_read_fills_frames_in_the_given_order() {
    check(|environment| {
        for heavy in [false, true] {
            let instance = environment.start();
            let file = instance.file("a", 16);
            let mut session = instance.session();
            let recorder = Arc::new(Recorder { heavy, ..Recorder::default() });
            let mut slots = bare_slot(&recorder);
            for which in ORDERS {
                let frames = Frames::new(&instance.aio, 10, 0xEE);
                let numbers = frames.numbers(which);
                let offset = 5 * BLOCK as u64;
                let issued = read_frames(io(&mut session), &file, offset, &numbers, &mut slots, 0);
                let issued = issued.expect("defined");
                let outcome = wait_ok(&mut session, &mut slots, 0);
                assert_eq!(outcome.count as usize, which.len() * BLOCK, "{environment:?}");
                assert!(frames.bytes(which) == original(5, which.len() as u32), "{environment:?}");
                let rest: Vec<usize> = (0..10).filter(|at| !which.contains(at)).collect();
                assert!(frames.bytes(&rest).iter().all(|&byte| byte == 0xEE), "{environment:?}");
                assert_eq!(recorder.io.load(Ordering::SeqCst), issued.to_bits());
                assert_eq!(recorder.leases.load(Ordering::SeqCst), 0);
                instance.settle();
            }
            assert_eq!(recorder.completed.load(Ordering::SeqCst), ORDERS.len() as u32);
        }
    });
}

#[test]
fn a_write_uses_frames_in_the_given_order_and_leaves_them_readable() {
    check(|environment| {
        for which in ORDERS {
            let instance = environment.start();
            let file = instance.file("a", 12);
            let mut session = instance.session();
            let recorder = Arc::new(Recorder::default());
            let mut slots = bare_slot(&recorder);
            let frames = Frames::new(&instance.aio, 10, 0);
            (0..10).for_each(|at| frames.put(at, &[at as u8 + 1; BLOCK]));
            let numbers = frames.numbers(which);
            let offset = 2 * BLOCK as u64;
            let issued = write_frames(io(&mut session), &file, offset, &numbers, &mut slots, 0);
            issued.expect("defined");
            // The frames stay readable while the write is in flight.
            let mut wanted = frames.bytes(which);
            wait_ok(&mut session, &mut slots, 0);
            wanted.splice(0..0, original(0, 2));
            wanted.extend(original(2 + which.len() as u32, 10 - which.len() as u32));
            assert!(instance.bytes("a") == wanted, "{environment:?} {which:?}");
            instance.settle();
        }
    });
}

/// Uses the same slots in turn for I/O into frames, for I/O into the slots' own memory, and for a
/// sync. A read into frames must leave the slots' own memory unchanged.
#[test]
fn io_by_frames_does_not_use_the_memory_of_the_slot() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.handles(1, 0, 0));
        let file = instance.file("a", 8);
        let mut session = instance.session();
        let recorder = Arc::new(Recorder::default());
        let mut slots =
            instance.slots_with(1, 2, vec![Arc::clone(&recorder) as Arc<dyn Callback<Vec<u64>>>]);
        slots.payload(0).expect("idle").push(17);
        let frames = Frames::new(&instance.aio, 2, 0);
        for round in 0..3 {
            let numbers = frames.numbers(&[0, 1]);
            read_frames(io(&mut session), &file, 0, &numbers, &mut slots, 0).expect("defined");
            wait_ok(&mut session, &mut slots, 0);
            assert_eq!(recorder.leases.load(Ordering::SeqCst), 0);
            if round == 0 {
                assert!(memory(&mut slots, 0).iter().all(|&byte| byte == 0xEE));
            }
            match round {
                0 => _ = read(&mut session, &file, 3, 2, &mut slots, 0),
                _ => _ = io(&mut session).fsync(&file, &mut slots, 0),
            }
            wait_ok(&mut session, &mut slots, 0);
            assert_eq!(recorder.leases.load(Ordering::SeqCst), 1, "{environment:?}");
            assert!(memory(&mut slots, 0) == original(3, 2));
            assert!(frames.bytes(&[0, 1]) == original(0, 2));
        }
    });
}

#[test]
fn partial_results_errors_and_the_end_of_the_file_are_reported() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 6);
        let mut session = instance.session();
        let recorder = Arc::new(Recorder::default());
        let mut slots = bare_slot(&recorder);
        let frames = Frames::new(&instance.aio, 8, 0x11);
        let which = [5, 0, 1, 3];
        let numbers = frames.numbers(&which);
        let mut once = |offset: u32, writes: bool| {
            let (io, offset) = (io(&mut session), u64::from(offset) * BLOCK as u64);
            let issued = match writes {
                false => read_frames(io, &file, offset, &numbers, &mut slots, 0),
                true => write_frames(io, &file, offset, &numbers, &mut slots, 0),
            };
            issued.expect("defined");
            session.wait(&mut slots, 0).expect("not cancelled")
        };
        for cut in [0, 1, 17, BLOCK, BLOCK + 1, 3 * BLOCK, 4 * BLOCK - 1] {
            instance.probe.change_results(move |_, raw| raw.min(cut as i32));
            let outcome = once(0, false);
            assert_eq!((outcome.status, outcome.count), (Status::Partial, cut as u32));
            let found = frames.bytes(&which);
            assert!(found[..cut] == original(0, 4)[..cut], "{environment:?} {cut}");
            assert!(found[cut..].iter().all(|&byte| byte == 0xA5), "{environment:?} {cut}");
            let outcome = once(0, true);
            assert_eq!((outcome.status, outcome.count), (Status::Partial, cut as u32));
            assert!(frames.bytes(&which) == found, "a write does not change its memory");
            // Restores what the storage has written.
            instance.probe.keep_results();
            which.iter().enumerate().for_each(|(at, &f)| frames.put(f, &original(at as u32, 1)));
            assert_eq!(once(0, true).status, Status::Ok);
        }
        for writes in [false, true] {
            instance.probe.change_results(|_, _| -5);
            assert_eq!(once(0, writes).errno(), Some(5), "{environment:?}");
            let mut left = 3;
            instance.probe.change_results(move |_, raw| {
                left -= 1;
                if left >= 0 { -4 } else { raw }
            });
            assert_eq!(once(0, writes).status, Status::Ok, "interrupted is not seen");
            instance.probe.keep_results();
        }
        let outcome = once(4, false);
        assert_eq!((outcome.status, outcome.count), (Status::Partial, 2 * BLOCK as u32));
        assert!(frames.bytes(&which[..2]) == original(4, 2), "{environment:?}");
        assert_eq!(once(6, false).count, 0, "beyond the end");
    });
}

/// Invalid frames must be rejected before anything is issued, and both session and slot must stay
/// usable.
#[test]
fn invalid_frames_are_rejected_and_the_handle_is_released() {
    check(|environment| {
        let instance =
            environment.start_with(|b| b.handles(1, 0, 0).iovecs(3).region_bytes(80 * BLOCK));
        let file = instance.file("a", 16);
        let mut session = instance.session();
        let recorder = Arc::new(Recorder::default());
        let mut slots = bare_slot(&recorder);
        let frames = Frames::new(&instance.aio, 12, 0);
        let count = instance.aio.region().frames();
        let scattered = frames.numbers(&[1, 3, 5, 7]);
        for (numbers, offset, wanted) in [
            (vec![0, count], 0, DefineError::NoSuchFrame { frame: count, frames: count }),
            (vec![u32::MAX], 0, DefineError::NoSuchFrame { frame: u32::MAX, frames: count }),
            (vec![u32::MAX - 1, u32::MAX], 0, {
                DefineError::NoSuchFrame { frame: u32::MAX - 1, frames: count }
            }),
            (scattered, 0, DefineError::TooManyPieces { limit: 3 }),
            (vec![0], i64::MAX as u64, DefineError::BeyondOffsets { offset: i64::MAX as u64 }),
        ] {
            for writes in [false, true] {
                let io = io(&mut session);
                let refused = match writes {
                    false => read_frames(io, &file, offset, &numbers, &mut slots, 0),
                    true => write_frames(io, &file, offset, &numbers, &mut slots, 0),
                };
                assert_eq!(refused, Err(wanted.clone()), "{environment:?}");
                assert_eq!((session.in_flight(), slots.pending()), (0, 0));
            }
        }
        assert_eq!(wanted_text(count), format!("frame {count} of a region of {count} frames"));
        // Twelve frames in three contiguous pieces are accepted.
        let which = [4, 5, 6, 7, 8, 9, 10, 11, 2, 3, 0, 1];
        let numbers = frames.numbers(&which);
        read_frames(io(&mut session), &file, 0, &numbers, &mut slots, 0).expect("defined");
        wait_ok(&mut session, &mut slots, 0);
        assert!(frames.bytes(&which) == original(0, 12), "{environment:?}");
        // Without frames, this is an I/O of length 0.
        read_frames(io(&mut session), &file, 0, &[], &mut slots, 0).expect("defined");
        assert_eq!(wait_ok(&mut session, &mut slots, 0).count, 0);
    });
}

fn wanted_text(count: u32) -> String {
    DefineError::NoSuchFrame { frame: count, frames: count }.to_string()
}

/// The total length is limited to what one system call can transfer, no matter how few pieces there
/// are.
#[test]
fn io_longer_than_one_system_call_is_rejected() {
    let instance = Environment::real(MethodKind::Sync).start_with(|b| b.region_bytes(16 << 20));
    let file = instance.file("a", 1);
    let mut session = instance.session();
    let mut slots = Slots::new(1);
    let all: Vec<u32> = (0..instance.aio.region().frames()).collect();
    let endless = all.repeat(129);
    let refused = write_frames(io(&mut session), &file, 0, &endless, &mut slots, 0);
    assert_eq!(refused, Err(DefineError::TooLong { limit: 0x7FFF_E000 }));
}

/// Records the iovec lengths of every request just before the request is passed to the kernel. This
/// can be used directly as an executor, or wrapped in [`Passes`] as a method.
#[derive(Default)]
struct Pieces(Mutex<Vec<Vec<usize>>>);

impl Pieces {
    fn look(&self, request: &mut Request<'_>) {
        let lengths = match request.operation {
            Operation::Readv => request.targets().map(|piece| piece.len()).collect(),
            Operation::Writev => request.sources().map(<[u8]>::len).collect(),
            Operation::Fsync | Operation::Fdatasync | Operation::BeginWriteback => Vec::new(),
        };
        self.0.lock().push(lengths);
    }
}

impl Executor for Pieces {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        self.look(request);
        Kernel.execute(request)
    }
    fn advise(&self, _file: &File, _offset: u64, _length: u64) -> bool {
        false
    }
}

struct Passes(Arc<Pieces>);

impl Method for Passes {
    fn submit(&self, core: &Arc<InFlight>, batch: &mut Batch<'_>) {
        while let Some(mut io) = batch.take() {
            self.0.look(&mut core.request(&mut io));
            core.execute(io, Completer::Worker);
        }
    }
}

#[test]
fn adjacent_frames_are_one_piece() {
    for method in [MethodKind::Sync, MethodKind::Worker, MethodKind::Custom] {
        let (seen, passed) = (Arc::new(Pieces::default()), Arc::new(Pieces::default()));
        let aio = Builder::new()
            .executor(Arc::clone(&seen) as Arc<_>)
            .custom_method(Arc::new(Passes(Arc::clone(&passed))))
            .method(method)
            .inline_write_max(0)
            .start()
            .expect("starts");
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, original(0, 16)).expect("writes the sample");
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        let file = aio.open(&path, options).expect("opens");
        let mut session = aio.session().expect("a session");
        let mut slots = Slots::new(1);
        let frames = Frames::new(&aio, 10, 0);
        for (which, wanted) in [
            (&[0, 1, 2, 3][..], &[4][..]),
            (&[6, 1, 4, 9], &[1, 1, 1, 1]),
            (&[3, 2, 1, 0], &[1, 1, 1, 1]),
            (&[4, 5, 6, 0, 1, 9], &[3, 2, 1]),
        ] {
            let numbers = frames.numbers(which);
            for writes in [false, true] {
                let io = session.acquire(Class::Maintenance).expect("a handle");
                let issued = match writes {
                    false => read_frames(io, &file, 0, &numbers, &mut slots, 0),
                    true => write_frames(io, &file, 0, &numbers, &mut slots, 0),
                };
                issued.expect("defined");
                wait_ok(&mut session, &mut slots, 0);
                let wanted: Vec<usize> = wanted.iter().map(|blocks| blocks * BLOCK).collect();
                assert_eq!(seen.0.lock().pop(), Some(wanted.clone()), "{method} {which:?}");
                let by_method = (method == MethodKind::Custom).then_some(wanted);
                assert_eq!(passed.0.lock().pop(), by_method, "{method} {which:?}");
            }
        }
    }
}

/// When an I/O uses frames, it's the owner of the frames that keeps them alive, not the slots. Here
/// the issuer drops its slots while the I/O is still in flight.
#[test]
fn io_by_frames_outlives_its_issuer() {
    let case = |environment: Environment| {
        let instance: Instance = environment.start();
        let file = instance.file("a", 8);
        let frames = Frames::new(&instance.aio, 4, 0);
        let mut joiner = instance.session();
        let issued = {
            let mut session = instance.session();
            let recorder = Arc::new(Recorder::default());
            let mut slots = bare_slot(&recorder);
            let numbers = frames.numbers(&[3, 0, 2, 1]);
            read_frames(io(&mut session), &file, 0, &numbers, &mut slots, 0).expect("defined")
        };
        drop(file);
        joiner.join(issued).expect("not cancelled");
        assert!(frames.bytes(&[3, 0, 2, 1]) == original(0, 4), "{environment:?}");
    };
    check_seeds(&SIMULATED, 60, case);
    REAL.into_iter().for_each(|method| case(Environment::real(method)));
}
