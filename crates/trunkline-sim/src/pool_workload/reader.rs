//! Reader of a pool workload: a read stream, with checks of everything the stream returns.
//!
//! The block source records each block that it passes to the stream. The stream must return each of
//! these blocks exactly once, either as a page or as an error, along with the block's per-buffer
//! data. If the stream is ordered, it must also return the blocks in order.

use super::expectations::Failure;
use super::meter::Kind;
use super::model::{SHAPES, Shape};
use super::parallel_scan::ParallelScan;
use super::read_probe::Issuer;
use super::run::{ClientState, Run};
use super::settings::{HOT_BLOCKS, PoolWorkload};
use std::task::Poll;
use trunkline_aio::Class;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_engine::pool::{Backend, ReadError, Strategy};
use trunkline_engine::read_stream::{BlockList, BlockSource, ReadStream, StreamOptions};
use trunkline_format::BlockNo;

/// A block source. It returns block numbers, with their list positions as per-buffer data.
pub(super) type Source = Box<dyn FnMut() -> Option<(BlockNo, usize)> + Send>;

/// A stream, and what it has returned so far.
pub(super) struct Reader {
    pub(super) stream: ReadStream<Source>,
    pub(super) issuer: Issuer,
    /// Blocks passed to the stream, by position.
    given: Arc<Mutex<Vec<BlockNo>>>,
    /// Whether each block was returned, by position.
    returned: Vec<bool>,
    /// Length of the whole list; `None` for part of a parallel scan.
    length: Option<usize>,
    parallel: Option<Arc<ParallelScan>>,
    /// The stream has returned its end.
    pub(super) ended: bool,
}

/// A random list of blocks: a range, a range with gaps, jumps, repeats, or backwards.
fn some_blocks(rng: &mut Rng, workload: &PoolWorkload, relation: usize) -> Vec<BlockNo> {
    let Shape { blocks, pool, .. } = SHAPES[relation];
    let below = |rng: &mut Rng, bound: BlockNo| rng.below(u64::from(bound.max(1))) as BlockNo;
    let crowded = workload.crowd && rng.below(2) == 0;
    let first = below(rng, if crowded { HOT_BLOCKS } else { blocks });
    let most = 1 + below(rng, 60);
    let end = blocks.min(first + most);
    // In a local pool, no other session can join a read, so the only way to test joins is to
    // request the same block twice. We therefore repeat blocks more often there.
    match rng.below(if pool == 1 { 12 } else { 7 }) {
        0 | 1 => (first..end).collect(),
        2 => (first..end).filter(|_| rng.below(4) > 0).collect(),
        3 => (0..most).map(|_| below(rng, blocks)).collect(),
        4 => (first..end).flat_map(|block| [block, block, (block + 1) % blocks, block]).collect(),
        5 | 8.. => (first..end).flat_map(|block| [block; 4]).collect(),
        _ => (first..end).rev().flat_map(|block| [block, block.saturating_sub(1)]).collect(),
    }
}

/// A source that returns the blocks of a list, or part of a parallel scan's blocks.
fn source(
    mut blocks: impl BlockSource<Data = ()> + Send + 'static,
    given: &Arc<Mutex<Vec<BlockNo>>>,
) -> Source {
    let given = Arc::clone(given);
    Box::new(move || {
        let Poll::Ready(next) = blocks.next_block() else { unreachable!("a list never waits") };
        let (block, ()) = next?;
        let mut given = given.lock();
        given.push(block);
        Some((block, given.len() - 1))
    })
}

/// Random stream options. Wide workloads issue only large reads, and fickle ones also keep just a
/// few reads in flight.
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

/// A random access strategy.
fn some_strategy(rng: &mut Rng) -> Strategy {
    match rng.below(4) {
        0 => Strategy::BulkRead,
        1 => Strategy::Vacuum,
        _ => Strategy::Normal,
    }
}

impl Reader {
    /// Opens a stream over a random list or over part of a parallel scan.
    pub(super) fn open(
        client: &mut ClientState,
        backend: &Backend,
        relation: usize,
        parallel: Option<Arc<ParallelScan>>,
    ) -> Self {
        let ClientState { run, rng, number, .. } = client;
        let kinds = [Kind::Ordered, Kind::Unordered, Kind::Polled, Kind::PolledUnordered];
        let kind = kinds[rng.below(4) as usize];
        let strategy = some_strategy(rng);
        let options = some_options(rng, &run.workload, kind.is_unordered(), strategy);
        let single = Issuer::single(*number, run.new_owner(), relation, backend.policy());
        let issuer = Issuer { kind, strategy, ..single };
        let given = Arc::default();
        let (source, length) = match &parallel {
            Some(parallel) => (source(parallel.range.clone(), &given), None),
            None => {
                let list = some_blocks(rng, &run.workload, relation);
                let length = list.len();
                (source(BlockList::new(list), &given), Some(length))
            }
        };
        let stream = ReadStream::new(backend, &run.relations[relation], source, options);
        Self { stream, issuer, given, returned: Vec::new(), length, parallel, ended: false }
    }

    /// Unpins the stream's read-ahead. The stream will read those pages again later.
    pub(super) fn let_go(&mut self) {
        self.stream.release_ahead();
    }

    /// Restarts the stream with another list.
    pub(super) fn reset(&mut self, client: &mut ClientState) {
        self.abandon_part();
        self.parallel = None;
        self.given = Arc::default();
        self.returned.clear();
        self.ended = false;
        let ClientState { run, rng, .. } = client;
        let list = some_blocks(rng, &run.workload, self.issuer.relation);
        self.length = Some(list.len());
        self.stream.reset(source(BlockList::new(list), &self.given));
    }

    /// Marks the parallel scan as incomplete unless the stream has returned its whole part.
    fn abandon_part(&self) {
        if let Some(parallel) = &self.parallel
            && !self.ended
        {
            parallel.abandon();
        }
    }

    /// Checks that a page is the expected one for its list position.
    pub(super) fn page(&mut self, block: BlockNo, place: usize) -> Result<(), String> {
        let given = self.given.lock().get(place).copied();
        if given != Some(block) {
            return Err(format!(
                "{}: block {block} at place {place}, expected {given:?}",
                self.describe()
            ));
        }
        self.record(place, block)
    }

    /// Records that a position was returned. Checks order and uniqueness.
    fn record(&mut self, place: usize, block: BlockNo) -> Result<(), String> {
        let next =
            self.returned.iter().position(|&returned| !returned).unwrap_or(self.returned.len());
        if self.returned.len() <= place {
            self.returned.resize(place + 1, false);
        }
        if std::mem::replace(&mut self.returned[place], true) {
            return Err(format!("{}: block {block} was returned twice", self.describe()));
        }
        if !self.issuer.kind.is_unordered() && place != next {
            return Err(format!("{}: place {place}, not {next}", self.describe()));
        }
        if let Some(parallel) = &self.parallel
            && parallel.mark_seen(block)
        {
            return Err(format!("{}: block {block} was returned to two clients", self.describe()));
        }
        Ok(())
    }

    /// Checks an error returned by a stream. Returns false if the error doesn't refer to a
    /// particular block. An ordered stream must return the error where it would have returned the
    /// block.
    pub(super) fn error(&mut self, run: &Run, error: &ReadError) -> Result<bool, String> {
        let Some((block, failure)) = failure(error) else { return Ok(false) };
        if !run.expectations.receive(self.issuer.owner, block, failure) {
            return Err(format!("{}: {error}: not expected", self.describe()));
        }
        let given = self.given.lock();
        let mut places = given.iter().enumerate().map(|(place, &given)| {
            let returned = self.returned.get(place).copied().unwrap_or(false);
            (place, given == block && !returned, returned)
        });
        let place = match self.issuer.kind.is_unordered() {
            true => places.find(|(_, fits, _)| *fits).map(|(place, ..)| place),
            false => places
                .find(|(.., returned)| !returned)
                .filter(|(_, fits, _)| *fits)
                .map(|(p, ..)| p),
        };
        drop(given);
        match place {
            Some(place) => self.record(place, block).map(|()| true),
            None => Err(format!("{}: {error}: out of order", self.describe())),
        }
    }

    /// Checks that the stream has returned everything when it ends.
    pub(super) fn end(&mut self, run: &Run) -> Result<(), String> {
        let given = self.given.lock().len();
        let returned = self.returned.iter().filter(|&&returned| returned).count();
        if returned != given || self.length.is_some_and(|length| length != returned) {
            let wanted = self.length;
            return Err(format!(
                "{}: {returned} of {given} ({wanted:?}) blocks were returned",
                self.describe()
            ));
        }
        self.ended = true;
        // Every block was returned. Any remaining failures belong to abandoned reads, and the
        // blocks of those reads were read again.
        run.expectations.close(self.issuer.owner);
        Ok(())
    }

    /// Counts a stream that is being dropped before its end, and removes its expectations.
    pub(super) fn close(&self, client: &mut ClientState) {
        client.counts.dropped += u64::from(!self.ended);
        self.abandon_part();
        // Failures may still arrive for this owner, but no consumer will receive them.
        client.run.expectations.close(self.issuer.owner);
    }

    pub(super) fn describe(&self) -> String {
        let Issuer { client, owner, relation, kind, strategy, .. } = self.issuer;
        format!("stream {owner} of client {client} over {relation}, {kind:?}, {strategy:?}")
    }
}

/// The block an error refers to, and the failure. `None` for an error that doesn't refer to a
/// block.
pub(super) fn failure(error: &ReadError) -> Option<(BlockNo, Failure)> {
    let failure = match error {
        ReadError::Io { source, .. } => Failure::Errno(source.raw_os_error().unwrap_or(0)),
        ReadError::Short { bytes, .. } => Failure::Short(*bytes),
        ReadError::Corrupt { .. } => Failure::Corrupt,
        _ => return None,
    };
    Some((error.block()?, failure))
}
