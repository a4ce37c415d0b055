//! **Comparison runner** for the rows that read: measures a contender against a baseline on the
//! same work lists.
//!
//! A row is declared as data in `reads.rs`: a title, the files, and one [`Comparison`] per line of
//! its report. The runner opens both sides, prepares each half of a pair, and turns the pairs into
//! a line. Rows that write, or that record more than reads, have their own runners.

use std::cell::RefCell;

use trunkline_aio::MethodKind;

use super::{BLIND, RunOptions, files};
use crate::Result;
use crate::bare::{Placement, Ring, Threads, ping_pong};
use crate::data::Data;
use crate::handles::{Handles, Setup};
use crate::pairs::Pairs;
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Line, Report, Target};
use crate::work::{Done, Work};

/// A row that only reads.
pub(super) struct ReadRow {
    /// The report's heading.
    pub(super) title: &'static str,
    pub(super) input: Input,
    /// Page cache state before each half of a pair.
    pub(super) cache: PageCache,
    /// A note specific to this row, printed last.
    pub(super) note: Option<&'static str>,
    /// The report's lines, in order.
    pub(super) comparisons: fn(&Data) -> Vec<Comparison>,
}

/// Which files the row reads.
pub(super) enum Input {
    /// All data in `--dir`.
    Whole,
    /// A separate, smaller data set in the given subdirectory, limited to the given number of
    /// bytes.
    Folder(&'static str, u64),
    /// A data set in `--lag-dir`, limited to the given number of bytes.
    SlowDevice(u64),
}

/// Page cache state before each half of a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PageCache {
    /// The data is evicted from the page cache, and the pool is emptied.
    Cold,
    /// The data is read once before the first pair, and stays cached.
    Warm,
}

/// One comparison, which becomes one line of a report.
pub(super) struct Comparison {
    pub(super) setting: String,
    pub(super) contender: String,
    pub(super) reference: String,
    /// The baseline.
    pub(super) against: Subject,
    pub(super) subject: Subject,
    pub(super) target: Target,
    pub(super) list: List,
}

/// One side of a comparison: how the reads are executed.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    /// One thread with its own io_uring.
    Ring { direct: bool, depth: usize, length: u32 },
    /// The given number of threads, each with one blocking `pread` at a time.
    Threads { direct: bool, threads: usize, length: u32 },
    /// One session that uses I/O handles directly, without a pool.
    Handles(Setup),
    /// Read streams through the buffer pool, one per session.
    Pool { setup: PoolSetup, sessions: usize },
    /// One page at a time through the buffer pool, without a stream.
    PoolPoints(PoolSetup),
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

impl ReadRow {
    /// Measures every line the user selected.
    pub(super) fn run(&self, bench: &RunOptions<'_>) -> Result<Report> {
        let data = match self.input {
            Input::Whole => bench.data()?,
            Input::Folder(name, most) => {
                Data::prepare(&bench.dir.join(name), bench.bytes.min(most))?
            }
            Input::SlowDevice(most) => {
                let name = self.title.split(':').next().unwrap_or_default();
                let missing =
                    || format!("the row `{name}` needs --lag-dir, a folder on a slow device");
                Data::prepare(bench.lag_dir.ok_or_else(missing)?, bench.bytes.min(most))?
            }
        };
        if self.cache == PageCache::Warm {
            data.warm()?;
        }
        let (mut lines, mut pages) = (Vec::new(), None);
        for comparison in (self.comparisons)(&data) {
            if bench.wants(&comparison.setting, &comparison.contender) {
                lines.push(comparison.measure(bench, &data, self.cache, &mut pages)?);
            }
        }
        let state = match self.cache {
            PageCache::Cold => data.coldness(),
            PageCache::Warm => {
                let cached = data.cached()? * 100.0;
                format!("{cached:.0} % of the data was in the page cache at the end")
            }
        };
        let first = match pages {
            Some(pages) => format!("{pages} pages; {state}"),
            None => state,
        };
        let notes = [Some(first), self.note.map(str::to_owned)].into_iter().flatten().collect();
        Ok(Report { row: self.title, notes, lines, costs: Vec::new() })
    }
}

impl Comparison {
    /// Runs the pairs. Sets `pages` to the kind of memory pages used, if a contender reads
    /// sequentially, because huge pages matter there.
    fn measure(
        self,
        bench: &RunOptions<'_>,
        data: &Data,
        cache: PageCache,
        pages: &mut Option<&'static str>,
    ) -> Result<Line> {
        let mut reference = self.against.open(data)?;
        let subject = RefCell::new(self.subject.open(data)?);
        let sequential = matches!(self.list, List::Slice { .. });
        *pages = subject.borrow().page_kind().filter(|_| sequential).or(*pages);
        let mut prepare = || match cache {
            PageCache::Cold => {
                subject.borrow().empty()?;
                data.evict()
            }
            PageCache::Warm => Ok(()),
        };
        let mut contend = |parts: &Vec<Work>| subject.borrow_mut().run(parts);
        let mut refer = |parts: &Vec<Work>| reference.run(parts);
        let next = |round| self.list.of_round(round, data);
        let pairs = Pairs::run(bench.pairs, next, &mut prepare, &mut refer, &mut contend)?;
        Ok(Line::new(self.setting, self.contender, self.reference, &pairs, self.target))
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
                let reads = data.bytes / u64::from(length);
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

/// One side of a comparison, opened and ready to run.
enum Opened {
    Ring(Ring),
    Threads(Threads),
    Handles(Handles),
    Pool(Pooled),
    PoolPoints(Pooled),
    RoundTrips { placement: Placement, reads_per_trip: u32 },
}

impl Subject {
    /// Opens the files and starts the threads or the instance.
    fn open(self, data: &Data) -> Result<Opened> {
        Ok(match self {
            Self::Ring { direct, depth, length } => {
                Opened::Ring(Ring::open(files(data, direct)?, depth, length)?)
            }
            Self::Threads { direct, threads, length } => {
                Opened::Threads(Threads::open(files(data, direct)?, threads, length)?)
            }
            Self::Handles(setup) => Opened::Handles(Handles::open(data, setup)?),
            Self::Pool { setup, sessions } => Opened::Pool(Pooled::open(data, setup, sessions)?),
            Self::PoolPoints(setup) => Opened::PoolPoints(Pooled::open(data, setup, 1)?),
            Self::RoundTrips { placement, reads_per_trip } => {
                Opened::RoundTrips { placement, reads_per_trip }
            }
        })
    }
}

impl Opened {
    /// Executes the work lists. Only a pool accepts more than one list.
    fn run(&mut self, parts: &[Work]) -> Result<Done> {
        let work = parts.first().ok_or("no reads")?;
        Ok(match self {
            Self::Ring(ring) => ring.run(work)?,
            Self::Threads(threads) => threads.run(work, BLIND)?,
            Self::Handles(handles) => handles.run(work)?,
            Self::Pool(pooled) => pooled.run_parts(parts)?,
            Self::PoolPoints(pooled) => pooled.run_points(work)?,
            Self::RoundTrips { placement, reads_per_trip } => {
                let trips = (work.offsets.len() as u32 / *reads_per_trip).max(4);
                ping_pong(*placement, trips)?
            }
        })
    }

    /// Empties the pool, if this side has one.
    fn empty(&self) -> Result<()> {
        match self {
            Self::Pool(pooled) | Self::PoolPoints(pooled) => pooled.empty(),
            _ => Ok(()),
        }
    }

    /// Kind of memory pages of the I/O region, if this side has one.
    fn page_kind(&self) -> Option<&'static str> {
        match self {
            Self::Handles(handles) => Some(handles.page_kind()),
            Self::Pool(pooled) | Self::PoolPoints(pooled) => Some(pooled.page_kind()),
            _ => None,
        }
    }
}

/// The I/O methods that can have several reads in flight. `sync` can't for direct I/O, because it
/// relies on kernel read-ahead.
pub(super) fn methods(direct: bool) -> impl Iterator<Item = MethodKind> {
    super::METHODS.into_iter().filter(move |&method| !direct || method != MethodKind::Sync)
}
