//! **Reads side by side**: two ways to execute the same reads.
//!
//! In each pair, both sides get the same list of blocks, so that the device has the same work to
//! do. They may use different threads, rings and pools. A [`Subject`] describes what one side uses.

use super::comparison::{Comparison, Experiment, Measured, Stage};
use super::options::files;
use super::verify::{Verification, checked};
use crate::bare::{Look, Placement, Ring, Threads, ping_pong};
use crate::data::Data;
use crate::failure::Result;
use crate::handles::{Handles, Setup};
use crate::pairs::{Half, measure};
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Names, Target};
use crate::work::{Done, Work};
use std::fmt;

/// Callback for a baseline that doesn't look at its bytes.
pub(super) const BLIND: &Look<'_> = &|_, _| {};

/// Two ways to read, and what they read.
#[derive(Clone, Copy)]
pub(super) struct SideBySide {
    /// The baseline.
    pub(super) against: Subject,
    pub(super) subject: Subject,
    pub(super) list: List,
    pub(super) cache: PageCache,
}

impl SideBySide {
    /// Cold reads.
    pub(super) fn cold(against: Subject, subject: Subject, list: List) -> Self {
        Self { against, subject, list, cache: PageCache::Cold }
    }

    /// Reads out of the page cache.
    pub(super) fn warm(against: Subject, subject: Subject, list: List) -> Self {
        Self { cache: PageCache::Warm, ..Self::cold(against, subject, list) }
    }

    /// A line of a row. The baseline's name follows from the baseline.
    pub(super) fn line(
        self,
        setting: impl fmt::Display,
        contender: impl fmt::Display,
        target: Target,
    ) -> Comparison {
        Comparison::new(Names::new(setting, contender, self.against), target, self)
    }
}

/// Page cache state before each half of a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PageCache {
    /// The data is evicted from the page cache, and the pool is emptied.
    Cold,
    /// The data has just been read once.
    Warm,
}

/// One side of a comparison: how the reads are executed.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    /// One thread with its own io_uring.
    Ring { direct: bool, depth: usize, length: u32 },
    /// The same, and the thread verifies the checksums of what it read.
    CheckedRing { direct: bool, depth: usize, length: u32 },
    /// The given number of threads, each with one blocking `pread` at a time.
    Threads { direct: bool, threads: usize, length: u32 },
    /// The same, and each thread verifies the checksums of what it read.
    CheckedThreads { direct: bool, threads: usize, length: u32 },
    /// One session that uses I/O handles directly, without a pool.
    Handles(Setup),
    /// Read streams through the buffer pool, one per session.
    Pool { setup: PoolSetup, sessions: usize },
    /// The engine's verification of checksums.
    Verification(Setup),
    /// Futex round trips between two threads, one trip per `reads_per_trip` reads.
    RoundTrips { placement: Placement, reads_per_trip: u32 },
}

/// Which blocks a pair reads.
#[derive(Clone, Copy)]
pub(super) enum List {
    /// Sequential reads. Each pair continues where the previous pair ended.
    Slice { count: usize, length: u32 },
    /// Random blocks, with a different list for each pair.
    Random { count: usize, length: u32 },
    /// All blocks once, divided among the sessions.
    Parts { sessions: usize, length: u32 },
}

impl Experiment for SideBySide {
    fn measure(&self, stage: &Stage<'_>, _: &Names) -> Result<Measured> {
        let data = stage.data()?;
        let mut reference = self.against.open(data)?;
        let mut contender = self.subject.open(data)?;
        if matches!(self.list, List::Slice { .. }) {
            stage.page_kind.set(contender.page_kind().or(stage.page_kind.get()));
        }
        stage.pairs(|half, round| {
            let parts = self.list.of_round(round, data);
            match self.cache {
                PageCache::Cold => {
                    contender.empty()?;
                    data.evict()?;
                }
                PageCache::Warm => data.warm()?,
            }
            measure(|| match half {
                Half::Reference => reference.run(&parts),
                Half::Contender => contender.run(&parts),
            })
        })
    }
}

impl List {
    fn of_round(self, round: u64, data: &Data) -> Vec<Work> {
        match self {
            Self::Slice { count, length } => {
                let start = round * count as u64 * u64::from(length) % data.bytes;
                vec![Work::sequential(start, count, length, data.bytes)]
            }
            Self::Random { count, length } => {
                vec![Work::random(round + 1, count, length, data.bytes)]
            }
            Self::Parts { sessions, length } => {
                let reads = (data.bytes / u64::from(length)).max(1);
                let part = |index: u64| {
                    let first = reads * index / sessions as u64;
                    let count = reads * (index + 1) / sessions as u64 - first;
                    let start = first * u64::from(length);
                    Work::sequential(start, count as usize, length, data.bytes)
                };
                (0..sessions as u64).map(part).collect()
            }
        }
    }
}

impl fmt::Display for Subject {
    /// The name of a baseline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring { .. } => f.write_str("bare ring"),
            Self::CheckedRing { .. } => f.write_str("bare ring, checksums"),
            Self::Threads { threads: 1, .. } => f.write_str("pread"),
            Self::Threads { threads, .. } | Self::CheckedThreads { threads, .. } => {
                write!(f, "{threads} threads")
            }
            Self::RoundTrips { .. } => f.write_str("futex round trip"),
            Self::Handles(io)
            | Self::Verification(io)
            | Self::Pool { setup: PoolSetup { io, .. }, .. } => write!(f, "our {}", io.method),
        }
    }
}

/// One side of a comparison, opened and ready to run.
trait Side {
    /// Executes the work lists. Only a pool accepts more than one list.
    fn run(&mut self, parts: &[Work]) -> Result<Done>;

    /// Empties the pool, if this side has one.
    fn empty(&self) -> Result<()> {
        Ok(())
    }

    /// Kind of memory pages of the I/O region, if this side has one.
    fn page_kind(&self) -> Option<&'static str> {
        None
    }
}

impl<F: FnMut(&Work) -> Result<Done>> Side for F {
    fn run(&mut self, parts: &[Work]) -> Result<Done> {
        self(parts.first().ok_or("no reads")?)
    }
}

impl Side for Handles {
    fn run(&mut self, parts: &[Work]) -> Result<Done> {
        self.run(parts.first().ok_or("no reads")?)
    }

    fn page_kind(&self) -> Option<&'static str> {
        Some(self.page_kind())
    }
}

impl Side for Pooled {
    fn run(&mut self, parts: &[Work]) -> Result<Done> {
        self.run(parts)
    }

    fn empty(&self) -> Result<()> {
        self.empty()
    }

    fn page_kind(&self) -> Option<&'static str> {
        Some(self.page_kind())
    }
}

impl Subject {
    /// Opens the files and starts the threads or the instance.
    fn open(self, data: &Data) -> Result<Box<dyn Side + '_>> {
        Ok(match self {
            Self::Ring { direct, depth, length } => {
                let mut ring = Ring::open(files(data, direct)?, depth, length)?;
                Box::new(move |work: &Work| Ok(ring.run(work, BLIND)?))
            }
            Self::CheckedRing { direct, depth, length } => {
                let mut ring = Ring::open(files(data, direct)?, depth, length)?;
                Box::new(move |work: &Work| checked(|look| ring.run(work, look)))
            }
            Self::Threads { direct, threads, length } => {
                let mut threads = Threads::open(files(data, direct)?, threads, length)?;
                Box::new(move |work: &Work| Ok(threads.run(work, BLIND)?))
            }
            Self::CheckedThreads { direct, threads, length } => {
                let mut threads = Threads::open(files(data, direct)?, threads, length)?;
                Box::new(move |work: &Work| checked(|look| threads.run(work, look)))
            }
            Self::Handles(setup) => Box::new(Handles::open(data, setup)?),
            Self::Pool { setup, sessions } => Box::new(Pooled::open(data, setup, sessions)?),
            Self::Verification(setup) => {
                let verification = Verification::open(setup)?;
                Box::new(move |work: &Work| verification.run(data, work))
            }
            Self::RoundTrips { placement, reads_per_trip } => Box::new(move |work: &Work| {
                let trips = (work.offsets.len() as u32 / reads_per_trip).max(4);
                Ok(ping_pong(placement, trips)?)
            }),
        })
    }
}
