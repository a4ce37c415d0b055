//! Mode `prefetch`: the system is told which blocks will be wanted, and reads them when it likes.
//!
//! Advice is no I/O that a handle could carry: it is a system call that returns as soon as the
//! reads are queued, in the order of the files. What was in the cache when it was given is known;
//! what comes of it shows later.

use std::collections::BTreeMap;
use std::io;

use rustix::fs::{Advice, Mode, OFlags};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Aio, Residency};
use trunkline_format::BLOCK_SIZE;

use super::{Failures, PrewarmReport, Target, cached_part, take};
use crate::datadir::{DataDir, FileEntry};
use crate::scan::{Body, Job, JobError, Observer, ReadOptions, Visitor};

/// Blocks of one piece of advice. The kernel cuts each to the largest read-ahead of the device,
/// 128 KiB as a rule, and drops the rest without a word.
const BLOCKS: u32 = 16;

/// Advises the system of the targets.
///
/// # Errors
/// [`JobError`]: nothing could be done at all, or a server has started meanwhile.
pub fn prefetch(
    aio: &Aio,
    dir: &DataDir,
    targets: Vec<Target>,
    observer: Arc<dyn Observer>,
) -> Result<PrewarmReport, JobError> {
    let options = ReadOptions { direct: false, depth: 0, combine_blocks: BLOCKS };
    let job = Job::new(aio, options, Arc::new(NoReads), observer);
    let files: Vec<FileEntry> = targets.iter().flat_map(Target::wanted_files).collect();
    let (dir, count) = (dir.clone(), files.len() as u64);
    let cached = Arc::new(Mutex::new([Residency::default(); 2]));
    let failures = Arc::new(Mutex::new(Failures::default()));
    let (looks, failed) = (Arc::clone(&cached), Arc::clone(&failures));
    let outline = job.run(move |job| {
        looks.lock()[0] = cached_part(&job.aio, &files);
        let blocks: u64 = targets.iter().map(Target::blocks).sum();
        job.observer.begins(files.len(), blocks * BLOCK_SIZE as u64);
        let outcome = job.in_threads(bodies(targets, &failed), || Ok(dir.recheck()?));
        looks.lock()[1] = cached_part(&job.aio, &files);
        outcome
    })?;
    let [before, after] = *cached.lock();
    Ok(PrewarmReport {
        end: outline.end,
        files: count,
        blocks: outline.blocks,
        before,
        after,
        failures: take(&failures),
        elapsed: outline.reading,
        io: outline.io,
    })
}

/// Advice is not a read.
struct NoReads;

impl Visitor for NoReads {}

/// A thread for each mount.
fn bodies(targets: Vec<Target>, failures: &Arc<Mutex<Failures>>) -> Vec<Body> {
    let mut mounts: BTreeMap<u64, Vec<Target>> = BTreeMap::new();
    for target in targets {
        let device = target.files.first().map_or(0, |file| file.device);
        mounts.entry(device).or_default().push(target);
    }
    let body = |targets: Vec<Target>| -> Body {
        let failures = Arc::clone(failures);
        Box::new(move |job| {
            for target in &targets {
                for file in &target.wanted_files() {
                    if let Err(error) = advise(job, target, file) {
                        let text = format!("could not be prefetched: {error}");
                        failures.lock().add(&file.path, text);
                    }
                }
            }
            Ok(())
        })
    };
    mounts.into_values().map(body).collect()
}

fn advise(job: &Job, target: &Target, file: &FileEntry) -> io::Result<()> {
    let first = target.first.saturating_sub(file.first_block().unwrap_or_default());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let open = rustix::fs::open(&file.path, flags, Mode::empty());
    let open = open.inspect_err(|_| job.count(file.blocks() - first, 0))?;
    for block in (first..file.blocks()).step_by(BLOCKS as usize) {
        if job.is_stopping() {
            break;
        }
        let blocks = BLOCKS.min(file.blocks() - block);
        let bytes = |blocks: u32| u64::from(blocks) * BLOCK_SIZE as u64;
        let length = std::num::NonZeroU64::new(bytes(blocks));
        rustix::fs::fadvise(&open, bytes(block), length, Advice::WillNeed)?;
        job.count(blocks, blocks);
    }
    Ok(())
}
