//! A client's session with one pool: a backend, its streams, and the pages it keeps pinned.
//!
//! All calls into the pool are made in this module. Before each call, we record which stream or
//! single read is making it, so that the probe knows the owner of every read. After the call, we
//! compare the outcome with the expectations.

use super::model::SHAPES;
use super::page_check::PageCheck;
use super::read_probe::Issuer;
use super::reader::{Reader, failure};
use super::run::ClientState;
use super::settings::HOT_BLOCKS;
use crate::waker::CountingWaker;
use std::task::{Context, Poll};
use trunkline_aio::facade::thread;
use trunkline_engine::pool::{Backend, PINS_GUARANTEED, Pin, ReadError};
use trunkline_engine::read_stream::StreamPage;
use trunkline_format::BlockNo;

/// Crowds prefer relations of at most this many blocks.
const CROWDED_BLOCKS_MAX: BlockNo = 20;

/// Maximum number of consecutive polls by an executor that doesn't wait for wake-ups.
const BUSY_POLLS_MAX: u32 = 300;

/// A pinned page and its check. The session may keep it across steps.
pub(super) struct CheckedPin {
    pub(super) pin: Pin,
    pub(super) check: PageCheck,
}

/// A session with one pool.
pub(super) struct PoolSession {
    pub(super) pool: usize,
    pub(super) backend: Backend,
    pub(super) readers: Vec<Reader>,
    kept: Vec<CheckedPin>,
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
    pub(super) fn new(client: &ClientState, pool: usize, backend: Backend) -> Self {
        let mut session = Self { pool, backend, readers: Vec::new(), kept: Vec::new() };
        client.run.cancellers.lock().push(session.backend.session().canceller());
        session
    }

    /// Whether the session has no streams and no pins.
    pub(super) fn is_idle(&self) -> bool {
        self.readers.is_empty() && self.kept.is_empty()
    }

    /// A random relation of this pool. Crowds prefer small relations.
    pub(super) fn some_relation(&self, client: &mut ClientState) -> usize {
        let ClientState { run, rng, .. } = client;
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
    pub(super) fn single(&mut self, client: &mut ClientState) -> Option<CheckedPin> {
        let relation = self.some_relation(client);
        let ClientState { run, rng, counts, number } = client;
        // Sometimes choose a block past the end.
        let blocks = SHAPES[relation].blocks + 2;
        let crowded = run.workload.crowd && rng.below(2) == 0;
        let block = rng.below(u64::from(if crowded { HOT_BLOCKS } else { blocks })) as BlockNo;
        if run.workload.fickle && rng.below(4) == 0 {
            self.backend.session().canceller().cancel();
        }
        let owner = run.new_owner();
        Issuer::single(*number, owner, relation, self.backend.policy()).set();
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
                self.check_error(client, owner, block, &error);
                None
            }
        };
        let missed = client.run.expectations.close(owner);
        if !missed.is_empty() {
            client
                .run
                .fail(format!("a read of {relation} block {block} did not return {missed:?}"));
        }
        let pin = pin?;
        let check = PageCheck { relation, block };
        if check.run(client, &mut self.backend, pin.page()).is_err() {
            client.counts.cancelled += 1;
            self.backend.session().clear_cancel();
        }
        Some(CheckedPin { pin, check })
    }

    /// Checks a single read's error, which must refer to this block and must be expected.
    fn check_error(
        &mut self,
        client: &mut ClientState,
        owner: u64,
        block: BlockNo,
        error: &ReadError,
    ) {
        match failure(error) {
            Some((of, failure)) => {
                client.counts.errors += 1;
                if of != block || !client.run.expectations.receive(owner, of, failure) {
                    client.run.fail(format!("a read of block {block}: {error}: not expected"));
                }
            }
            None => self.too_many_pins(client, error),
        }
    }

    /// Checks an error that doesn't refer to a particular block. The only such error allowed is the
    /// one for exceeding the pin limit, and only if the session already holds at least as many
    /// pins as it was guaranteed.
    fn too_many_pins(&mut self, client: &mut ClientState, error: &ReadError) {
        match error {
            ReadError::TooManyPins { held } if *held >= PINS_GUARANTEED => {
                client.counts.too_many_pins += 1;
            }
            other => client.run.fail(format!("a session of pool {}: {other}", self.pool)),
        }
    }

    /// Keeps a page pinned; at most three pages are kept.
    pub(super) fn keep(&mut self, page: CheckedPin) {
        if self.kept.len() < 3 {
            self.kept.push(page);
        }
    }

    /// Rechecks the kept pages and unpins them. They must not have been evicted or changed in
    /// between.
    pub(super) fn release_kept(&mut self, client: &mut ClientState) {
        for CheckedPin { pin, check } in self.kept.drain(..) {
            if check.run(client, &mut self.backend, pin.page()).is_err() {
                self.backend.session().clear_cancel();
            }
        }
    }

    /// Polls each polled stream once, so that reads are in flight.
    pub(super) fn poll_streams(&mut self, client: &mut ClientState) {
        for at in 0..self.readers.len() {
            if self.readers[at].issuer.kind.is_polled() && !self.readers[at].ended {
                self.ask(client, at, true);
            }
        }
    }

    /// Requests the next page of a stream.
    pub(super) fn next(&mut self, client: &mut ClientState, at: usize) -> Progress {
        self.ask(client, at, false)
    }

    /// Requests a page from stream `at` and checks the outcome. If `once` is set, a polled stream
    /// is polled just once.
    fn ask(&mut self, client: &mut ClientState, at: usize, once: bool) -> Progress {
        let Self { backend, readers, .. } = self;
        let reader = &mut readers[at];
        reader.issuer.set();
        let answer = ask(client, reader, backend, once);
        let ClientState { run, counts, .. } = client;
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
                    self.too_many_pins(client, &error);
                    Ok(Progress::TooManyPins)
                }
                Err(failure) => Err(failure),
            },
        };
        outcome.unwrap_or_else(|failure| {
            client.run.fail(failure);
            Progress::End
        })
    }

    /// Drops a stream.
    pub(super) fn drop_reader(&mut self, client: &mut ClientState, at: usize) {
        self.readers.swap_remove(at).close(client);
    }

    /// Drops the backend, the streams and the pins in random order. Whichever is dropped first, the
    /// remaining ones must still be valid.
    pub(super) fn abandon(self, client: &mut ClientState) {
        let Self { backend, readers, kept, .. } = self;
        readers.iter().for_each(|reader| reader.close(client));
        match client.rng.below(3) {
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

/// Checks a stream's page under a lock. Returns the block and its position in the list.
fn check(
    client: &mut ClientState,
    backend: &mut Backend,
    relation: usize,
    found: StreamPage<'_, usize>,
) -> (BlockNo, usize) {
    let (block, place) = (found.block, *found.data);
    if (PageCheck { relation, block }).run(client, backend, found.pin).is_err() {
        client.counts.cancelled += 1;
        backend.session().clear_cancel();
    }
    (block, place)
}

/// A stream's result once its page was checked: the block and its position in the list.
type Answer = Result<Option<(BlockNo, usize)>, ReadError>;

/// Requests the next page from a stream, and checks that page under a lock. Returns `None` if the
/// stream returned `Poll::Pending` and the consumer either polls only once or decides to stop
/// polling.
fn ask(
    client: &mut ClientState,
    reader: &mut Reader,
    backend: &mut Backend,
    once: bool,
) -> Option<Answer> {
    let Issuer { kind, relation, .. } = reader.issuer;
    if !kind.is_polled() {
        let next = reader.stream.next(backend);
        return Some(next.map(|found| found.map(|page| check(client, backend, relation, page))));
    }
    let one_in = if SHAPES[relation].pool == 1 { 2 } else { 5 };
    // An executor may poll repeatedly without waiting for a wake-up. If it does, it completes its
    // own large reads, because it gets to them before any helper does.
    let busy = client.run.workload.wide && client.rng.below(one_in) == 0;
    let mut busy_polls = if busy { BUSY_POLLS_MAX } else { 0 };
    let (wakes, waker) = CountingWaker::new();
    let mut context = Context::from_waker(&waker);
    loop {
        // Read the count before polling, so that a wake-up between the poll and the sleep isn't
        // lost.
        let before = wakes.count();
        if let Poll::Ready(next) = reader.stream.poll_next(&mut context, backend) {
            return Some(
                next.map(|found| found.map(|page| check(client, backend, relation, page))),
            );
        }
        client.counts.pending += 1;
        let leave_one_in = if client.run.workload.fickle { 2 } else { 16 };
        if once || (busy_polls == 0 && client.rng.below(leave_one_in) == 0) {
            return None;
        }
        match busy_polls {
            0 => wakes.wait_while(before),
            _ => {
                busy_polls -= 1;
                thread::yield_now();
            }
        }
    }
}
