//! **Costs**, in PostgreSQL's units: one page of a sequential scan costs `seq_page_cost`, which is 1.
//!
//! The formulas are those of `costsize.c` and `selfuncs.c`, with two differences (decision 0032): the
//! tasks of a sequential scan cost nothing themselves, and random reads cost less together.
//!
//! In PostgreSQL up to 19, an index scan reads one page of the table at a time. Our scans have several
//! reads in flight, so a random read costs less if there are others to read meanwhile:
//!
//! ```text
//!   random(n) = seq_page_cost + (random_page_cost - seq_page_cost) / n
//! ```
//! where `n` is the number of reads that can be in flight together. For a large relation, we also look
//! where its pages are, and measure its storage (`page_costs`, decision 0041).

use super::page_costs::PageCosts;

/// The settings that costs depend on, with PostgreSQL's names and defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannerSettings {
    /// `seq_page_cost`
    pub seq_page_cost: f64,
    /// `random_page_cost`
    pub random_page_cost: f64,
    /// `cpu_tuple_cost`
    pub cpu_tuple_cost: f64,
    /// `cpu_index_tuple_cost`
    pub cpu_index_tuple_cost: f64,
    /// `cpu_operator_cost`
    pub cpu_operator_cost: f64,
    /// `effective_cache_size`, in blocks.
    pub effective_cache_size: f64,
    /// `enable_seqscan`
    pub enable_seqscan: bool,
    /// `enable_indexscan`
    pub enable_indexscan: bool,
    /// `enable_bitmapscan`
    pub enable_bitmapscan: bool,
    /// `enable_nestloop`
    pub enable_nestloop: bool,
    /// `enable_hashjoin`
    pub enable_hashjoin: bool,
    /// `enable_indexonlyscan`
    pub enable_indexonlyscan: bool,
    /// `measured_page_costs`
    pub measured_page_costs: bool,
}

impl Default for PlannerSettings {
    fn default() -> Self {
        Self {
            seq_page_cost: 1.0,
            random_page_cost: 4.0,
            cpu_tuple_cost: 0.01,
            cpu_index_tuple_cost: 0.005,
            cpu_operator_cost: 0.0025,
            effective_cache_size: 524_288.0,
            enable_seqscan: true,
            enable_indexscan: true,
            enable_bitmapscan: true,
            enable_nestloop: true,
            enable_hashjoin: true,
            enable_indexonlyscan: true,
            measured_page_costs: true,
        }
    }
}

/// What a path costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Cost {
    /// How many of its nodes are disabled by a setting (`disabled_nodes`). A path with fewer of them is
    /// always preferred.
    pub(crate) disabled: u32,
    /// Before the first row.
    pub(crate) startup: f64,
    /// All rows.
    pub(crate) total: f64,
}

impl Cost {
    /// The costs if only this fraction of the rows is wanted.
    pub(crate) fn of_fraction(self, fraction: f64) -> Self {
        let total = self.startup + (self.total - self.startup) * fraction.clamp(0.0, 1.0);
        Self { total, ..self }
    }

    /// Whether this is better than another cost.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        (self.disabled, self.total) < (other.disabled, other.total)
    }
}

/// A table whose scans are estimated.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableSize {
    /// Its blocks.
    pub(super) pages: f64,
    /// What each of them costs.
    pub(super) costs: PageCosts,
    /// Its rows.
    pub(super) rows: f64,
    /// The reads of its pages that can be in flight together, if there are that many.
    pub(super) reads: f64,
    /// The number of conditions that are evaluated for each row.
    pub(super) filters: f64,
    /// The fraction of its blocks that are all-visible (`allvisfrac`).
    pub(super) all_visible: f64,
}

/// What is known about a search of an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchSize {
    /// Blocks of the index.
    pub(super) pages: f64,
    /// What each of them costs.
    pub(super) costs: PageCosts,
    /// Entries of the index.
    pub(super) entries: f64,
    /// The levels above the leaves.
    pub(super) height: f64,
    /// The fraction of the rows that match.
    pub(super) selectivity: f64,
    /// The fraction of the entries between the first and the last one that a scan may have to look
    /// at, as the conditions on the leading columns say.
    pub(super) boundary: f64,
    /// The places where the scan starts anew.
    pub(super) descents: f64,
    /// The conditions on the index.
    pub(super) conditions: f64,
    /// How well the order of the table follows that of the index: -1 to 1.
    pub(super) correlation: f64,
}

/// The costs of a search, and what it finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchCost {
    /// Of the index's pages and entries.
    pub(super) cost: Cost,
    /// The rows.
    pub(super) rows: f64,
}

impl PlannerSettings {
    /// What pages cost according to the settings.
    pub(crate) fn page_costs(&self) -> PageCosts {
        PageCosts::new(self.seq_page_cost, self.random_page_cost)
    }

    /// Whether pages cost what was found out about them: not if a user says what they cost.
    pub(crate) fn uses_measured_costs(&self) -> bool {
        let usual = Self::default();
        self.measured_page_costs
            && self.seq_page_cost == usual.seq_page_cost
            && self.random_page_cost == usual.random_page_cost
    }
}

impl SearchSize {
    /// The first part of the same search.
    pub(super) fn first(self, fraction: f64) -> Self {
        let fraction = fraction.clamp(0.0, 1.0);
        let (selectivity, boundary) = (self.selectivity * fraction, self.boundary * fraction);
        Self { selectivity, boundary, descents: (self.descents * fraction).max(1.0), ..self }
    }
}

impl PlannerSettings {
    /// `cost_seqscan` up to the part of the rows that is wanted. The tasks share the CPU time. `window` is
    /// the part of the table that these rows are in.
    pub(super) fn sequential(
        &self,
        table: &TableSize,
        tasks: f64,
        (fraction, window): (f64, f64),
    ) -> Cost {
        // The window may begin anywhere.
        let fraction = match fraction.clamp(0.0, 1.0) {
            1.0 => 1.0,
            part => (1.0 - window) / 2.0 + part * window,
        };
        let row = self.cpu_tuple_cost + self.cpu_operator_cost * table.filters;
        let pages = table.costs.sequential(table.pages * fraction, table.reads);
        let total = pages + row * table.rows * fraction / shares(tasks);
        Cost { disabled: u32::from(!self.enable_seqscan), startup: 0.0, total }
    }

    /// `genericcostestimate` and `btcostestimate`: the pages and entries of the index.
    pub(super) fn search(&self, table: &TableSize, search: &SearchSize) -> SearchCost {
        let rows = (search.selectivity * table.rows).max(1.0);
        let looked_at = (search.boundary * search.entries).clamp(1.0, search.entries.max(1.0));
        let pages = match search.entries {
            entries if search.pages > 1.0 && entries > 1.0 => {
                (looked_at * search.pages / entries).ceil()
            }
            _ => 1.0,
        };
        let descents = search.descents.clamp(1.0, search.pages.max(1.0));
        let pages = pages.max(descents).min(search.pages.max(1.0));
        // The pages above the leaves are taken for cached; searching them is work for the CPU.
        let descent = search.entries.max(2.0).log2().ceil() * self.cpu_operator_cost
            + (search.height + 1.0) * 50.0 * self.cpu_operator_cost;
        let operators = search.conditions * self.cpu_operator_cost;
        let startup = descent;
        let total = startup
            + descent * (descents - 1.0)
            + pages * search.costs.random(pages, table.reads)
            + looked_at * (self.cpu_index_tuple_cost + operators);
        SearchCost { cost: Cost { disabled: 0, startup, total }, rows }
    }

    /// `cost_index`: the pages of the table in the order of the index, or of batches of its entries.
    pub(super) fn index_scan(
        &self,
        table: &TableSize,
        search: &SearchSize,
        found: &SearchCost,
    ) -> Cost {
        self.index_heap(table, search, found, 1.0)
    }

    /// `cost_index` of an index-only scan, which reads only those pages of the table that are not
    /// all-visible.
    pub(super) fn index_only_scan(
        &self,
        table: &TableSize,
        search: &SearchSize,
        found: &SearchCost,
    ) -> Cost {
        self.index_heap(table, search, found, 1.0 - table.all_visible)
    }

    /// The costs of a search and of `part` of the pages that it leads to.
    fn index_heap(
        &self,
        table: &TableSize,
        search: &SearchSize,
        found: &SearchCost,
        part: f64,
    ) -> Cost {
        let rows = found.rows;
        let (pages, page) = match table.costs.found() {
            Some(_) => self.pages_of_windows(table, search, rows, part),
            None => self.pages_by_correlation(table, search, rows, part),
        };
        let again = (rows * part - pages).max(0.0) * table.costs.again();
        let row = self.cpu_tuple_cost + self.cpu_operator_cost * table.filters;
        Cost {
            disabled: u32::from(!self.enable_indexscan),
            startup: found.cost.startup,
            total: found.cost.total + pages * page + again + rows * row,
        }
    }

    /// `cost_bitmap_heap_scan`: the pages of the table, each once, up to the part that is wanted. `made`
    /// are the costs of the bitmap, and `window` is the part of the table that its rows are in.
    pub(super) fn bitmap_scan(
        &self,
        table: &TableSize,
        made: Cost,
        (rows, window): (f64, f64),
        lossy: f64,
        fraction: f64,
    ) -> Cost {
        let fraction = fraction.clamp(0.0, 1.0);
        let window = (table.pages * window).ceil().max(1.0);
        let all = bitmap_pages(&TableSize { pages: window, ..*table }, rows).min(window);
        // All rows of a lossy page are looked at.
        let per_page = table.rows / table.pages.max(1.0);
        let looked_at = rows * (1.0 - lossy) + lossy * all * per_page;
        let row = self.cpu_tuple_cost + self.cpu_operator_cost * table.filters;
        let pages = (all * fraction).max(1.0);
        let page = table.costs.in_order(pages, (window * fraction).max(pages), table.reads);
        let startup = made.total + table.costs.bitmap(all, rows);
        Cost {
            disabled: made.disabled + u32::from(!self.enable_bitmapscan),
            startup,
            total: startup + pages * page + looked_at * fraction * row,
        }
    }

    /// The costs of a row in a bitmap: adding it, or combining it with another bitmap.
    pub(super) fn bitmap_row(&self) -> f64 {
        0.1 * self.cpu_operator_cost
    }

    /// `index_pages_fetched`: the formula of Mackert and Lohman for pages that are read again if they
    /// have left the cache meanwhile.
    pub(super) fn pages_fetched(&self, rows: f64, table: &TableSize, index_pages: f64) -> f64 {
        let pages = table.pages.max(1.0);
        let cache = (self.effective_cache_size * pages / (pages + index_pages.max(0.0))).max(1.0);
        let cache = cache.ceil();
        if pages <= cache {
            return (2.0 * pages * rows / (2.0 * pages + rows)).min(pages).ceil().max(1.0);
        }
        let limit = 2.0 * pages * cache / (2.0 * pages - cache);
        let fetched = match rows <= limit {
            true => 2.0 * pages * rows / (2.0 * pages + rows),
            false => cache + (rows - limit) * (pages - cache) / pages,
        };
        fetched.ceil().max(1.0)
    }
}

/// The parts that the CPU's work is divided into. As in `get_parallel_divisor`, the first task has less
/// time the more others there are.
pub(super) fn shares(tasks: f64) -> f64 {
    let others = (tasks - 1.0).max(0.0);
    (others + (1.0 - 0.3 * others).max(0.0)).max(1.0)
}

/// The number of pages that have one of the given number of rows, which are anywhere.
pub(super) fn bitmap_pages(table: &TableSize, rows: f64) -> f64 {
    let pages = table.pages.max(1.0);
    (2.0 * pages * rows / (2.0 * pages + rows)).ceil().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableSize {
        TableSize {
            pages: 1000.0,
            costs: PlannerSettings::default().page_costs(),
            rows: 100_000.0,
            reads: 16.0,
            filters: 1.0,
            all_visible: 0.0,
        }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    #[test]
    fn tasks_share_the_cpu_costs_of_a_sequential_scan() {
        let settings = PlannerSettings::default();
        // 1000 pages, and 100,000 rows at 0.01 + 0.0025.
        close(settings.sequential(&table(), 1.0, (1.0, 1.0)).total, 2250.0);
        // Three tasks count as 2.4: get_parallel_divisor.
        close(settings.sequential(&table(), 3.0, (1.0, 1.0)).total, 1000.0 + 1250.0 / 2.4);
        // A tenth of the table, and a tenth of a fifth, which begins after two fifths of it.
        close(settings.sequential(&table(), 1.0, (0.1, 1.0)).total, 225.0);
        close(settings.sequential(&table(), 1.0, (0.1, 0.2)).total, 0.42 * 2250.0);
        let off = PlannerSettings { enable_seqscan: false, ..settings };
        assert_eq!(off.sequential(&table(), 1.0, (1.0, 1.0)).disabled, 1);
    }

    #[test]
    fn pages_are_fetched_again_if_the_cache_is_too_small() {
        let settings = PlannerSettings::default();
        // 2 * 1000 * 500 / (2000 + 500)
        close(settings.pages_fetched(500.0, &table(), 10.0), 400.0);
        close(settings.pages_fetched(1e9, &table(), 10.0), 1000.0);
        let small = PlannerSettings { effective_cache_size: 101.0, ..settings };
        // The table has 100 of the 101 blocks: 101 * 1000 / 1010. The limit is 2 * 1000 * 100 / 1900.
        let limit = 200_000.0 / 1900.0;
        let expected: f64 = 100.0 + (1000.0 - limit) * 900.0 / 1000.0;
        close(small.pages_fetched(1000.0, &table(), 10.0), expected.ceil());
    }

    #[test]
    fn a_search_costs_its_pages_and_entries() {
        let settings = PlannerSettings::default();
        let search = SearchSize {
            pages: 300.0,
            costs: table().costs,
            entries: 100_000.0,
            height: 1.0,
            selectivity: 0.01,
            boundary: 0.01,
            descents: 1.0,
            conditions: 1.0,
            correlation: 0.0,
        };
        let found = settings.search(&table(), &search);
        close(found.rows, 1000.0);
        // 17 comparisons and 50 operators for each of 2 levels; 3 pages; 1000 entries at 0.0075.
        let descent = 17.0 * 0.0025 + 2.0 * 50.0 * 0.0025;
        close(found.cost.startup, descent);
        close(found.cost.total, descent + 3.0 * 2.0 + 7.5);
        // 667 pages in random order, 1000 rows.
        let random = 667.0 * 1.1875;
        let scan = settings.index_scan(&table(), &search, &found);
        close(scan.total, found.cost.total + random + 12.5);
        // With perfect correlation, 10 pages, of which only the first is random.
        let sorted = SearchSize { correlation: -1.0, ..search };
        let scan = settings.index_scan(&table(), &sorted, &found);
        close(scan.total, found.cost.total + (1.0 + 3.0 / 10.0) + 9.0 + 12.5);
        // Without looking at the table, only the entries and the rows cost something.
        let seen = TableSize { all_visible: 1.0, ..table() };
        let scan = settings.index_only_scan(&seen, &search, &found);
        close(scan.total, found.cost.total + 12.5);
        // A third of 667 pages, rounded up.
        let partly = TableSize { all_visible: 2.0 / 3.0, ..table() };
        let scan = settings.index_only_scan(&partly, &search, &found);
        close(scan.total, found.cost.total + 223.0 * 1.1875 + 12.5);
    }

    #[test]
    fn a_bitmap_scan_reads_each_page_once() {
        let settings = PlannerSettings::default();
        let made = Cost { total: 20.0, startup: 20.0, disabled: 0 };
        let random = 1.1875 - (1.1875 - 1.0) * 0.667_f64.sqrt();
        let scan = settings.bitmap_scan(&table(), made, (1000.0, 1.0), 0.0, 1.0);
        close(scan.startup, 20.0);
        close(scan.total, 20.0 + 667.0 * random + 12.5);
        // If a tenth of the pages are lossy, their 100 rows each are looked at.
        let lossy = settings.bitmap_scan(&table(), made, (1000.0, 1.0), 0.1, 1.0);
        close(lossy.total, 20.0 + 667.0 * random + (900.0 + 6670.0) * 0.0125);
    }

    #[test]
    fn disabled_paths_are_the_last_resort() {
        let cheap = Cost { disabled: 1, startup: 0.0, total: 1.0 };
        let dear = Cost { disabled: 0, startup: 0.0, total: 1e9 };
        assert!(dear.is_below(&cheap) && !cheap.is_below(&dear));
        let half = Cost { disabled: 0, startup: 10.0, total: 30.0 }.of_fraction(0.5);
        close(half.total, 20.0);
    }
}
