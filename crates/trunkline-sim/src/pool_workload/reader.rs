//! One stream of the pool's workload, and everything that it owes its consumer.
//!
//! The source notes what it has given; each block of it must come out once, as a page or as an
//! error, in order if the stream is ordered, with the data that was given with it.

use super::desk::HOT_BLOCKS;
use super::ledger::Failure;
use super::meter::Kind;
use super::truth::{SHAPES, Shape};
use super::watch::{self, Issuer};
use super::{PoolWorkload, Scene};
use trunkline_aio::Class;
use trunkline_aio::sync::atomic::{AtomicBool, Ordering};
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_engine::pool::{Backend, ReadError, Strategy};
use trunkline_engine::read_stream::{BlockSource, ParallelRange, ReadStream, StreamOptions};
use trunkline_format::BlockNo;

/// Block numbers with their places in the order.
pub(super) type Source = Box<dyn FnMut() -> Option<(BlockNo, usize)> + Send>;

/// A scan of a relation that several tasks share.
#[derive(Debug)]
pub(super) struct Parallel {
    range: ParallelRange,
    pub(super) relation: usize,
    seen: Mutex<Vec<bool>>,
    /// Somebody took a part and did not finish it.
    lost: AtomicBool,
}

impl Parallel {
    pub(super) fn new(relation: usize) -> Self {
        let blocks = SHAPES[relation].blocks;
        Self {
            range: ParallelRange::new(blocks),
            relation,
            seen: Mutex::new(vec![false; blocks as usize]),
            lost: AtomicBool::new(false),
        }
    }

    /// Whether every block was seen once, after all have ended; `None` if that cannot be said.
    pub(super) fn is_whole(&self) -> Option<bool> {
        let seen = self.seen.lock().iter().all(|&seen| seen);
        (!self.lost.load(Ordering::SeqCst)).then_some(seen)
    }
}

/// See the module.
pub(super) struct Reader {
    pub(super) stream: ReadStream<Source>,
    pub(super) issuer: Issuer,
    given: Arc<Mutex<Vec<BlockNo>>>,
    /// By place: whether it has come out.
    out: Vec<bool>,
    /// Blocks of the whole list; `None` if others take a part of it.
    length: Option<usize>,
    parallel: Option<Arc<Parallel>>,
    pub(super) ended: bool,
}

/// A list of blocks: a range, a range with gaps, jumps, or repeats.
fn some_blocks(rng: &mut Rng, workload: &PoolWorkload, relation: usize) -> Vec<BlockNo> {
    let Shape { blocks, pool, .. } = SHAPES[relation];
    let below = |rng: &mut Rng, bound: BlockNo| rng.below(u64::from(bound.max(1))) as BlockNo;
    let crowded = workload.crowd && rng.below(2) == 0;
    let first = below(rng, if crowded { HOT_BLOCKS } else { blocks });
    let most = 1 + below(rng, 60);
    let end = blocks.min(first + most);
    // In a local pool nobody joins a read but who wants the block again.
    match rng.below(if pool == 1 { 12 } else { 7 }) {
        0 | 1 => (first..end).collect(),
        2 => (first..end).filter(|_| rng.below(4) > 0).collect(),
        3 => (0..most).map(|_| below(rng, blocks)).collect(),
        4 => (first..end).flat_map(|block| [block, block, (block + 1) % blocks, block]).collect(),
        5 | 8.. => (first..end).flat_map(|block| [block; 4]).collect(),
        _ => (first..end).rev().flat_map(|block| [block, block.saturating_sub(1)]).collect(),
    }
}

fn listed(list: Vec<BlockNo>, given: &Arc<Mutex<Vec<BlockNo>>>) -> Source {
    let given = Arc::clone(given);
    let mut list = list.into_iter();
    Box::new(move || {
        let block = list.next()?;
        let mut given = given.lock();
        given.push(block);
        Some((block, given.len() - 1))
    })
}

fn shared(parallel: &Parallel, given: &Arc<Mutex<Vec<BlockNo>>>) -> Source {
    let given = Arc::clone(given);
    let mut range = parallel.range.clone();
    Box::new(move || {
        let (block, ()) = range.next_block()?;
        let mut given = given.lock();
        given.push(block);
        Some((block, given.len() - 1))
    })
}

fn some_options(
    rng: &mut Rng,
    workload: &PoolWorkload,
    unordered: bool,
    strategy: Strategy,
) -> StreamOptions {
    let mut one_of = |of: &[u32]| of[rng.below(of.len() as u64) as usize];
    let few = workload.fickle && workload.wide;
    let concurrency = one_of(if few { &[1, 2, 3] } else { &[0, 1, 2, 3, 5, 16, 64] });
    let combines =
        if workload.wide { &[17, 32, 64, 128][..] } else { &[1, 1, 2, 3, 8, 16, 64, 128] };
    let combine = one_of(combines);
    StreamOptions {
        concurrency,
        combine,
        unordered,
        full: rng.below(2) == 0,
        sequential: rng.below(2) == 0,
        strategy,
        class: if rng.below(3) == 0 { Class::Maintenance } else { Class::LookAhead },
    }
}

fn some_strategy(rng: &mut Rng) -> Strategy {
    match rng.below(4) {
        0 => Strategy::BulkRead,
        1 => Strategy::Vacuum,
        _ => Strategy::Normal,
    }
}

impl Reader {
    /// A stream over a list of its own, or over its part of a parallel scan.
    pub(super) fn open(
        scene: &Scene,
        rng: &mut Rng,
        task: u32,
        backend: &Backend,
        relation: usize,
        parallel: Option<Arc<Parallel>>,
    ) -> Self {
        let kinds = [Kind::Ordered, Kind::Unordered, Kind::Polled, Kind::PolledUnordered];
        let kind = kinds[rng.below(4) as usize];
        let unordered = matches!(kind, Kind::Unordered | Kind::PolledUnordered);
        let strategy = some_strategy(rng);
        let options = some_options(rng, &scene.workload, unordered, strategy);
        let owner = scene.new_owner();
        let policy = backend.policy();
        let issuer = Issuer { task, owner, relation, policy, kind, strategy };
        let given = Arc::default();
        let (source, length) = match &parallel {
            Some(parallel) => (shared(parallel, &given), None),
            None => {
                let list = some_blocks(rng, &scene.workload, relation);
                let length = list.len();
                (listed(list, &given), Some(length))
            }
        };
        let stream = ReadStream::new(backend, &scene.relations[relation], source, options);
        Self { stream, issuer, given, out: Vec::new(), length, parallel, ended: false }
    }

    pub(super) fn is_polled(&self) -> bool {
        matches!(self.issuer.kind, Kind::Polled | Kind::PolledUnordered)
    }

    fn is_unordered(&self) -> bool {
        matches!(self.issuer.kind, Kind::Unordered | Kind::PolledUnordered)
    }

    /// Says that this thread works for the stream.
    pub(super) fn enter(&self) {
        watch::work_for(self.issuer);
    }

    /// Gives back what was read ahead.
    pub(super) fn let_go(&mut self) {
        self.stream.let_go();
    }

    /// Starts anew, with another list.
    pub(super) fn reset(&mut self, rng: &mut Rng, workload: &PoolWorkload) {
        self.lose_part();
        self.parallel = None;
        self.given = Arc::default();
        self.out.clear();
        self.ended = false;
        let list = some_blocks(rng, workload, self.issuer.relation);
        self.length = Some(list.len());
        self.stream.reset(listed(list, &self.given));
    }

    /// Somebody else's part will be missing.
    fn lose_part(&self) {
        if let Some(parallel) = &self.parallel
            && !self.ended
        {
            parallel.lost.store(true, Ordering::SeqCst);
        }
    }

    /// A page came out.
    pub(super) fn page(&mut self, block: BlockNo, place: usize) -> Result<(), String> {
        let given = self.given.lock().get(place).copied();
        if given != Some(block) {
            return Err(format!("{}: {block} came with place {place}, {given:?}", self.describe()));
        }
        self.came(place, block)
    }

    fn came(&mut self, place: usize, block: BlockNo) -> Result<(), String> {
        let next = self.out.iter().position(|&out| !out).unwrap_or(self.out.len());
        if self.out.len() <= place {
            self.out.resize(place + 1, false);
        }
        if std::mem::replace(&mut self.out[place], true) {
            return Err(format!("{}: block {block} came twice", self.describe()));
        }
        if !self.is_unordered() && place != next {
            return Err(format!("{}: place {place}, not {next}", self.describe()));
        }
        if let Some(parallel) = &self.parallel
            && std::mem::replace(&mut parallel.seen.lock()[block as usize], true)
        {
            return Err(format!("{}: block {block} came to two", self.describe()));
        }
        Ok(())
    }

    /// An error about a block came out. False: that is no error about a block.
    pub(super) fn error(&mut self, scene: &Scene, error: &ReadError) -> Result<bool, String> {
        let Some((block, failure)) = failure(error) else { return Ok(false) };
        if !scene.ledger.told(self.issuer.owner, block, failure) {
            return Err(format!("{}: {error}: of no read of its own", self.describe()));
        }
        let given = self.given.lock();
        let mut places = given.iter().enumerate().map(|(place, &given)| {
            let out = self.out.get(place).copied().unwrap_or(false);
            (place, given == block && !out, out)
        });
        let place = match self.is_unordered() {
            true => places.find(|(_, fits, _)| *fits).map(|(place, ..)| place),
            false => places.find(|(.., out)| !out).filter(|(_, fits, _)| *fits).map(|(p, ..)| p),
        };
        drop(given);
        match place {
            Some(place) => self.came(place, block).map(|()| true),
            None => Err(format!("{}: {error}: out of turn", self.describe())),
        }
    }

    /// The end came.
    pub(super) fn end(&mut self, scene: &Scene) -> Result<(), String> {
        let given = self.given.lock().len();
        let out = self.out.iter().filter(|&&out| out).count();
        if out != given || self.length.is_some_and(|length| length != out) {
            let wanted = self.length;
            return Err(format!("{}: {out} of {given} ({wanted:?}) came", self.describe()));
        }
        self.ended = true;
        // Every block has come out. What it was not told of are reads that it has let go of, or
        // that the stream has for want of pins: it has read those blocks again.
        scene.ledger.close(self.issuer.owner);
        Ok(())
    }

    /// It is dropped, at its end or not.
    pub(super) fn gone(&self, scene: &Scene) {
        self.lose_part();
        // What is due to it comes after this, perhaps; nobody will ask.
        scene.ledger.close(self.issuer.owner);
    }

    pub(super) fn describe(&self) -> String {
        let Issuer { task, owner, relation, kind, strategy, .. } = self.issuer;
        format!("stream {owner} of task {task} over {relation}, {kind:?}, {strategy:?}")
    }
}

/// The block that an error is about, and what it says.
pub(super) fn failure(error: &ReadError) -> Option<(BlockNo, Failure)> {
    match error {
        ReadError::Io { block, source, .. } => {
            Some((*block, Failure::Errno(source.raw_os_error().unwrap_or(0))))
        }
        ReadError::Short { block, bytes, .. } => Some((*block, Failure::Short(*bytes))),
        ReadError::Corrupt { block, .. } => Some((*block, Failure::Corrupt)),
        _ => None,
    }
}
