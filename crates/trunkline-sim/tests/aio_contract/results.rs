//! I/O results: short, failed, interrupted and retried I/O, injected as the storage would report it
//! (PG 21 to 27).
//!
//! We overwrite the memory past the end of the result, so that no test can pass by accident.

use trunkline_aio::facade::Arc;
use trunkline_aio::{
    Callback, Class, Completion, File, Operation, Outcome, Session, Slots, Status, WaitRef, Weight,
};
use trunkline_sim::matrix::io::{
    check, check_real, check_seeds, check_simulated, memory, original, read, wait_ok, write,
};
use trunkline_sim::matrix::{Environment, Instance, SIMULATED};
use trunkline_sim::{BLOCK, Fault, Rule};

/// Lengths at which we cut a one-block read: every 512 bytes, plus some odd lengths.
fn cuts() -> impl Iterator<Item = u32> {
    (0..=BLOCK as u32).step_by(512).chain([1, 17, 511, 513, 4095, 4097, 8191])
}

fn cut_is_right(slots: &mut Slots, outcome: Outcome, cut: u32, context: &str) {
    let whole = cut as usize == BLOCK;
    let status = if whole { Status::Ok } else { Status::Partial };
    assert_eq!((outcome.status, outcome.count), (status, cut), "{context}");
    assert_eq!(outcome.is_end_of_file(), cut == 0, "{context}");
    let found = memory(slots, 0);
    let (head, tail) = found.split_at(cut as usize);
    assert_eq!(head, &original(2, 1)[..cut as usize], "{context}");
    let stranger = tail.iter().all(|&byte| byte == 0xA5 || byte == 0xEE);
    assert!(stranger, "{context}: bytes beyond the {cut} that were read");
}

/// Reads a block with each of the cuts, which `set` applies to the next read.
fn check_cuts(environment: Environment, set: fn(&Instance, u32)) {
    let instance = environment.start();
    let file = instance.file("a", 4);
    let mut session = instance.session();
    for cut in cuts() {
        let mut slots = instance.slots(1, 1);
        set(&instance, cut);
        read(&mut session, &file, 2, 1, &mut slots, 0);
        let outcome = session.wait(&mut slots, 0).expect("not cancelled");
        cut_is_right(&mut slots, outcome, cut, &format!("{environment:?} cut at {cut}"));
    }
}

#[test]
fn a_read_cut_at_every_length_is_partial_with_its_length() {
    check(|environment| {
        check_cuts(environment, |instance, cut| {
            instance.probe.change_results(move |_, raw| if raw > 0 { cut as i32 } else { raw });
        });
    });
}

/// As before, but the disk itself transfers less.
#[test]
fn a_short_read_of_every_length_is_reported() {
    check_simulated(|environment| {
        check_cuts(environment, |instance, cut| {
            instance.plan.set(vec![Rule::new(Operation::Readv, 1, Fault::Short(cut))]);
        });
    });
}

/// Every method must detect the end of a real file.
#[test]
fn a_read_past_the_end_of_the_file_is_short() {
    check_real(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let mut session = instance.session();
        for end in [0, 1, 512, 8191, 8192, 8193, 20_000] {
            let path = instance.path("a");
            let handle = std::fs::File::options().write(true).open(path).expect("opens");
            handle.set_len(end).expect("truncates");
            let mut slots = instance.slots(1, 3);
            read(&mut session, &file, 0, 3, &mut slots, 0);
            let outcome = session.wait(&mut slots, 0).expect("not cancelled");
            assert_eq!(u64::from(outcome.count), end, "{environment:?}");
            assert_eq!(outcome.is_end_of_file(), end == 0);
            read(&mut session, &file, 40, 1, &mut slots, 0);
            let outcome = session.wait(&mut slots, 0).expect("not cancelled");
            assert!(outcome.is_end_of_file(), "{environment:?}: far beyond the end");
        }
    });
}

/// Slots with memory made up of one-block pieces.
fn pieces(instance: &Instance, count: u32) -> Slots {
    let mut slots = instance.slots(1, 1);
    let memory = slots.memory(0).expect("idle");
    for _ in 1..count {
        let mut lease = instance.aio.region().lease(1).expect("a frame");
        lease.fill(0xEE);
        memory.push(lease);
    }
    slots
}

/// PG 23: a multi-block read is short by one, two or three blocks, and the issuer reads the rest.
#[test]
fn pg23_a_combined_read_cut_at_every_block_is_continued_by_the_issuer() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 8);
        let mut session = instance.session();
        for blocks in 0..=4_u32 {
            for odd in [0, 100] {
                let cut = (blocks * BLOCK as u32 + odd).min(4 * BLOCK as u32);
                let mut slots = pieces(&instance, 4);
                instance.probe.change_results(move |_, raw| raw.min(cut as i32));
                read(&mut session, &file, 1, 4, &mut slots, 0);
                let outcome = session.wait(&mut slots, 0).expect("not cancelled");
                assert_eq!(outcome.count, cut);
                let found = memory(&mut slots, 0);
                assert_eq!(
                    found[..cut as usize],
                    original(1, 4)[..cut as usize],
                    "{environment:?}"
                );
                instance.probe.keep_results();
                let whole = cut / BLOCK as u32;
                if whole < 4 {
                    let mut rest = pieces(&instance, 4 - whole);
                    read(&mut session, &file, 1 + whole, 4 - whole, &mut rest, 0);
                    wait_ok(&mut session, &mut rest, 0);
                    assert_eq!(memory(&mut rest, 0), original(1 + whole, 4 - whole));
                }
            }
        }
    });
}

/// PG 21: a result of exactly the full length must not count as a short read.
#[test]
fn pg21_a_result_equal_to_the_full_length_is_ok() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 3));
        instance.probe.change_results(|io, _| io.length as i32);
        read(&mut session, &file, 0, 3, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0), original(0, 3));
    });
}

/// PG 22: only 17 bytes of one block are transferred.
#[test]
fn pg22_a_result_of_seventeen_bytes_is_reported() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 1));
        instance.probe.change_results(|_, _| 17);
        read(&mut session, &file, 0, 1, &mut slots, 0);
        let outcome = session.wait(&mut slots, 0).expect("not cancelled");
        assert_eq!((outcome.status, outcome.count), (Status::Partial, 17));
        assert_eq!(slots.describe(outcome), "only 17 bytes transferred");
        assert_ne!(memory(&mut slots, 0), original(0, 1), "the rest was overwritten");
    });
}

/// A callback that reports the first block that isn't version 0 of file 0.
struct Verify(Weight);

impl Callback for Verify {
    fn name(&self) -> &'static str {
        "verify"
    }
    fn weight(&self) -> Weight {
        self.0
    }
    fn complete(&self, io: &mut Completion<'_>, prior: Outcome) -> Outcome {
        let whole = prior.count as usize / BLOCK;
        let blocks = io.memory.iter().flat_map(|lease| lease.chunks(BLOCK)).take(whole);
        let first = io.offset as u32 / BLOCK as u32;
        for (block, bytes) in (first..).zip(blocks) {
            let mut names = bytes
                .chunks(4)
                .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            if [names.next(), names.next(), names.next()] != [Some(0), Some(block), Some(0)] {
                return Outcome::new(Status::Error, block, 0);
            }
        }
        prior
    }
    fn report(&self, outcome: Outcome) -> Option<String> {
        Some(format!("bad block {}", outcome.detail))
    }
}

/// PG 24: if a read is short and there is a bad block in the part that wasn't read, the bad block
/// must be found when the rest is read. We test this with both light and heavy callbacks.
#[test]
fn pg24_a_bad_block_behind_a_cut_is_found_in_the_second_read() {
    check(|environment| {
        for weight in [Weight::Light, Weight::Heavy] {
            let instance = environment.start();
            let file = instance.file("a", 8);
            let mut session = instance.session();
            let mut slots = instance.slots(1, 4);
            write(&mut session, &file, 3, 1, 1, &mut slots, 0);
            wait_ok(&mut session, &mut slots, 0);
            let mut slots = instance.slots_with(1, 4, vec![Arc::new(Verify(weight))]);
            instance.probe.change_results(|_, raw| raw.min(2 * BLOCK as i32));
            read(&mut session, &file, 0, 4, &mut slots, 0);
            let outcome = session.wait(&mut slots, 0).expect("not cancelled");
            assert_eq!((outcome.status, outcome.count), (Status::Partial, 2 * BLOCK as u32));
            instance.probe.keep_results();
            read(&mut session, &file, 2, 2, &mut slots, 0);
            let outcome = session.wait(&mut slots, 0).expect("not cancelled");
            assert_eq!((outcome.status, outcome.reporter, outcome.detail), (Status::Error, 1, 3));
            assert_eq!(slots.describe(outcome), "bad block 3");
            assert_eq!(outcome.errno(), None, "the method did not fail");
        }
    });
}

/// PG 25: every operation fails with EIO twice and then succeeds.
#[test]
fn pg25_eio_is_reported_each_time_until_it_ends() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let mut session = instance.session();
        for operation in trunkline_aio::OPERATIONS {
            let mut slots = instance.slots(1, 1);
            for round in 0..4 {
                instance.probe.change_results(move |_, raw| if round < 2 { -5 } else { raw });
                issue(&mut session, operation, &file, &mut slots);
                let outcome = session.wait(&mut slots, 0).expect("not cancelled");
                let wanted = (round < 2).then_some(5);
                assert_eq!(outcome.errno(), wanted, "{environment:?} {operation:?} round {round}");
            }
        }
        assert_eq!(
            instance.aio.counters().by_kind.iter().flatten().map(|c| c.errors).sum::<u64>(),
            10
        );
    });
}

fn issue(session: &mut Session, operation: Operation, file: &File, slots: &mut Slots) -> WaitRef {
    let io = session.acquire(Class::Foreground).expect("a handle");
    match operation {
        Operation::Readv => io.read(file, 0, BLOCK as u32, slots, 0).expect("defined"),
        Operation::Writev => io.write(file, 0, BLOCK as u32, slots, 0).expect("defined"),
        Operation::Fsync => io.fsync(file, slots, 0),
        Operation::Fdatasync => io.fdatasync(file, slots, 0),
        Operation::BeginWriteback => io.begin_writeback(file, 0, BLOCK as u32, slots, 0),
    }
}

/// PG 26: an EROFS error has the right text.
#[test]
fn pg26_an_errno_is_reported_with_its_text() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 1));
        instance.probe.change_results(|_, _| -30);
        read(&mut session, &file, 0, 1, &mut slots, 0);
        let outcome = session.wait(&mut slots, 0).expect("not cancelled");
        assert!(slots.describe(outcome).contains("Read-only file system"), "{outcome:?}");
    });
}

/// PG 27: an I/O fails when a worker tries to execute it. The issuer must get the error, and the
/// worker pool must keep working.
#[test]
fn pg27_a_failure_in_a_worker_leaves_the_pool_alive() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 1));
        for round in 0..20 {
            let fails = round % 2 == 0;
            instance.probe.change_results(move |_, raw| if fails { -2 } else { raw });
            read(&mut session, &file, 1, 1, &mut slots, 0);
            let outcome = session.wait(&mut slots, 0).expect("not cancelled");
            assert_eq!(outcome.errno(), fails.then_some(2));
            if fails {
                assert!(slots.describe(outcome).starts_with("No such file"));
            } else {
                assert_eq!(memory(&mut slots, 0), original(1, 1));
            }
        }
        if environment.method != trunkline_aio::MethodKind::Sync {
            instance.wait_until("the least number of workers", || instance.aio.worker_count() >= 2);
        }
    });
}

/// The method retries EINTR and EAGAIN, so the issuer never sees them.
#[test]
fn interrupted_io_is_retried_by_the_method() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 1));
        for operation in trunkline_aio::OPERATIONS {
            for errno in [4, 11] {
                let mut left = 3;
                let before = instance.aio.counters().retried;
                instance.probe.change_results(move |_, raw| {
                    left -= 1;
                    if left >= 0 { -errno } else { raw }
                });
                issue(&mut session, operation, &file, &mut slots);
                wait_ok(&mut session, &mut slots, 0);
                assert_eq!(
                    instance.aio.counters().retried - before,
                    3,
                    "{environment:?} {operation:?}"
                );
            }
        }
        instance.probe.keep_results();
        read(&mut session, &file, 1, 1, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0), original(1, 1));
    });
}

/// If EAGAIN never ends, it must become an error instead of hanging the issuer.
#[test]
fn permanent_eagain_becomes_an_error() {
    let case = |environment: Environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let (mut session, mut slots) = (instance.session(), instance.slots(1, 1));
        instance.probe.change_results(|_, _| -11);
        read(&mut session, &file, 0, 1, &mut slots, 0);
        let outcome = session.wait(&mut slots, 0).expect("not cancelled");
        assert_eq!(outcome.errno(), Some(11));
        let retried = instance.aio.counters().retried;
        assert!((1000..=1001).contains(&retried), "{retried}");
    };
    check_real(case);
    check_seeds(&SIMULATED, 2, case);
}

/// Many results of different lengths arrive together. Each result must reach its own I/O.
#[test]
fn results_that_arrive_together_reach_their_own_io() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 32);
        let (mut session, mut slots) = (instance.session(), instance.slots(16, 6));
        for _ in 0..if environment.is_simulated() { 1 } else { 50 } {
            {
                let mut batch = session.batch();
                for slot in 0..16 {
                    read(&mut batch, &file, slot, slot % 6 + 1, &mut slots, slot as usize);
                }
            }
            for slot in 0..16 {
                let outcome = wait_ok(&mut session, &mut slots, slot);
                let blocks = slot as u32 % 6 + 1;
                assert_eq!(outcome.count, blocks * BLOCK as u32, "{environment:?} slot {slot}");
                let found = &memory(&mut slots, slot)[..outcome.count as usize];
                assert!(found == original(slot as u32, blocks), "{environment:?} slot {slot}");
            }
        }
    });
}
