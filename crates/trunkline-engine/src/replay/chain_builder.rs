//! Builds the chains of pages while the scan reads on, within the memory limit.
//!
//! ```text
//!   scan: record ─▶ steps ─▶ batch ═▶ thread, or the scan itself: chains ─▶ too large? ─▶ scratch file
//! ```
//! Finding each page's chain takes a third of the scan's time, mostly in cache misses. The scan doesn't need the result.

use std::path::PathBuf;

use trunkline_aio::facade::channel::{Receiver, Sender, bounded};
use trunkline_aio::facade::thread::{self, JoinHandle};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::wal::{RelFileLocator, Truncation};
use trunkline_format::{BlockNo, Oid};

use super::chain_link::ChainLink;
use super::error::ReplayError;
use super::options::ReplayOptions;
use super::page_chains::{ForkKey, PageChains};

/// Steps of a batch. The memory limit is checked after each batch.
const STEPS: usize = 512;

/// If other things have taken this much more memory in bytes, it is checked, too.
const OTHERS: u64 = 1 << 20;

/// Batches that wait for the thread.
const BATCHES: usize = 16;

/// A change of the chains.
pub(super) enum ChainStep {
    /// A record changes a page.
    Add {
        key: ForkKey,
        block: BlockNo,
        link: ChainLink,
        is_from_scratch: bool,
    },
    Create(ForkKey),
    Truncate(Truncation),
    Remove(RelFileLocator),
    RemoveDatabase {
        tablespace: Oid,
        database: Oid,
    },
}

/// Steps, and what the check of the memory needs.
#[derive(Default)]
struct Batch {
    steps: Vec<ChainStep>,
    /// How much of the log was read, in bytes.
    read: u64,
    /// The memory that the scan takes for other things, in bytes.
    others: u64,
}

/// The chains, and the most memory that they and the rest of the scan have taken, in bytes.
struct LimitedChains {
    chains: PageChains,
    most: u64,
    limit: u64,
    scratch: PathBuf,
}

/// Builds chains, in this thread or in another one.
pub(super) struct ChainBuilder {
    batch: Batch,
    /// The memory of other things when the last batch was sent, in bytes.
    checked_others: u64,
    worker: Worker,
}

enum Worker {
    Here(Box<LimitedChains>),
    There(ChainThread),
}

/// A thread that applies batches, until there are no more or one fails.
struct ChainThread {
    batches: Option<Sender<Batch>>,
    thread: Option<JoinHandle>,
    result: Arc<Mutex<Option<Result<LimitedChains, ReplayError>>>>,
}

impl LimitedChains {
    fn apply(&mut self, batch: Batch) -> Result<(), ReplayError> {
        let Batch { steps, read, others } = batch;
        let chains = &mut self.chains;
        for step in steps {
            match step {
                ChainStep::Add { key, block, link, is_from_scratch } => {
                    chains.add(key, block, link, is_from_scratch);
                }
                ChainStep::Create(key) => chains.create(key),
                ChainStep::Truncate(truncation) => chains.truncate(&truncation),
                ChainStep::Remove(relation) => chains.remove(relation),
                ChainStep::RemoveDatabase { tablespace, database } => {
                    chains.remove_database(tablespace.0, database.0);
                }
            }
        }
        self.check_memory(read, others)
    }

    /// Writes the links of chains to a scratch file if there are too many.
    fn check_memory(&mut self, read: u64, others: u64) -> Result<(), ReplayError> {
        let needed = self.chains.bytes() + others;
        let limit = self.limit;
        if needed <= limit {
            self.most = self.most.max(needed);
            return Ok(());
        }
        self.chains.spill(&self.scratch).map_err(|source| {
            let folder = self.scratch.clone();
            ReplayError::Spilling { read, needed, limit, folder, source }
        })?;
        // If hardly anything can be spilled, every batch would do it again.
        let needed = self.chains.bytes() + others;
        if needed > limit / 4 * 3 {
            Err(ReplayError::Memory { read, needed, limit })
        } else {
            Ok(())
        }
    }
}

impl ChainBuilder {
    /// A builder with a thread of its own if `options.threads` allows it.
    ///
    /// # Errors
    /// [`ReplayError::Thread`]: the thread can't be started.
    pub(super) fn new(options: &ReplayOptions) -> Result<Self, ReplayError> {
        let (chains, scratch) = (PageChains::default(), options.scratch.clone());
        let limited = LimitedChains { chains, most: 0, limit: options.memory, scratch };
        let worker = match options.threads {
            0 | 1 => Worker::Here(Box::new(limited)),
            _ => Worker::There(ChainThread::start(limited)?),
        };
        Ok(Self { batch: Batch::default(), checked_others: 0, worker })
    }

    /// Adds a step.
    pub(super) fn add(&mut self, step: ChainStep) {
        self.batch.steps.push(step);
    }

    /// Must be called after every record, and after some steps of a long one. `read` bytes of the log have been read, and `others` bytes of memory are taken by
    /// other things.
    ///
    /// # Errors
    /// [`ReplayError::Memory`] or [`ReplayError::Spilling`].
    pub(super) fn end_step(&mut self, read: u64, others: u64) -> Result<(), ReplayError> {
        (self.batch.read, self.batch.others) = (read, others);
        let is_large = others > self.checked_others.saturating_add(OTHERS);
        if self.batch.steps.len() < STEPS && !is_large { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Result<(), ReplayError> {
        self.checked_others = self.batch.others;
        let next = Batch { steps: Vec::with_capacity(STEPS + STEPS / 8), ..self.batch };
        let batch = std::mem::replace(&mut self.batch, next);
        match &mut self.worker {
            Worker::Here(limited) => limited.apply(batch),
            Worker::There(thread) => thread.send(batch),
        }
    }

    /// The chains of all steps, and the most memory that was taken, in bytes.
    ///
    /// # Errors
    /// As for [`ChainBuilder::end_step`].
    pub(super) fn finish(&mut self) -> Result<(PageChains, u64), ReplayError> {
        self.send()?;
        match &mut self.worker {
            Worker::Here(limited) => Ok((std::mem::take(&mut limited.chains), limited.most)),
            Worker::There(thread) => thread.join().map(|limited| (limited.chains, limited.most)),
        }
    }
}

impl ChainThread {
    fn start(limited: LimitedChains) -> Result<Self, ReplayError> {
        let (batches, received) = bounded(BATCHES);
        let result = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&result);
        let body = move || *theirs.lock() = Some(apply_all(limited, &received));
        let thread = thread::spawn("chains", body).map_err(ReplayError::Thread)?;
        Ok(Self { batches: Some(batches), thread: Some(thread), result })
    }

    fn send(&mut self, batch: Batch) -> Result<(), ReplayError> {
        match &self.batches {
            Some(batches) if batches.send(batch).is_ok() => Ok(()),
            // It has ended, so it has failed.
            _ => self.join().map(drop),
        }
    }

    fn join(&mut self) -> Result<LimitedChains, ReplayError> {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            joined.map_err(|panicked| ReplayError::Thread(std::io::Error::other(panicked)))?;
        }
        let ended = std::io::Error::other("the thread has ended before");
        self.result.lock().take().unwrap_or(Err(ReplayError::Thread(ended)))
    }
}

impl Drop for ChainThread {
    fn drop(&mut self) {
        // An error of the scan is more important than one of the thread.
        let _ = self.join();
    }
}

fn apply_all(
    mut limited: LimitedChains,
    batches: &Receiver<Batch>,
) -> Result<LimitedChains, ReplayError> {
    while let Some(batch) = batches.receive() {
        limited.apply(batch)?;
    }
    Ok(limited)
}

#[cfg(test)]
mod tests {
    use super::super::chain_link::Part;
    use super::*;
    use trunkline_aio::facade::random::Rng;
    use trunkline_format::{Fork, Lsn};

    fn relation(number: u32) -> RelFileLocator {
        RelFileLocator { tablespace: Oid(1663), database: Oid(5), number }
    }

    /// Builds chains of random steps with this many threads.
    fn build(threads: u32, limit: u64, scratch: PathBuf) -> Result<(PageChains, u64), ReplayError> {
        let options = ReplayOptions { memory: limit, threads, ..ReplayOptions::new(scratch) };
        let mut builder = ChainBuilder::new(&options)?;
        let mut rng = Rng::new(16);
        for record in 1..40_000_u64 {
            let number = rng.below(3) as u32;
            let key = (relation(number), Fork::Main);
            builder.add(match rng.below(5_000) {
                0 => ChainStep::Remove(relation(number)),
                1 => ChainStep::Create(key),
                _ => ChainStep::Add {
                    key,
                    block: rng.below(500) as BlockNo,
                    link: ChainLink { record: Lsn(8 * record), part: Part::Block(0) },
                    is_from_scratch: rng.below(1000) == 0,
                },
            });
            builder.end_step(8 * record, 1000)?;
        }
        builder.finish()
    }

    #[test]
    fn a_thread_builds_the_same_chains() {
        let folder = tempfile::tempdir().expect("a folder");
        for limit in [1 << 30, 300_000] {
            let build = |threads| build(threads, limit, folder.path().into()).expect("built");
            let (here, most_here) = build(1);
            let (there, most_there) = build(2);
            assert_eq!(most_here, most_there);
            assert!(most_here <= limit, "{most_here}");
            assert_eq!(here.spilled_bytes() > 0, limit == 300_000);
            assert_eq!((here.counts(), here.bytes()), (there.counts(), there.bytes()));
            for key in (0..3).map(|number| (relation(number), Fork::Main)) {
                for block in 0..500 {
                    let links = |chains: &PageChains| {
                        let chain = chains.fork(&key).and_then(|fork| fork.chain(block));
                        chain.map(|chain| chains.links(chain).expect("read").into_owned())
                    };
                    assert_eq!(links(&here), links(&there), "{key:?} {block}");
                }
            }
        }
    }

    #[test]
    fn a_thread_that_fails_stops_the_scan() {
        for threads in [1, 2] {
            let missing = PathBuf::from("/nonexistent");
            let error = build(threads, 300_000, missing).map(drop).expect_err("no folder");
            assert!(matches!(error, ReplayError::Spilling { .. }), "{error}");
            let folder = tempfile::tempdir().expect("a folder");
            let error = build(threads, 50_000, folder.path().into()).map(drop);
            let error = error.expect_err("no memory");
            assert!(matches!(error, ReplayError::Memory { .. }), "{error}");
        }
    }
}
