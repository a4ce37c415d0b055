//! Which pages of a table the rows of an index search are in.
//!
//! PostgreSQL estimates them by the square of the correlation: between those of rows in order and those
//! of rows anywhere. Of a table whose order follows that of the index with some noise, it expects far too
//! few. For large relations (decision 0041), we look for the rows of a range in a part of the table that is as
//! long as the range and the noise together:
//!
//! ```text
//!   values of the index   ├──────────[ range ]──────────────┤
//!   table                 ├───────[ · ·· ·· · · ]───────────┤    a window
//! ```
//! For noise that is evenly spread over the part `w` of the table, the correlation is `1 / sqrt(1 + w²)`,
//! which gives `w`.

use super::cost::{PlannerSettings, SearchSize, TableSize, bitmap_pages};

/// An unordered index scan sorts batches of rows by their blocks. Each of them may be half as large as all
/// before it together, so most rows are in batches of about this part of the rows, and none is larger
/// than this (the engine's `index_scan/entry_source.rs`).
const BATCHES: f64 = 8.0;
const BATCH_ROWS: f64 = 65_536.0;

impl SearchSize {
    /// The part of the table that this part of its rows is in, by the formula above.
    pub(super) fn window(&self, selectivity: f64) -> f64 {
        let correlation = self.correlation.abs().clamp(1e-6, 1.0);
        let noise = (1.0 / (correlation * correlation) - 1.0).sqrt();
        (selectivity + noise).min(1.0)
    }
}

impl PlannerSettings {
    /// The pages that rows are in, and what each of them costs, as in `cost_index`: between those of rows in
    /// order and those of rows anywhere.
    pub(super) fn pages_by_correlation(
        &self,
        table: &TableSize,
        search: &SearchSize,
        rows: f64,
        part: f64,
    ) -> (f64, f64) {
        let most = (self.pages_fetched(rows, table, search.pages) * part).ceil();
        let fewest = ((search.selectivity * table.pages).ceil().max(1.0) * part).ceil();
        let random = most * table.costs.random(most, table.reads);
        let in_order = match fewest {
            fewest if fewest >= 1.0 => {
                let rest = table.costs.sequential(fewest - 1.0, table.reads);
                table.costs.random(fewest, table.reads) + rest
            }
            _ => 0.0,
        };
        let correlated = search.correlation * search.correlation;
        let pages = random + correlated * (in_order.min(random) - random);
        (most, pages / most.max(1.0))
    }

    /// The same for pages in a window of the table. The rows of a batch are read in the order of the table.
    pub(super) fn pages_of_windows(
        &self,
        table: &TableSize,
        search: &SearchSize,
        rows: f64,
        part: f64,
    ) -> (f64, f64) {
        let window = (search.window(search.selectivity) * table.pages).ceil().max(1.0);
        let within = TableSize { pages: window, ..*table };
        let pages = (self.pages_fetched(rows, &within, search.pages) * part).ceil();
        let batch = (rows / BATCHES).clamp(1.0, BATCH_ROWS);
        let batch_window = search.window(search.selectivity * batch / rows) * table.pages;
        let batch_window = batch_window.ceil().max(1.0);
        let batch_pages = bitmap_pages(&TableSize { pages: batch_window, ..*table }, batch);
        let density = (batch_pages / batch_window).min(1.0);
        (pages, table.costs.in_order(pages, pages / density, table.reads))
    }
}

#[cfg(test)]
mod tests {
    use trunkline_engine::pool::ResidencyEstimate;

    use super::*;
    use crate::access_path::FoundPages;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    #[test]
    fn rows_of_a_correlated_column_are_in_a_window() {
        let residency = ResidencyEstimate { pool: 1.0, cache: 0.0 };
        let costs = PlannerSettings::default()
            .page_costs()
            .with(Some(FoundPages { residency, times: None }));
        let table = TableSize {
            pages: 1000.0,
            costs,
            rows: 100_000.0,
            reads: 16.0,
            filters: 1.0,
            all_visible: 0.0,
        };
        let search = |correlation: f64| SearchSize {
            pages: 300.0,
            costs,
            entries: 100_000.0,
            height: 1.0,
            selectivity: 0.01,
            boundary: 0.01,
            descents: 1.0,
            conditions: 1.0,
            correlation,
        };
        // Noise of a tenth of the table.
        let noisy = 1.0 / 1.01_f64.sqrt();
        for (correlation, window) in [(1.0, 0.01), (-1.0, 0.01), (noisy, 0.11), (0.0, 1.0)] {
            close(search(correlation).window(0.01), window);
        }
        let settings = PlannerSettings::default();
        let pages =
            |correlation| settings.pages_of_windows(&table, &search(correlation), 1000.0, 1.0).0;
        // 2 * 110 * 1000 / (220 + 1000) of 110 pages.
        assert_eq!([pages(1.0), pages(0.0)], [10.0, 667.0]);
        assert!((110.0..=111.0).contains(&pages(noisy)));
        // The page of a row in order costs less than that of any row.
        let page =
            |correlation| settings.pages_of_windows(&table, &search(correlation), 1000.0, 1.0).1;
        close(page(1.0), 0.06);
        assert!(page(noisy) > page(1.0) && page(0.0) > page(noisy) && page(0.0) < 0.26);
    }
}
