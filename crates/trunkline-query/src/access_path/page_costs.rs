//! **What pages cost**: as the settings say, or as was found out about a large relation.
//!
//! PostgreSQL's `seq_page_cost` and `random_page_cost` are averages over storage and caches that its
//! planner doesn't know. For a large relation we look where its pages are, and measure how long reads
//! of its storage take:
//!
//! ```text
//!   in the pool            the CPU's work to find and pin it
//!   in the page cache      the same, and a system call that copies it
//!   neither                the same, and the read:
//!     one of n in flight   the larger one of latency / n and the time that the device needs for each
//!     the first of many    the latency once for each time that the number in flight doubles
//! ```
//!
//! One unit of cost is [`UNIT`] then, so that times fit the default costs of the CPU's work.

use std::time::Duration;

use trunkline_engine::pool::ResidencyEstimate;
use trunkline_engine::storage::ReadTimes;
use trunkline_format::BlockNo;

/// The time of one unit of cost. A row of a sequential scan with a range condition costs 0.015. On our
/// machine, two million that are cached took 57 to 68 ms in three tasks on two CPUs, which is 0.06 µs each.
const UNIT: Duration = Duration::from_micros(5);

/// What it costs to get a page from the pool: the next one, and any one, which none of the CPU's caches
/// has. An index scan of 20,000 rows on 18,000 cached pages took 27 ms, which is 1.3 µs for each row. The
/// part of a sequential scan that is due to pages rather than rows is a guess.
const POOL: Access = Access { next: 0.06, any: 0.26 };

/// What it costs in addition to copy a page from the page cache. A sequential scan of 60,600 pages took
/// 68 ms longer, the median of four, which is 1 µs for each; the index scan took 110 ms longer, which is 6 µs.
const COPY: Access = Access { next: 0.2, any: 1.2 };

/// What it costs in addition to add a page or a row to a bitmap and to take it out again: 2 and 0.2 µs,
/// by the times of cached bitmap scans of 1 to 100 % of two tables.
const BITMAP_PAGE: f64 = 0.4;
const BITMAP_ROW: f64 = 0.04;

/// Reads of a sequential scan are combined (`io_combine_limit`), by default to 16 pages.
const COMBINED: f64 = 16.0;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Access {
    next: f64,
    any: f64,
}

/// A relation's size and what its pages cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RelationPages {
    /// Its blocks.
    pub(crate) blocks: BlockNo,
    /// What each of them costs.
    pub(crate) costs: PageCosts,
}

/// What is known about the pages of a relation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FoundPages {
    /// Where they are.
    pub(crate) residency: ResidencyEstimate,
    /// How long reads take that come from the storage.
    pub(crate) times: Option<ReadTimes>,
}

/// What the pages of a relation cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PageCosts {
    /// `seq_page_cost` and `random_page_cost`.
    storage: Access,
    found: Option<FoundPages>,
}

impl FoundPages {
    /// The part that a scan must read from the storage.
    fn missing(&self) -> f64 {
        (1.0 - self.residency.pool - self.residency.cache).max(0.0)
    }

    fn cached(&self, access: impl Fn(Access) -> f64) -> f64 {
        access(POOL) + self.residency.cache * access(COPY)
    }
}

impl PageCosts {
    /// As `seq_page_cost` and `random_page_cost` say.
    pub(super) fn new(next: f64, any: f64) -> Self {
        Self { storage: Access { next, any }, found: None }
    }

    /// The same with what was found out, if anything was.
    pub(crate) fn with(self, found: Option<FoundPages>) -> Self {
        Self { found, ..self }
    }

    /// What was found out.
    pub(crate) fn found(&self) -> Option<&FoundPages> {
        self.found.as_ref()
    }

    /// How a limit to a part of the rows is estimated: by the pages of that part, or by that part of the
    /// costs, as in PostgreSQL. The result is the part of the pages, and that of their costs.
    pub(super) fn limited(&self, fraction: f64) -> (f64, f64) {
        if self.found.is_some() { (fraction, 1.0) } else { (1.0, fraction) }
    }

    /// All of these pages, one after the other, of which `most` reads can be in flight together.
    pub(super) fn sequential(&self, pages: f64, most: f64) -> f64 {
        let Some(found) = &self.found else { return pages * self.storage.next };
        let missing = pages * found.missing();
        let read = match &found.times {
            None => missing * self.storage.next,
            Some(times) => {
                let slow_start = doublings(missing, most * COMBINED) * units(times.latency);
                missing * units(times.sequential) + slow_start * found.missing()
            }
        };
        pages * found.cached(|access| access.next) + read
    }

    /// A page anywhere if `wanted` pages are, of which `most` can be in flight together.
    pub(super) fn random(&self, wanted: f64, most: f64) -> f64 {
        let Some(found) = &self.found else { return self.together(wanted, most) };
        let missing = wanted * found.missing();
        let read = match &found.times {
            None => self.together(missing, most),
            Some(times) => {
                let (latency, least) = (units(times.latency), units(times.random));
                let together = missing.min(most).max(1.0);
                let slow_start = doublings(missing, most) * latency / missing.max(1.0);
                (latency / together).max(least) + slow_start
            }
        };
        found.cached(|access| access.any) + found.missing() * read
    }

    /// A page if `wanted` pages of `all` are read in the order of their blocks: the more there are, the
    /// more of them are neighbours, which are read together.
    pub(super) fn in_order(&self, wanted: f64, all: f64, most: f64) -> f64 {
        let random = self.random(wanted, most);
        if wanted < 2.0 {
            return random;
        }
        let density = (wanted / all.max(1.0)).min(1.0);
        let (next, density) = match &self.found {
            // cost_bitmap_heap_scan
            None => (self.storage.next, density.sqrt()),
            Some(_) => (self.sequential(wanted, most) / wanted, density),
        };
        random - (random - next) * density
    }

    /// Another access of a page that was read before.
    pub(super) fn again(&self) -> f64 {
        if self.found.is_some() { POOL.any } else { 0.0 }
    }

    /// The pages and rows of a bitmap, in addition to what PostgreSQL estimates.
    pub(super) fn bitmap(&self, pages: f64, rows: f64) -> f64 {
        if self.found.is_some() { pages * BITMAP_PAGE + rows * BITMAP_ROW } else { 0.0 }
    }

    /// A random read according to the settings. What it costs more than a sequential one is latency, and
    /// reads that wait together wait once.
    fn together(&self, wanted: f64, most: f64) -> f64 {
        let together = wanted.min(most).max(1.0);
        // A user may say that random reads cost less than others.
        let latency = (self.storage.any - self.storage.next).max(0.0);
        self.storage.any.min(self.storage.next) + latency / together
    }
}

/// How often the number of pages in flight doubles until all that are wanted, or the most, are.
fn doublings(wanted: f64, most: f64) -> f64 {
    wanted.min(most).max(1.0).log2()
}

fn units(time: Duration) -> f64 {
    time.as_secs_f64() / UNIT.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    fn settings() -> PageCosts {
        PageCosts::new(1.0, 4.0)
    }

    fn found(pool: f64, cache: f64, times: Option<ReadTimes>) -> PageCosts {
        settings().with(Some(FoundPages { residency: ResidencyEstimate { pool, cache }, times }))
    }

    /// A device with 5 ms, of which 64 take 5 ms, and that reads 16 pages at once.
    const SLOW: ReadTimes = ReadTimes {
        latency: Duration::from_micros(5000),
        random: Duration::from_micros(80),
        sequential: Duration::from_micros(5),
        in_flight: 64,
    };

    #[test]
    fn random_reads_cost_less_if_there_are_others_meanwhile() {
        let costs = settings();
        close(costs.random(1.0, 16.0), 4.0);
        close(costs.random(3.0, 16.0), 2.0);
        close(costs.random(1000.0, 16.0), 1.1875);
        close(costs.random(1000.0, 1.0), 4.0);
        close(costs.sequential(1000.0, 16.0), 1000.0);
        // A user may say that there is no difference, or that random reads are cheaper.
        let of = |random| PageCosts::new(1.0, random);
        close(of(1.0).random(1000.0, 16.0), 1.0);
        close(of(0.5).random(1.0, 16.0), 0.5);
    }

    #[test]
    fn cached_pages_cost_only_the_work_of_the_cpu() {
        let pooled = found(1.0, 0.0, Some(SLOW));
        close(pooled.random(1000.0, 64.0), 0.26);
        close(pooled.sequential(1000.0, 64.0), 60.0);
        close(pooled.again(), 0.26);
        close(pooled.bitmap(10.0, 100.0), 8.0);
        close(settings().again() + settings().bitmap(10.0, 100.0), 0.0);
        let cached = found(0.0, 1.0, Some(SLOW));
        close(cached.random(1000.0, 64.0), 1.46);
        close(cached.sequential(1000.0, 64.0), 260.0);
        // Without times, the pages that are missing cost what the settings say.
        let half = found(0.5, 0.0, None);
        close(half.random(1000.0, 16.0), 0.26 + 0.5 * 1.1875);
        close(half.sequential(1000.0, 16.0), 560.0);
    }

    #[test]
    fn storage_costs_what_was_measured() {
        let costs = found(0.0, 0.0, Some(SLOW));
        // The latency of a single page.
        close(costs.random(1.0, 64.0), 1000.26);
        // The device's limit, and the latency six times until 64 reads are in flight.
        close(costs.random(1e6, 64.0), 0.26 + 16.0 + 6.0 * 1000.0 / 1e6);
        // Fewer in flight: each waits for its part of the latency.
        close(costs.random(1e6, 16.0), 0.26 + 1000.0 / 16.0 + 4.0 * 1000.0 / 1e6);
        // Until 1024 pages are in flight.
        close(costs.sequential(1e6, 64.0), 1e6 * 1.06 + 10.0 * 1000.0);
    }

    #[test]
    fn neighbours_cost_less() {
        let costs = found(0.0, 0.0, Some(SLOW));
        let (random, next) = (costs.random(1e6, 64.0), costs.sequential(1e6, 64.0) / 1e6);
        close(costs.in_order(1e6, 1e6, 64.0), next);
        close(costs.in_order(1e6, 4e6, 64.0), random - (random - next) / 4.0);
        close(costs.in_order(1.0, 1.0, 64.0), costs.random(1.0, 64.0));
        let costs = settings();
        close(costs.in_order(1000.0, 4000.0, 16.0), 1.1875 - 0.1875 / 2.0);
    }
}
