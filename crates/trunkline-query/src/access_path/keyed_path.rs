//! The path of a table that is searched for the keys of other rows, and what it costs for each of them
//! (`cost_index` with a `loop_count`).
//!
//! The same page of the index or of the table may be wanted for many of the keys, and is cached then, so
//! the pages of all searches are estimated together, by the formula of Mackert and Lohman. The searches
//! of several keys are in flight together, and random reads cost less accordingly (decision 0037).

use super::choice::{Choice, FilterParts};
use super::clause::Clause;
use super::cost::{Cost, PlannerSettings, SearchSize, TableSize};
use super::index_search::Searches;
use super::key_search::{KeyColumn, KeySearch};

/// A search of an index for the keys of other rows, with its estimates.
#[derive(Debug, Clone)]
pub(crate) struct KeyedPath {
    pub(crate) search: KeySearch,
    /// What a key costs, all keys together divided by their number.
    pub(crate) cost: Cost,
    /// The entries that a key leads to.
    pub(crate) entries: f64,
    /// The rows that match a key, and for which all filters are true.
    pub(crate) rows: f64,
    /// The filters that the conditions on the index cover, by their numbers.
    pub(crate) covered: Vec<usize>,
}

impl Choice<'_> {
    /// The cheapest search of an index for `loops` rows with these keys, of which the filters are true.
    /// `None` if no index can be searched for any of the keys.
    pub(crate) fn keyed_path(
        &self,
        filters: &[Clause],
        keys: &[KeyColumn],
        loops: f64,
    ) -> Option<KeyedPath> {
        let parts = FilterParts::of(filters);
        let columns = self.column_facts();
        let searches = self.searches(&columns, filters.len());
        let Searches { estimates, table, .. } = searches;
        let encoding = self.database.info().encoding;
        let mut rows = estimates.all(&parts.clauses) * self.rows;
        for key in keys {
            rows *= estimates.equal_to_any(key.column.place);
        }
        let mut best: Option<KeyedPath> = None;
        for (index, pages) in self.indexes.usable.iter().zip(self.index_pages) {
            let Some(pages) = *pages else { continue };
            let found = estimates.conditions.on(index, &parts.clauses);
            let search =
                KeySearch::new(index, found.conditions, keys, (self.environment, encoding));
            let Some(search) = search else { continue };
            let places: Vec<usize> = search.key_columns().map(|(at, _)| at).collect();
            let size = searches.search_size(index, pages, &search.conditions, &places);
            let cost = self.settings.keyed_scan(&table, &size, loops);
            if best.as_ref().is_none_or(|best| cost.is_below(&best.cost)) {
                let entries = (size.selectivity * table.rows).max(1.0);
                let covered = parts.covered(&found.covered);
                best = Some(KeyedPath { search, cost, entries, rows, covered });
            }
        }
        best
    }
}

impl PlannerSettings {
    /// `cost_index` and `btcostestimate` for one of `loops` searches that are executed one after the
    /// other.
    fn keyed_scan(&self, table: &TableSize, search: &SearchSize, loops: f64) -> Cost {
        let loops = loops.max(1.0);
        let rows = (search.selectivity * table.rows).max(1.0);
        let looked_at = (search.boundary * search.entries).clamp(1.0, search.entries.max(1.0));
        let descents = search.descents.clamp(1.0, search.pages.max(1.0));
        let leaves = match search.entries {
            entries if search.pages > 1.0 && entries > 1.0 => {
                (looked_at * search.pages / entries).ceil()
            }
            _ => 1.0,
        };
        let leaves = leaves.max(descents).min(search.pages.max(1.0));
        let index = TableSize { pages: search.pages, costs: search.costs, ..*table };
        let random =
            |of: &TableSize, wanted: f64| wanted * of.costs.random(wanted, table.reads) / loops;
        let leaves = match loops * leaves {
            all if all > 1.0 => self.pages_fetched(all, &index, table.pages),
            one => one,
        };
        // The pages above the leaves are taken for cached; searching them is work for the CPU.
        let descent = search.entries.max(2.0).log2().ceil() * self.cpu_operator_cost
            + (search.height + 1.0) * 50.0 * self.cpu_operator_cost;
        let operators = search.conditions * self.cpu_operator_cost;
        let entries = looked_at * (self.cpu_index_tuple_cost + operators);
        // In any order, and in the order of the table.
        let most = random(table, self.pages_fetched(rows * loops, table, search.pages));
        let fewest = (search.selectivity * table.pages).ceil().max(1.0);
        let fewest = random(table, self.pages_fetched(fewest * loops, table, search.pages));
        let correlated = search.correlation * search.correlation;
        let pages = most + correlated * (fewest.min(most) - most);
        let row = self.cpu_tuple_cost + self.cpu_operator_cost * table.filters;
        // Every key descends to a leaf, and every row is in a page.
        let pages = pages + (1.0 + rows) * table.costs.again();
        let total = descent * descents + random(&index, leaves) + entries + pages + rows * row;
        Cost { disabled: u32::from(!self.enable_indexscan), startup: descent, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_path::page_costs::PageCosts;

    fn table() -> TableSize {
        TableSize {
            pages: 1000.0,
            costs: costs(),
            rows: 100_000.0,
            reads: 1.0,
            filters: 0.0,
            all_visible: 0.0,
        }
    }

    fn costs() -> PageCosts {
        PlannerSettings::default().page_costs()
    }

    /// A look-up of one row through a unique index.
    fn look_up() -> SearchSize {
        SearchSize {
            pages: 300.0,
            costs: costs(),
            entries: 100_000.0,
            height: 1.0,
            selectivity: 0.000_01,
            boundary: 0.000_01,
            descents: 1.0,
            conditions: 1.0,
            correlation: 0.0,
        }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    /// 17 comparisons, 50 operators for each of two levels, an entry and a row.
    const CPU: f64 = 17.0 * 0.0025 + 2.0 * 50.0 * 0.0025 + 0.0075 + 0.01;

    #[test]
    fn one_key_costs_as_much_as_a_scan_for_it() {
        let settings = PlannerSettings::default();
        let found = settings.search(&table(), &look_up());
        let scan = settings.index_scan(&table(), &look_up(), &found);
        close(settings.keyed_scan(&table(), &look_up(), 1.0).total, scan.total);
        close(scan.total, CPU + 2.0 * 4.0);
    }

    #[test]
    fn pages_that_many_keys_want_are_read_once() {
        let settings = PlannerSettings::default();
        // Of the table, 2 * 1000 * 100000 / (2000 + 100000) pages; of the index, all 300.
        let (pages, leaves) = (1000.0, 300.0);
        let many = settings.keyed_scan(&table(), &look_up(), 100_000.0);
        close(many.total, CPU + 4.0 * (pages + leaves) / 100_000.0);
    }

    #[test]
    fn reads_of_several_keys_are_in_flight_together() {
        let settings = PlannerSettings::default();
        let table = TableSize { reads: 16.0, ..table() };
        let many = settings.keyed_scan(&table, &look_up(), 100_000.0);
        close(many.total, CPU + 1.1875 * 1300.0 / 100_000.0);
        let off = PlannerSettings { enable_indexscan: false, ..settings };
        assert_eq!(off.keyed_scan(&table, &look_up(), 1.0).disabled, 1);
    }
}
