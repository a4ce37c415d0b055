//! `buffer` mode: loads blocks into the buffer pool through a maintenance stream and verifies each
//! page.
//!
//! We report damaged pages, truncated files and missing segments along with their file and block,
//! and load everything else. If a segment ends early or can't be read at all, we skip the rest of
//! it. Trying the remaining blocks one by one would fail every time, and could take hours on a
//! dying disk. A page that can't be built from the log is skipped alone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::task::Poll;
use std::time::Duration;

use trunkline_aio::clock;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::segment::segment_of;
use trunkline_format::{BLOCK_SIZE, BlockNo};

use super::pool_report::{BufferOptions, BufferReport};
use super::report::{Failures, Unchecked};
use super::target::Target;
use super::unbuilt_pages::UnbuiltPages;
use crate::datadir::DataDir;
use crate::job::{Job, JobError, Observer, WarningLog, by_mount};
use crate::pool::{
    Backend, BackendType, Findings, IoKey, Pool, ReadError, RelationResidency, Tally,
};
use crate::read_stream::{BlockSource, ReadStream, StreamOptions, StreamStats};
use crate::storage::{Relation, Storage, StorageError};

/// How many blocks of a segment may fail with an I/O error before we skip the rest of the segment.
const FAILED_BLOCKS_MAX: u32 = 1024;

/// Loads the targets, which must be relations in `storage`, into the pool. If `dir` is given, the
/// job checks once a second that no server has been started on that directory.
///
/// # Errors
/// [`JobError`]: nothing could be read at all, or a server was started on the directory.
pub fn into_pool(
    pool: &Pool,
    storage: &Storage,
    dir: Option<&DataDir>,
    targets: Vec<Target>,
    options: BufferOptions,
    observer: Arc<dyn Observer>,
) -> Result<BufferReport, JobError> {
    let job = Job::new(pool.aio(), observer);
    let relations = targets.len() as u64;
    let loader = Arc::new(Loader {
        pool: pool.clone(),
        storage: storage.clone(),
        options: BufferOptions {
            // An error doesn't say which block it is for, so we match errors with blocks by their
            // order.
            stream: StreamOptions { unordered: false, ..options.stream },
            ..options
        },
        results: Mutex::default(),
    });
    let before = pool.counts().into_iter().collect();
    let (dir, shared) = (dir.cloned(), Arc::clone(&loader));
    let summary = job.run(move |job| shared.coordinate(job, dir.as_ref(), targets))?;
    let results = std::mem::take(&mut *loader.results.lock());
    Ok(BufferReport {
        end: summary.end,
        relations,
        blocks: summary.blocks,
        before: results.before,
        after: results.after_complete.then_some(results.after),
        failures: results.failures,
        unchecked: results.unchecked,
        warnings: results.warnings.kept,
        warnings_lost: results.warnings.lost,
        streams: results.streams,
        counts: counted_since(pool, &before),
        elapsed: if results.reading.is_zero() { summary.elapsed } else { results.reading },
        io: summary.io,
    })
}

/// Changes in the pool's I/O statistics since `before`, without unchanged rows.
fn counted_since(pool: &Pool, before: &BTreeMap<IoKey, Tally>) -> Vec<(IoKey, Tally)> {
    let counts = pool.counts().into_iter().map(|(key, after)| {
        let before = before.get(&key).copied().unwrap_or_default();
        (key, after.since(&before))
    });
    counts.filter(|(_, tally)| *tally != Tally::default()).collect()
}

/// What each worker does with its mount's targets.
type Phase = fn(&Loader, &Job, &[Target]) -> Result<(), JobError>;

/// One job, shared by the workers of all mounts.
struct Loader {
    pool: Pool,
    storage: Storage,
    options: BufferOptions,
    results: Mutex<Results>,
}

/// The results of all workers.
#[derive(Default)]
struct Results {
    before: RelationResidency,
    after: RelationResidency,
    /// Number of mounts included in `after`.
    mounts_after: usize,
    /// Whether that is all mounts.
    after_complete: bool,
    failures: Failures,
    unchecked: Unchecked,
    warnings: WarningLog,
    streams: StreamStats,
    /// The slowest mount's load time. All mounts are read concurrently, so this is how long the job
    /// took, not including the residency queries.
    reading: Duration,
}

impl Loader {
    /// Groups the targets by mount and runs the two phases: load, then query the residency.
    fn coordinate(
        self: Arc<Self>,
        job: &Arc<Job>,
        dir: Option<&DataDir>,
        targets: Vec<Target>,
    ) -> Result<(), JobError> {
        let blocks: u64 = targets.iter().map(Target::blocks).sum();
        let files = targets.iter().map(|target| target.files.len()).sum();
        job.observer().begins(files, blocks * BLOCK_SIZE as u64);
        let mounts = Arc::new(by_mount(targets, Target::device));
        // To find out how much is cached, we have to open files, which can hang if the mount does.
        // We therefore leave this to the workers, too.
        let phases: [Phase; 2] = [Loader::read_mount, Loader::residency_after];
        for phase in phases {
            let recheck = || dir.map_or(Ok(()), |dir| Ok(dir.recheck()?));
            let (loader, mounts) = (Arc::clone(&self), Arc::clone(&mounts));
            job.run_workers(mounts.len(), recheck, move |job, number| {
                phase(&loader, job, mounts.get(number).map_or(&[], Vec::as_slice))
            })?;
        }
        let mut results = self.results.lock();
        results.after_complete = results.mounts_after == mounts.len();
        Ok(())
    }

    /// The target's relation in the storage layer.
    fn relation(&self, target: &Target) -> Relation {
        self.storage.relation(target.locator, target.fork)
    }

    /// Counts how many of the targets' blocks are in the pool and in the page cache. We ignore
    /// errors here, because reading the same relation will report them.
    fn residency(&self, job: &Job, targets: &[Target]) -> RelationResidency {
        let mut sum = RelationResidency::default();
        for target in targets {
            if job.is_stopping() {
                break;
            }
            let found = self.pool.residency(&self.relation(target), target.first..target.end);
            sum.add(found.unwrap_or_default());
        }
        sum
    }

    /// A worker's second phase. A mount counts as complete only if the job was not stopped.
    fn residency_after(&self, job: &Job, targets: &[Target]) -> Result<(), JobError> {
        let after = self.residency(job, targets);
        let mut results = self.results.lock();
        results.after.add(after);
        results.mounts_after += usize::from(!job.is_stopping());
        Ok(())
    }

    /// Loads the targets on one mount.
    fn read_mount(&self, job: &Job, targets: &[Target]) -> Result<(), JobError> {
        let mut backend = job.backend(&self.pool, BackendType::Standalone, self.options.policy)?;
        // Query the residency in this worker, because that opens files on this mount.
        let before = self.residency(job, targets);
        self.results.lock().before.add(before);
        let started = clock::now();
        for target in targets {
            if job.is_stopping() {
                break;
            }
            let outcome = self.read_target(job, &mut backend, target);
            self.results.lock().warnings.take_from(&mut backend);
            outcome?;
        }
        let reading = clock::now().since(started);
        let mut results = self.results.lock();
        results.reading = results.reading.max(reading);
        Ok(())
    }

    /// Loads one target.
    ///
    /// The stream requests blocks well ahead of the ones it returns, so its position doesn't tell
    /// us which block an error belongs to. We therefore keep a clone of its block source,
    /// `expected`, and advance it for each page or error that the stream returns.
    fn read_target(
        &self,
        job: &Job,
        backend: &mut Backend,
        target: &Target,
    ) -> Result<(), JobError> {
        let relation = self.relation(target);
        // A clone of the stream's source that follows what the stream returns.
        let mut expected = BlockRanges::new(target.ranges().collect());
        let mut stream = ReadStream::new(backend, &relation, expected.clone(), self.options.stream);
        let mut progress = job.page_progress();
        // The segment of the last error, and the number of errors in it.
        let mut failed = (0, 0);
        let mut unbuilt = UnbuiltPages::default();
        while !job.is_stopping() {
            match stream.next(backend) {
                Ok(None) | Err(ReadError::Cancelled) => break,
                Ok(Some(_)) => {
                    expected.next();
                    progress.page_done();
                }
                Err(ReadError::Storage(StorageError::Direct { path, file_system })) => {
                    return Err(JobError::Direct { path, file_system });
                }
                Err(error) => {
                    let Some(block) = expected.next() else { break };
                    if let ReadError::Storage(StorageError::Replay { source, .. }) = &error {
                        // The pages after it are built from other records.
                        unbuilt.add(&relation, block, source);
                        job.count(1, 0);
                        continue;
                    }
                    let segment = segment_of(block).0;
                    failed =
                        if failed.0 == segment { (segment, failed.1 + 1) } else { (segment, 1) };
                    let skip = match error {
                        // A damaged page affects only itself.
                        ReadError::Corrupt { .. } => false,
                        // If only part of a block could be read, the next block may still be
                        // readable.
                        ReadError::Short { bytes: 1.., .. } => false,
                        // An I/O error may be limited to a few sectors, so give up on the segment
                        // only after many errors.
                        ReadError::Io { .. } => failed.1 == FAILED_BLOCKS_MAX,
                        _ => true,
                    };
                    let mut skipped = 0;
                    if skip {
                        skipped = expected.skip_segment(segment);
                        // The stream has already requested blocks of this segment, so restart it
                        // after the skipped blocks.
                        stream.reset(expected.clone());
                    }
                    job.count(1 + skipped, 0);
                    self.fail(relation.path(segment), block, skipped, &error);
                }
            }
        }
        let results = &mut *self.results.lock();
        results.streams.add(&stream.stats());
        unbuilt.report(&mut results.failures, &mut results.unchecked);
        Ok(())
    }

    /// Records a failure.
    fn fail(&self, path: PathBuf, block: BlockNo, skipped: u32, error: &ReadError) {
        let mut text = format!("block {block}: {}", reason(error));
        if skipped > 0 {
            text.push_str(&format!("; {skipped} blocks after it are skipped"));
        }
        self.results.lock().failures.add(&path, text);
    }
}

/// The text of an error, not including the file and the block, which the report shows separately.
fn reason(error: &ReadError) -> String {
    match error {
        ReadError::Io { source, .. } => format!("could not be read: {source}"),
        ReadError::Storage(StorageError::SegmentMissing { .. }) => {
            "the segment file is missing".to_owned()
        }
        ReadError::Short { bytes: 0, .. } => "file ended while it was read".to_owned(),
        ReadError::Short { bytes, .. } => format!("read only {bytes} of {BLOCK_SIZE} bytes"),
        ReadError::Corrupt { verdict, .. } => format!("invalid page{}", Findings(*verdict)),
        other => other.to_string(),
    }
}

/// A sequence of block ranges. No range crosses a segment boundary, so that we can skip the rest of
/// a segment.
#[derive(Debug, Clone)]
struct BlockRanges {
    ranges: Vec<Range<BlockNo>>,
    at: usize,
}

impl BlockRanges {
    fn new(ranges: Vec<Range<BlockNo>>) -> Self {
        Self { ranges, at: 0 }
    }

    /// Skips the rest of a segment. Returns the number of blocks skipped.
    fn skip_segment(&mut self, segment: u32) -> u32 {
        match self.ranges.get_mut(self.at) {
            Some(range) if segment_of(range.start).0 == segment => {
                let left = range.len() as u32;
                range.start = range.end;
                left
            }
            _ => 0,
        }
    }
}

impl Iterator for BlockRanges {
    type Item = BlockNo;

    fn next(&mut self) -> Option<BlockNo> {
        loop {
            if let Some(block) = self.ranges.get_mut(self.at)?.next() {
                return Some(block);
            }
            self.at += 1;
        }
    }
}

impl BlockSource for BlockRanges {
    type Data = ();

    fn next_block(&mut self) -> Poll<Option<(BlockNo, ())>> {
        Poll::Ready(self.next().map(|block| (block, ())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_segment_can_be_skipped() {
        let mut ranges = BlockRanges::new(vec![10..13, 131_072..131_074]);
        assert_eq!(ranges.next(), Some(10));
        assert_eq!(ranges.skip_segment(1), 0);
        assert_eq!(ranges.skip_segment(0), 2);
        assert_eq!(ranges.next(), Some(131_072));
        assert_eq!(ranges.next(), Some(131_073));
        assert_eq!(ranges.skip_segment(1), 0);
        assert_eq!((ranges.next(), ranges.next()), (None, None));
    }
}
