//! A task's place at one pool: a backend, its streams, and pages that it keeps pinned.
//!
//! All calls into the pool are made here, so that each is made in the name of a stream or of a
//! single read, and each outcome is held against the books.

use super::Scene;
use super::look::Sight;
use super::meter::Kind;
use super::reader::{Reader, failure};
use super::truth::SHAPES;
use super::watch::{self, Issuer};
use crate::waker::CountingWaker;
use std::task::{Context, Poll};
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::thread;
use trunkline_engine::pool::{Backend, PINS_GUARANTEED, Pin, ReadError, Strategy};
use trunkline_engine::read_stream::StreamPage;
use trunkline_format::BlockNo;

/// A relation that is so small and does not change is where a crowd meets.
const CROWDED_BLOCKS_MAX: BlockNo = 20;

/// Polls of an impatient executor in a row.
const POLLS_IN_VAIN_MAX: u32 = 300;

/// Blocks that a crowd wants above all.
pub(super) const HOT_BLOCKS: BlockNo = 3;

/// What tasks count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages handed out, locked and judged.
    pub pages: u64,
    /// Blocks that could not be had, as their issuers were told.
    pub errors: u64,
    /// Waits for a content lock: shared, share-exclusive, exclusive.
    pub lock_waits: [u64; 3],
    /// Waits that were cancelled.
    pub cancelled: u64,
    /// Requests that found the session with all the pins it may have.
    pub too_many_pins: u64,
    /// Polls that found nothing.
    pub pending: u64,
    /// Streams that came to their end.
    pub ended: u64,
    /// Streams that were dropped before.
    pub dropped: u64,
    /// Threads that vanished with whatever they had.
    pub vanished: u64,
    /// Relations invalidated, cut off or extended.
    pub resized: u64,
}

impl Counts {
    /// Adds another one's.
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

/// A page that is kept.
struct Kept {
    pin: Pin,
    relation: usize,
    block: BlockNo,
}

/// See the module.
pub(super) struct Desk {
    pub(super) pool: usize,
    pub(super) backend: Backend,
    pub(super) readers: Vec<Reader>,
    kept: Vec<Kept>,
}

/// What a stream was asked for has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// A page or an error.
    Block,
    End,
    /// Cancelled: the same again.
    Again,
    /// Nothing can be had with so many pins.
    TooManyPins,
    /// Left while it was pending.
    Left,
}

impl Desk {
    pub(super) fn new(scene: &Scene, pool: usize, backend: Backend) -> Self {
        let mut desk = Self { pool, backend, readers: Vec::new(), kept: Vec::new() };
        scene.cancellers.lock().push(desk.backend.session().canceller());
        desk
    }

    pub(super) fn is_idle(&self) -> bool {
        self.readers.is_empty() && self.kept.is_empty()
    }

    /// A relation that is read here.
    pub(super) fn some_relation(&self, scene: &Scene, rng: &mut Rng) -> usize {
        loop {
            let relation = rng.below(SHAPES.len() as u64) as usize;
            let is_small = SHAPES[relation].floor == SHAPES[relation].blocks
                && SHAPES[relation].blocks <= CROWDED_BLOCKS_MAX;
            if scene.workload.crowd && !is_small && rng.below(4) > 0 {
                continue;
            }
            if SHAPES[relation].pool == self.pool {
                return relation;
            }
        }
    }

    /// Reads one page, and keeps it perhaps.
    pub(super) fn single(
        &mut self,
        scene: &Scene,
        rng: &mut Rng,
        task: u32,
        counts: &mut Counts,
    ) -> Option<(Pin, usize, BlockNo)> {
        let relation = self.some_relation(scene, rng);
        // A few blocks beyond the end as well.
        let blocks = SHAPES[relation].blocks + 2;
        let crowded = scene.workload.crowd && rng.below(2) == 0;
        let block = rng.below(u64::from(if crowded { HOT_BLOCKS } else { blocks })) as BlockNo;
        if scene.workload.fickle && rng.below(4) == 0 {
            self.backend.session().canceller().cancel();
        }
        let owner = scene.new_owner();
        let policy = self.backend.policy();
        let (kind, strategy) = (Kind::Single, Strategy::Normal);
        watch::work_for(Issuer { task, owner, relation, policy, kind, strategy });
        let read = self.backend.read(&scene.relations[relation], block);
        scene.check_warnings(&mut self.backend, owner);
        let pin = match read {
            Ok(pin) => Some(pin),
            Err(ReadError::Cancelled) => {
                counts.cancelled += 1;
                self.backend.session().clear_cancel();
                // The read goes on, and nobody will be told of it.
                return None;
            }
            Err(error) => {
                self.judge_error(scene, counts, owner, block, &error);
                None
            }
        };
        let untold = scene.ledger.close(owner);
        if !untold.is_empty() {
            scene.find(format!("a read of {relation} block {block} was not told of {untold:?}"));
        }
        let pin = pin?;
        let sight = Sight { scene, relation, block };
        if sight.look(rng, &mut self.backend, counts, pin.page()).is_err() {
            counts.cancelled += 1;
            self.backend.session().clear_cancel();
        }
        Some((pin, relation, block))
    }

    fn judge_error(
        &mut self,
        scene: &Scene,
        counts: &mut Counts,
        owner: u64,
        block: BlockNo,
        error: &ReadError,
    ) {
        match failure(error) {
            Some((of, failure)) => {
                counts.errors += 1;
                if of != block || !scene.ledger.told(owner, of, failure) {
                    scene.find(format!("a read of block {block}: {error}: of no read of its own"));
                }
            }
            None => self.too_many_pins(scene, counts, error),
        }
    }

    /// The only other error there may be.
    fn too_many_pins(&mut self, scene: &Scene, counts: &mut Counts, error: &ReadError) {
        match error {
            ReadError::TooManyPins { held } if *held >= PINS_GUARANTEED => {
                counts.too_many_pins += 1;
            }
            other => scene.find(format!("task with pool {}: {other}", self.pool)),
        }
    }

    pub(super) fn keep(&mut self, (pin, relation, block): (Pin, usize, BlockNo)) {
        if self.kept.len() < 3 {
            self.kept.push(Kept { pin, relation, block });
        }
    }

    /// Looks once more at what was kept, and lets go of it.
    pub(super) fn let_kept_go(&mut self, scene: &Scene, rng: &mut Rng, counts: &mut Counts) {
        for Kept { pin, relation, block } in self.kept.drain(..) {
            let sight = Sight { scene, relation, block };
            if sight.look(rng, &mut self.backend, counts, pin.page()).is_err() {
                self.backend.session().clear_cancel();
            }
        }
    }

    /// Asks a stream for its next page.
    pub(super) fn next(
        &mut self,
        scene: &Scene,
        rng: &mut Rng,
        at: usize,
        counts: &mut Counts,
    ) -> Came {
        self.ask(scene, rng, at, counts, false)
    }

    /// Polls streams once that may be polled, so that they have reads under way.
    pub(super) fn nudge(&mut self, scene: &Scene, rng: &mut Rng, counts: &mut Counts) {
        for at in 0..self.readers.len() {
            if self.readers[at].is_polled() && !self.readers[at].ended {
                self.ask(scene, rng, at, counts, true);
            }
        }
    }

    fn ask(
        &mut self,
        scene: &Scene,
        rng: &mut Rng,
        at: usize,
        counts: &mut Counts,
        once: bool,
    ) -> Came {
        let Self { backend, readers, .. } = self;
        let reader = &mut readers[at];
        reader.enter();
        let answer = ask(scene, reader, backend, rng, counts, once);
        scene.check_warnings(backend, reader.issuer.owner);
        let Some(answer) = answer else { return Came::Left };
        let outcome = match answer {
            Ok(Some((block, place))) => reader.page(block, place).map(|()| Came::Block),
            Ok(None) => {
                counts.ended += 1;
                reader.end(scene).map(|()| Came::End)
            }
            Err(ReadError::Cancelled) => {
                counts.cancelled += 1;
                backend.session().clear_cancel();
                Ok(Came::Again)
            }
            Err(error) => match reader.error(scene, &error) {
                Ok(true) => {
                    counts.errors += 1;
                    Ok(Came::Block)
                }
                Ok(false) => {
                    self.too_many_pins(scene, counts, &error);
                    Ok(Came::TooManyPins)
                }
                Err(finding) => Err(finding),
            },
        };
        outcome.unwrap_or_else(|finding| {
            scene.find(finding);
            Came::End
        })
    }

    /// Drops a stream.
    pub(super) fn drop_reader(&mut self, scene: &Scene, at: usize, counts: &mut Counts) {
        let reader = self.readers.swap_remove(at);
        counts.dropped += u64::from(!reader.ended);
        reader.gone(scene);
    }

    /// Leaves everything as it is: backend and streams go in some order.
    pub(super) fn abandon(self, scene: &Scene, rng: &mut Rng) {
        let Self { backend, readers, kept, .. } = self;
        readers.iter().for_each(|reader| reader.gone(scene));
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

/// A stream's answer, with the page already looked at: its block and its place in the order.
type Answer = Result<Option<(BlockNo, usize)>, ReadError>;

/// Asks a stream for its next page in its own way, and looks at it. `None`: a poll found nothing,
/// and the consumer did not wait, or was to poll only once.
fn ask(
    scene: &Scene,
    reader: &mut Reader,
    backend: &mut Backend,
    rng: &mut Rng,
    counts: &mut Counts,
    once: bool,
) -> Option<Answer> {
    let (polled, relation) = (reader.is_polled(), reader.issuer.relation);
    let look = |backend: &mut Backend,
                rng: &mut Rng,
                counts: &mut Counts,
                found: Option<StreamPage<'_, usize>>| {
        let found = found?;
        let (block, place) = (found.block, *found.data);
        let sight = Sight { scene, relation, block };
        if sight.look(rng, backend, counts, found.pin).is_err() {
            counts.cancelled += 1;
            backend.session().clear_cancel();
        }
        Some((block, place))
    };
    if !polled {
        let next = reader.stream.next(backend);
        return Some(next.map(|found| look(backend, rng, counts, found)));
    }
    // An executor may poll a task that nobody has woken; so it completes large reads itself.
    let one_in = if SHAPES[relation].pool == 1 { 2 } else { 5 };
    let impatient = scene.workload.wide && rng.below(one_in) == 0;
    let mut impatience = if impatient { POLLS_IN_VAIN_MAX } else { 0 };
    let (wakes, waker) = CountingWaker::new();
    let mut context = Context::from_waker(&waker);
    loop {
        let seen = wakes.count();
        if let Poll::Ready(next) = reader.stream.poll_next(&mut context, backend) {
            return Some(next.map(|found| look(backend, rng, counts, found)));
        }
        counts.pending += 1;
        let leave_one_in = if scene.workload.fickle { 2 } else { 16 };
        if once || (impatience == 0 && rng.below(leave_one_in) == 0) {
            return None;
        }
        match impatience {
            0 => {
                wakes.wait_while(seen);
            }
            _ => {
                impatience -= 1;
                thread::yield_now();
            }
        }
    }
}
