//! Mode `buffer`: blocks into the buffer pool, through a maintenance stream, each page checked.
//!
//! A page that is not sound, a file that ends too soon, a segment that is gone: each is named, with
//! its file and block, and the rest goes on. Where a segment ends or cannot be read at all, what
//! would follow in it is left out instead of being tried block by block.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use trunkline_aio::clock;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::segment::segment_of;
use trunkline_format::{BLOCK_SIZE, BlockNo, PageVerdict};

use super::{Failures, Target, take};
use crate::datadir::DataDir;
use crate::pool::{
    Backend, BackendType, IoKey, Policy, Pool, ReadError, ReadWarning, RelationResidency, Tally,
};
use crate::read_stream::{BlockSource, ReadStream, StreamOptions, StreamStats};
use crate::scan::{Body, End, IoSummary, Job, JobError, Observer, ReadOptions, Visitor};
use crate::settings::Settings;
use crate::storage::{Relation, Storage, StorageError};

/// Pages between two looks at whether to stop.
const PAGES_UNSEEN_MAX: u32 = 64;

/// Blocks of one segment that may fail before the rest of it is left out.
const FAILED_BLOCKS_MAX: u32 = 1024;

/// How to fill the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferOptions {
    /// How to read. The stream must be ordered.
    pub stream: StreamOptions,
    /// What to do with pages that are not sound.
    pub policy: Policy,
}

impl BufferOptions {
    /// As the settings say: a maintenance stream.
    pub fn of(settings: &Settings) -> Self {
        let policy = Policy {
            zero_damaged_pages: settings.zero_damaged_pages(),
            ignore_checksum_failure: settings.ignore_checksum_failure(),
        };
        let stream = StreamOptions { sequential: true, ..StreamOptions::maintenance(settings) };
        Self { stream, policy }
    }
}

/// The result of filling the pool.
#[derive(Debug)]
pub struct BufferReport {
    /// Whether it came to its end.
    pub end: End,
    /// Forks of relations asked for.
    pub relations: u64,
    /// Pages that were had.
    pub blocks: u64,
    /// Where the relations' blocks were before: all of them, not only those asked for.
    pub before: RelationResidency,
    /// Where they are now; `None` if a mount hung, or nobody wanted to wait for the answer.
    pub after: Option<RelationResidency>,
    /// Files and blocks that could not be had, with the reason.
    pub failures: Failures,
    /// Pages that the policy let pass.
    pub warnings: Vec<ReadWarning>,
    /// How many more warnings there were than are kept.
    pub warnings_lost: u64,
    /// All streams together.
    pub streams: StreamStats,
    /// What the pool has counted meanwhile, by kind of work and relation, whoever caused it.
    pub counts: Vec<(IoKey, Tally)>,
    /// How long it took, without looking at the page cache.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl BufferReport {
    /// Bytes of the pages that were had.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// The same per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Reads the targets, which are relations of `storage`, into the pool. Looks now and then whether a
/// server has started on `dir`, if there is one.
///
/// # Errors
/// [`JobError`]: nothing could be read at all, or a server has started meanwhile.
pub fn into_pool(
    pool: &Pool,
    storage: &Storage,
    dir: Option<&DataDir>,
    targets: Vec<Target>,
    options: BufferOptions,
    observer: Arc<dyn Observer>,
) -> Result<BufferReport, JobError> {
    let read = ReadOptions {
        direct: storage.is_direct(),
        depth: options.stream.concurrency,
        combine_blocks: options.stream.combine,
    };
    let job = Job::new(pool.aio(), read, Arc::new(NoVisitor), observer);
    let relations = targets.len() as u64;
    let filling = Arc::new(Filling {
        pool: pool.clone(),
        storage: storage.clone(),
        options: BufferOptions {
            stream: StreamOptions { unordered: false, ..options.stream },
            ..options
        },
        found: Mutex::default(),
    });
    let before = pool.counts().into_iter().collect();
    let (dir, conducted) = (dir.cloned(), Arc::clone(&filling));
    let outline = job.run(move |job| conducted.conduct(job, dir.as_ref(), targets))?;
    let found = take(&filling.found);
    Ok(BufferReport {
        end: outline.end,
        relations,
        blocks: outline.blocks,
        before: found.before,
        after: found.all_seen.then_some(found.after),
        failures: found.failures,
        warnings: found.warnings,
        warnings_lost: found.warnings_lost,
        streams: found.streams,
        counts: counted_since(pool, &before),
        elapsed: if found.reading.is_zero() { outline.elapsed } else { found.reading },
        io: outline.io,
    })
}

fn counted_since(pool: &Pool, before: &BTreeMap<IoKey, Tally>) -> Vec<(IoKey, Tally)> {
    let counts = pool.counts().into_iter().map(|(key, after)| {
        let before = before.get(&key).copied().unwrap_or_default();
        (key, after.since(&before))
    });
    counts.filter(|(_, tally)| *tally != Tally::default()).collect()
}

/// The pages are the streams' matter.
struct NoVisitor;

impl Visitor for NoVisitor {}

struct Filling {
    pool: Pool,
    storage: Storage,
    options: BufferOptions,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    before: RelationResidency,
    after: RelationResidency,
    /// Mounts that were looked at afterwards, and whether these were all.
    mounts_seen: usize,
    all_seen: bool,
    failures: Failures,
    warnings: Vec<ReadWarning>,
    warnings_lost: u64,
    streams: StreamStats,
    /// The longest time that a mount took.
    reading: Duration,
}

impl Filling {
    fn conduct(
        self: &Arc<Self>,
        job: &Arc<Job>,
        dir: Option<&DataDir>,
        targets: Vec<Target>,
    ) -> Result<(), JobError> {
        let blocks: u64 = targets.iter().map(Target::blocks).sum();
        let files = targets.iter().map(|target| target.files.len()).sum();
        job.observer.begins(files, blocks * BLOCK_SIZE as u64);
        let mut mounts: BTreeMap<u64, Vec<Target>> = BTreeMap::new();
        for target in targets {
            let device = target.files.first().map_or(0, |file| file.device);
            mounts.entry(device).or_default().push(target);
        }
        let mounts: Vec<Arc<Vec<Target>>> = mounts.into_values().map(Arc::new).collect();
        // One that hangs keeps its own threads, here too.
        let bodies = |body: fn(&Filling, &Job, &[Target]) -> Result<(), JobError>| -> Vec<Body> {
            let each = mounts.iter().map(|targets| -> Body {
                let (filling, targets) = (Arc::clone(self), Arc::clone(targets));
                Box::new(move |job| body(&filling, job, &targets))
            });
            each.collect()
        };
        let recheck = || dir.map_or(Ok(()), |dir| Ok(dir.recheck()?));
        job.in_threads(bodies(Filling::read_mount), recheck)?;
        job.in_threads(bodies(Filling::look_after), recheck)?;
        let mut found = self.found.lock();
        found.all_seen = found.mounts_seen == mounts.len();
        Ok(())
    }

    fn relation(&self, target: &Target) -> Relation {
        self.storage.relation(target.locator, target.fork)
    }

    /// Where the blocks are. What is wrong with a relation is found when it is read.
    fn look(&self, job: &Job, targets: &[Target]) -> RelationResidency {
        let mut sum = RelationResidency::default();
        for target in targets {
            if job.is_stopping() {
                break;
            }
            sum.add(self.pool.residency(&self.relation(target)).unwrap_or_default());
        }
        sum
    }

    fn look_after(&self, job: &Job, targets: &[Target]) -> Result<(), JobError> {
        let seen = self.look(job, targets);
        let mut found = self.found.lock();
        found.after.add(seen);
        found.mounts_seen += usize::from(!job.is_stopping());
        Ok(())
    }

    /// Reads the targets on one mount.
    fn read_mount(&self, job: &Job, targets: &[Target]) -> Result<(), JobError> {
        let backend = self.pool.backend(BackendType::Standalone);
        let mut backend = backend.map_err(|error| JobError::Start(io::Error::other(error)))?;
        job.enrol(backend.session().canceller());
        backend.set_policy(self.options.policy);
        let before = self.look(job, targets);
        self.found.lock().before.add(before);
        let started = clock::now();
        for target in targets {
            if job.is_stopping() {
                break;
            }
            let outcome = self.read_target(job, &mut backend, target);
            let (mut warnings, lost) = backend.take_warnings();
            let mut found = self.found.lock();
            found.warnings.append(&mut warnings);
            found.warnings_lost += lost;
            outcome?;
        }
        let reading = clock::now().since(started);
        let mut found = self.found.lock();
        found.reading = found.reading.max(reading);
        Ok(())
    }

    fn read_target(
        &self,
        job: &Job,
        backend: &mut Backend,
        target: &Target,
    ) -> Result<(), JobError> {
        let relation = self.relation(target);
        // Goes through the blocks in step with the stream, and so knows which one is at fault.
        let mut awaited = Pieces::new(target.pieces().collect());
        let mut stream = ReadStream::new(backend, &relation, awaited.clone(), self.options.stream);
        let (mut unseen, mut failed) = (0, (0, 0));
        while !job.is_stopping() {
            match stream.next(backend) {
                Ok(None) | Err(ReadError::Cancelled) => break,
                Ok(Some(_)) => {
                    awaited.next_block();
                    unseen += 1;
                    if unseen == PAGES_UNSEEN_MAX {
                        job.count(std::mem::take(&mut unseen), PAGES_UNSEEN_MAX);
                    }
                }
                Err(ReadError::Storage(StorageError::Direct { path, file_system })) => {
                    return Err(JobError::Direct { path, file_system });
                }
                Err(error) => {
                    let Some((block, ())) = awaited.next_block() else { break };
                    let segment = segment_of(block).0;
                    failed =
                        if failed.0 == segment { (segment, failed.1 + 1) } else { (segment, 1) };
                    let given_up = match error {
                        ReadError::Corrupt { .. } => false,
                        // A part of a block says nothing about the next one.
                        ReadError::Short { bytes: 1.., .. } => false,
                        ReadError::Io { .. } => failed.1 == FAILED_BLOCKS_MAX,
                        _ => true,
                    };
                    let mut left_out = 0;
                    if given_up {
                        left_out = awaited.skip_segment(segment);
                        stream.reset(awaited.clone());
                    }
                    job.count(1 + left_out, 0);
                    self.fail(relation.path(segment), block, left_out, &error);
                }
            }
        }
        job.count(unseen, unseen);
        self.found.lock().streams.add(&stream.stats());
        Ok(())
    }

    fn fail(&self, path: PathBuf, block: BlockNo, left_out: u32, error: &ReadError) {
        let mut text = format!("block {block}: {}", reason(error));
        if left_out > 0 {
            text.push_str(&format!("; {left_out} blocks after it are left out"));
        }
        self.found.lock().failures.add(&path, text);
    }
}

/// What is wrong, without the names of file and block.
fn reason(error: &ReadError) -> String {
    match error {
        ReadError::Io { source, .. } => format!("could not be read: {source}"),
        ReadError::Short { bytes: 0, .. } => "file ended while it was read".to_owned(),
        ReadError::Short { bytes, .. } => format!("read only {bytes} of {BLOCK_SIZE} bytes"),
        ReadError::Corrupt { verdict, .. } => match verdict {
            Some(PageVerdict::Header(header)) => format!("invalid page: {header}"),
            Some(PageVerdict::Checksum { found, expected }) => {
                format!("invalid page: checksum 0x{found:04X} found, 0x{expected:04X} expected")
            }
            Some(PageVerdict::Both { found, expected, header }) => format!(
                "invalid page: checksum 0x{found:04X} found, 0x{expected:04X} expected; {header}"
            ),
            Some(PageVerdict::Good | PageVerdict::New) | None => "invalid page".to_owned(),
        },
        other => other.to_string(),
    }
}

/// Ranges of blocks, one after the other, none beyond its segment.
#[derive(Debug, Clone)]
struct Pieces {
    pieces: Vec<Range<BlockNo>>,
    at: usize,
}

impl Pieces {
    fn new(pieces: Vec<Range<BlockNo>>) -> Self {
        Self { pieces, at: 0 }
    }

    /// Leaves out what is left of a segment; how many blocks.
    fn skip_segment(&mut self, segment: u32) -> u32 {
        match self.pieces.get_mut(self.at) {
            Some(piece) if segment_of(piece.start).0 == segment => {
                let left = piece.len() as u32;
                piece.start = piece.end;
                left
            }
            _ => 0,
        }
    }
}

impl BlockSource for Pieces {
    type Data = ();

    fn next_block(&mut self) -> Option<(BlockNo, ())> {
        loop {
            if let Some(block) = self.pieces.get_mut(self.at)?.next() {
                return Some((block, ()));
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_ends_is_left_out() {
        let mut pieces = Pieces::new(vec![10..13, 131_072..131_074]);
        assert_eq!(pieces.next_block(), Some((10, ())));
        assert_eq!(pieces.skip_segment(1), 0);
        assert_eq!(pieces.skip_segment(0), 2);
        assert_eq!(pieces.next_block(), Some((131_072, ())));
        assert_eq!(pieces.next_block(), Some((131_073, ())));
        assert_eq!(pieces.skip_segment(1), 0);
        assert_eq!((pieces.next_block(), pieces.next_block()), (None, None));
    }
}
