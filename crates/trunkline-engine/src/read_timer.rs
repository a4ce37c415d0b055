//! **Read timer**: measures how long reads of a relation take, through the streams and the pool that
//! scans use.
//!
//! ```text
//!   latency      single blocks, one after the other           the median
//!   random       single blocks, as many in flight as a scan   all of them, divided by their number
//!   sequential   a run of blocks, combined, likewise
//! ```
//!
//! The relation should be large, and hardly any of it cached, or the times are those of the cache.
//! On a device that takes 5 ms for a read and serves 64 at once, the first plan takes 120 to 130 ms
//! because of it. The pages go through a small ring, so they displace no others from the pool.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use trunkline_aio::clock::{self, Time};
use trunkline_format::BlockNo;

use crate::pool::{Backend, ReadError, Strategy};
use crate::read_stream::{BlockList, ReadStream, StreamOptions};
use crate::storage::{ReadTimes, Relation};

/// The fewest blocks of a relation that is measured. Less than a tenth of it is read.
pub const TIMED_BLOCKS_MIN: BlockNo = 16_384;

/// Reads one after the other.
const SINGLE: u32 = 3;

/// The fewest and the most random reads, and how many for each of those in flight.
const RANDOM: (u32, u32, u32) = (64, 256, 4);

/// Puts random reads out of order: a prime above the number of reads.
const SCATTER: u32 = 1009;

/// Consecutive blocks.
const RUN: u32 = 1024;

/// Measures the times of one relation's storage.
#[derive(Debug)]
pub struct ReadTimer {
    relation: Relation,
    options: StreamOptions,
    blocks: BlockNo,
    stage: Stage,
    /// The stream of the current stage, and its number of blocks.
    reading: Option<(ReadStream<BlockList>, u32)>,
    /// When the current read or stage began.
    begin: Option<Time>,
    single: Vec<Duration>,
    random: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Single,
    Random,
    Sequential,
}

impl ReadTimer {
    /// Measures a relation with this number of blocks, at least [`TIMED_BLOCKS_MIN`]. `options` are
    /// those of scans.
    pub fn new(relation: &Relation, blocks: BlockNo, options: StreamOptions) -> Self {
        let strategy = Strategy::BulkRead;
        Self {
            relation: relation.clone(),
            options: StreamOptions { strategy, unordered: false, full: true, ..options },
            blocks,
            stage: Stage::Single,
            reading: None,
            begin: None,
            single: Vec::new(),
            random: Duration::ZERO,
        }
    }

    /// Goes on measuring. The task is woken when there is more to do.
    ///
    /// # Errors
    /// A block could not be read, or the session was cancelled.
    pub fn poll(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<ReadTimes, ReadError>> {
        loop {
            let begin = *self.begin.get_or_insert_with(clock::now);
            let (mut stream, count) = match self.reading.take() {
                Some(reading) => reading,
                None => {
                    let (blocks, options) = self.reads();
                    let (count, blocks) = (blocks.len().max(1) as u32, BlockList::new(blocks));
                    (ReadStream::new(backend, &self.relation, blocks, options), count)
                }
            };
            let polled = stream.poll_next(context, backend).map_ok(|page| page.is_none());
            self.reading = Some((stream, count));
            let is_over = ready!(polled)?;
            let passed = clock::now().since(begin);
            match (self.stage, is_over) {
                (Stage::Single, false) => {
                    self.single.push(passed);
                    self.begin = None;
                }
                (_, false) => {}
                (Stage::Single, true) => self.enter(Stage::Random),
                (Stage::Random, true) => {
                    self.random = passed / count;
                    self.enter(Stage::Sequential);
                }
                (Stage::Sequential, true) => {
                    self.single.sort_unstable();
                    let latency = self.single.get(self.single.len() / 2).copied();
                    self.reading = None;
                    return Poll::Ready(Ok(ReadTimes {
                        latency: latency.unwrap_or_default(),
                        random: self.random,
                        sequential: passed / count,
                        in_flight: self.options.concurrency,
                    }));
                }
            }
        }
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.reading, self.begin) = (stage, None, None);
    }

    /// The blocks that the current stage reads, and how.
    fn reads(&self) -> (Vec<BlockNo>, StreamOptions) {
        let (fewest, most, times) = RANDOM;
        let random = self.options.concurrency.saturating_mul(times).clamp(fewest, most);
        // Anywhere in the relation, without repetition, in an order that isn't that of the blocks.
        let apart = self.blocks / (random + SINGLE + 1);
        let block = |number: u32| (number * SCATTER % (random + SINGLE)) * apart;
        match self.stage {
            Stage::Single => {
                let options = StreamOptions { concurrency: 1, combine: 1, ..self.options };
                ((0..SINGLE).map(block).collect(), StreamOptions { full: false, ..options })
            }
            Stage::Random => ((SINGLE..SINGLE + random).map(block).collect(), self.options),
            Stage::Sequential => {
                let first = self.blocks / 2 + 1;
                let options = StreamOptions { sequential: true, ..self.options };
                ((first..first + RUN.min(self.blocks / 4)).collect(), options)
            }
        }
    }
}
