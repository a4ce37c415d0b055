//! A client's session with one pool: a backend, its streams, and the pages it keeps pinned.
//!
//! All calls into the pool are made here. Before each call, the session sets the stream or single
//! read that makes it, and the probe attributes reads to that owner. After the call, we compare the
//! outcome with the expectations.

use super::Run;
use super::meter::Kind;
use super::model::SHAPES;
use super::page_check::PageCheck;
use super::read_probe::{self, Issuer};
use super::reader::{Reader, failure};
use crate::waker::CountingWaker;
use std::task::{Context, Poll};
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::thread;
use trunkline_engine::pool::{Backend, PINS_GUARANTEED, Pin, ReadError, Strategy};
use trunkline_engine::read_stream::StreamPage;
use trunkline_format::BlockNo;

/// Crowds prefer relations of at most this many blocks.
const CROWDED_BLOCKS_MAX: BlockNo = 20;

/// Maximum number of consecutive polls by an executor that doesn't wait for wake-ups.
const BUSY_POLLS_MAX: u32 = 300;

/// The number of blocks a crowd reads most often.
pub(super) const HOT_BLOCKS: BlockNo = 3;

/// What the clients have done. The counts would reveal a workload that no longer waits, cancels or
/// abandons anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages returned, locked and checked.
    pub pages: u64,
    /// Blocks for which the issuer received an error.
    pub errors: u64,
    /// Waits for a content lock, by mode: share, share-exclusive, exclusive.
    pub lock_waits: [u64; 3],
    /// Cancelled waits.
    pub cancelled: u64,
    /// Requests that failed because the session was at its pin limit.
    pub too_many_pins: u64,
    /// Polls that returned `Poll::Pending`.
    pub pending: u64,
    /// Streams read to their end.
    pub ended: u64,
    /// Streams dropped before their end.
    pub dropped: u64,
    /// Threads that ended without releasing their streams and pins.
    pub vanished: u64,
    /// Relations invalidated, truncated or extended.
    pub resized: u64,
}

impl Counts {
    /// Adds another client's counts.
    pub fn add(&mut self, other: &Counts) {
        self.pages += other.pages;
        self.errors += other.errors;
        self.lock_waits.iter_mut().zip(other.lock_waits).for_each(|(sum, more)| *sum += more);
        self.cancelled += other.cancelled;
        self.too_many_pins += other.too_many_pins;
        self.pending += other.pending;
        self.ended += other.ended;
        self.dropped += other.dropped;
        self.vanished += other.vanished;
        self.resized += other.resized;
    }
}

/// A page that stays pinned across steps.
struct Kept {
    pin: Pin,
    relation: usize,
    block: BlockNo,
}

/// A session with one pool.
pub(super) struct PoolSession {
    pub(super) pool: usize,
    pub(super) backend: Backend,
    pub(super) readers: Vec<Reader>,
    kept: Vec<Kept>,
}

/// Outcome of requesting the next page of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The stream returned a page or an error.
    Block,
    End,
    /// The session was cancelled, but the request can be repeated.
    Again,
    /// The session is at its pin limit.
    TooManyPins,
    /// The consumer stopped polling while the stream was still pending.
    Left,
}

impl PoolSession {
    pub(super) fn new(run: &Run, pool: usize, backend: Backend) -> Self {
        let mut session = Self { pool, backend, readers: Vec::new(), kept: Vec::new() };
        run.cancellers.lock().push(session.backend.session().canceller());
        session
    }

    /// Whether the session has no streams and no pins.
    pub(super) fn is_idle(&self) -> bool {
        self.readers.is_empty() && self.kept.is_empty()
    }

    /// A random relation of this pool. Crowds prefer small relations.
    pub(super) fn some_relation(&self, run: &Run, rng: &mut Rng) -> usize {
        loop {
            let relation = rng.below(SHAPES.len() as u64) as usize;
            let is_small = SHAPES[relation].floor == SHAPES[relation].blocks
                && SHAPES[relation].blocks <= CROWDED_BLOCKS_MAX;
            if run.workload.crowd && !is_small && rng.below(4) > 0 {
                continue;
            }
            if SHAPES[relation].pool == self.pool {
                return relation;
            }
        }
    }

    /// Reads and checks one page. Sometimes requests a block past the end, which must fail.
    pub(super) fn single(
        &mut self,
        run: &Run,
        rng: &mut Rng,
        client: u32,
        counts: &mut Counts,
    ) -> Option<(Pin, usize, BlockNo)> {
        let relation = self.some_relation(run, rng);
        // Sometimes choose a block past the end.
        let blocks = SHAPES[relation].blocks + 2;
        let crowded = run.workload.crowd && rng.below(2) == 0;
        let block = rng.below(u64::from(if crowded { HOT_BLOCKS } else { blocks })) as BlockNo;
        if run.workload.fickle && rng.below(4) == 0 {
            self.backend.session().canceller().cancel();
        }
        let owner = run.new_owner();
        let policy = self.backend.policy();
        let (kind, strategy) = (Kind::Single, Strategy::Normal);
        read_probe::set_issuer(Issuer { client, owner, relation, policy, kind, strategy });
        let read = self.backend.read(&run.relations[relation], block);
        run.check_warnings(&mut self.backend, owner);
        let pin = match read {
            Ok(pin) => Some(pin),
            Err(ReadError::Cancelled) => {
                counts.cancelled += 1;
                self.backend.session().clear_cancel();
                // The read may still be in flight. No owner receives its result, so there is
                // nothing to compare.
                return None;
            }
            Err(error) => {
                self.check_error(run, counts, owner, block, &error);
                None
            }
        };
        let missed = run.expectations.close(owner);
        if !missed.is_empty() {
            run.fail(format!("a read of {relation} block {block} did not return {missed:?}"));
        }
        let pin = pin?;
        let check = PageCheck { run, relation, block };
        if check.run(rng, &mut self.backend, counts, pin.page()).is_err() {
            counts.cancelled += 1;
            self.backend.session().clear_cancel();
        }
        Some((pin, relation, block))
    }

    /// Checks a single read's error, which must refer to this block and must be expected.
    fn check_error(
        &mut self,
        run: &Run,
        counts: &mut Counts,
        owner: u64,
        block: BlockNo,
        error: &ReadError,
    ) {
        match failure(error) {
            Some((of, failure)) => {
                counts.errors += 1;
                if of != block || !run.expectations.receive(owner, of, failure) {
                    run.fail(format!("a read of block {block}: {error}: not expected"));
                }
            }
            None => self.too_many_pins(run, counts, error),
        }
    }

    /// Checks an error that doesn't refer to a block. It must be the pin limit error, and the
    /// session must already hold its guaranteed number of pins.
    fn too_many_pins(&mut self, run: &Run, counts: &mut Counts, error: &ReadError) {
        match error {
            ReadError::TooManyPins { held } if *held >= PINS_GUARANTEED => {
                counts.too_many_pins += 1;
            }
            other => run.fail(format!("a session of pool {}: {other}", self.pool)),
        }
    }

    /// Keeps a page pinned; at most three pages are kept.
    pub(super) fn keep(&mut self, (pin, relation, block): (Pin, usize, BlockNo)) {
        if self.kept.len() < 3 {
            self.kept.push(Kept { pin, relation, block });
        }
    }

    /// Rechecks the kept pages and unpins them. They must not have been evicted or changed in
    /// between.
    pub(super) fn release_kept(&mut self, run: &Run, rng: &mut Rng, counts: &mut Counts) {
        for Kept { pin, relation, block } in self.kept.drain(..) {
            let check = PageCheck { run, relation, block };
            if check.run(rng, &mut self.backend, counts, pin.page()).is_err() {
                self.backend.session().clear_cancel();
            }
        }
    }

    /// Requests the next page of a stream.
    pub(super) fn next(
        &mut self,
        run: &Run,
        rng: &mut Rng,
        at: usize,
        counts: &mut Counts,
    ) -> Progress {
        self.ask(run, rng, at, counts, false)
    }

    /// Polls each polled stream once, so that reads are in flight.
    pub(super) fn poll_streams(&mut self, run: &Run, rng: &mut Rng, counts: &mut Counts) {
        for at in 0..self.readers.len() {
            if self.readers[at].is_polled() && !self.readers[at].ended {
                self.ask(run, rng, at, counts, true);
            }
        }
    }

    /// Requests a page from stream `at` and checks the outcome. If `once` is set, a polled stream
    /// is polled just once.
    fn ask(
        &mut self,
        run: &Run,
        rng: &mut Rng,
        at: usize,
        counts: &mut Counts,
        once: bool,
    ) -> Progress {
        let Self { backend, readers, .. } = self;
        let reader = &mut readers[at];
        reader.set_issuer();
        let answer = ask(run, reader, backend, rng, counts, once);
        run.check_warnings(backend, reader.issuer.owner);
        let Some(answer) = answer else { return Progress::Left };
        let outcome = match answer {
            Ok(Some((block, place))) => reader.page(block, place).map(|()| Progress::Block),
            Ok(None) => {
                counts.ended += 1;
                reader.end(run).map(|()| Progress::End)
            }
            Err(ReadError::Cancelled) => {
                counts.cancelled += 1;
                backend.session().clear_cancel();
                Ok(Progress::Again)
            }
            Err(error) => match reader.error(run, &error) {
                Ok(true) => {
                    counts.errors += 1;
                    Ok(Progress::Block)
                }
                Ok(false) => {
                    self.too_many_pins(run, counts, &error);
                    Ok(Progress::TooManyPins)
                }
                Err(failure) => Err(failure),
            },
        };
        outcome.unwrap_or_else(|failure| {
            run.fail(failure);
            Progress::End
        })
    }

    /// Drops a stream.
    pub(super) fn drop_reader(&mut self, run: &Run, at: usize, counts: &mut Counts) {
        let reader = self.readers.swap_remove(at);
        counts.dropped += u64::from(!reader.ended);
        reader.close(run);
    }

    /// Drops the backend, streams and pins in random order. Each of them must stay valid even if the
    /// others have already been dropped.
    pub(super) fn abandon(self, run: &Run, rng: &mut Rng) {
        let Self { backend, readers, kept, .. } = self;
        readers.iter().for_each(|reader| reader.close(run));
        match rng.below(3) {
            0 => {
                drop(readers);
                drop(backend);
                drop(kept);
            }
            1 => {
                drop(backend);
                drop(kept);
                drop(readers);
            }
            _ => {
                drop(kept);
                drop(backend);
                drop(readers);
            }
        }
    }
}

/// A stream's result once its page was checked: the block and its position in the list.
type Answer = Result<Option<(BlockNo, usize)>, ReadError>;

/// Requests a stream's next page, and checks it under a lock. Returns `None` if a poll returned
/// `Poll::Pending` and the consumer polls just once or stops polling.
fn ask(
    run: &Run,
    reader: &mut Reader,
    backend: &mut Backend,
    rng: &mut Rng,
    counts: &mut Counts,
    once: bool,
) -> Option<Answer> {
    let (polled, relation) = (reader.is_polled(), reader.issuer.relation);
    let check = |backend: &mut Backend,
                 rng: &mut Rng,
                 counts: &mut Counts,
                 found: Option<StreamPage<'_, usize>>| {
        let found = found?;
        let (block, place) = (found.block, *found.data);
        let check = PageCheck { run, relation, block };
        if check.run(rng, backend, counts, found.pin).is_err() {
            counts.cancelled += 1;
            backend.session().clear_cancel();
        }
        Some((block, place))
    };
    if !polled {
        let next = reader.stream.next(backend);
        return Some(next.map(|found| check(backend, rng, counts, found)));
    }
    let one_in = if SHAPES[relation].pool == 1 { 2 } else { 5 };
    // An executor may poll without waiting for a wake-up. Such a busy poller completes its large
    // reads itself, before a helper gets to them.
    let busy = run.workload.wide && rng.below(one_in) == 0;
    let mut busy_polls = if busy { BUSY_POLLS_MAX } else { 0 };
    let (wakes, waker) = CountingWaker::new();
    let mut context = Context::from_waker(&waker);
    loop {
        // Read the count before polling, so that a wake-up between the poll and the sleep isn't
        // lost.
        let before = wakes.count();
        if let Poll::Ready(next) = reader.stream.poll_next(&mut context, backend) {
            return Some(next.map(|found| check(backend, rng, counts, found)));
        }
        counts.pending += 1;
        let leave_one_in = if run.workload.fickle { 2 } else { 16 };
        if once || (busy_polls == 0 && rng.below(leave_one_in) == 0) {
            return None;
        }
        match busy_polls {
            0 => {
                wakes.wait_while(before);
            }
            _ => {
                busy_polls -= 1;
                thread::yield_now();
            }
        }
    }
}
