//! **What a sort costs**, as in `cost_tuplesort` and `cost_gather_merge`.
//!
//! ```text
//!   tasks sort their rows      comparisons: n log n, or n log 2k if only k rows are wanted
//!   and merge them             comparisons: n log tasks, if there are several
//! ```

use arrow_schema::{DataType, Schema};
use trunkline_format::BLOCK_SIZE;

use super::cost::{Cost, PlannerSettings, shares};

/// The bytes of a row's header in the memory of a sort.
const ROW_HEADER: f64 = 24.0;

/// The memory of a merge for each run, and the fewest and most runs that are merged at a time
/// (`tuplesort_merge_order`).
const RUN_BYTES: f64 = 272.0 * 1024.0;
const RUNS: (f64, f64) = (6.0, 500.0);

/// The estimated bytes of a row. A value of variable length counts 32, as PostgreSQL estimates without
/// statistics.
pub(crate) fn row_width(schema: &Schema) -> u64 {
    let widths = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(width) => (*width).max(0) as u64,
        ty => ty.primitive_width().map_or(32, |width| width as u64),
    });
    widths.sum()
}

/// A sort that is estimated.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortSize {
    /// The rows.
    pub(super) rows: f64,
    /// The bytes of a row.
    pub(super) width: f64,
    /// The rows that are wanted, if not all are.
    pub(super) fetch: Option<usize>,
    /// The tasks that share the work.
    pub(super) tasks: f64,
    /// `work_mem`, in bytes.
    pub(super) work_mem: f64,
}

impl PlannerSettings {
    /// The costs of an input and of sorting its rows, up to the last one that is wanted.
    pub(super) fn sorted(&self, input: Cost, sort: &SortSize) -> Cost {
        let rows = sort.rows / shares(sort.tasks);
        let (mut startup, mut run) = self.tuplesort(rows, sort);
        if sort.tasks > 1.0 {
            let comparison = 2.0 * self.cpu_operator_cost;
            startup += comparison * sort.tasks * sort.tasks.log2();
            run += sort.rows * (comparison * sort.tasks.log2() + self.cpu_operator_cost);
        }
        let startup = input.total + startup;
        let fraction = sort.fetch.map_or(1.0, |fetch| fetch as f64 / sort.rows.max(1.0));
        Cost { startup, total: startup + run, disabled: input.disabled }.of_fraction(fraction)
    }

    /// The costs of sorting this many rows before the first one is returned, and after that.
    fn tuplesort(&self, rows: f64, sort: &SortSize) -> (f64, f64) {
        let rows = rows.max(2.0);
        let comparison = 2.0 * self.cpu_operator_cost;
        let bytes = rows * ((sort.width / 8.0).ceil() * 8.0 + ROW_HEADER);
        let kept = sort.fetch.map_or(rows, |fetch| (fetch as f64).clamp(1.0, rows));
        let memory = sort.work_mem.max(1.0);
        let startup = if bytes * kept / rows > memory {
            let runs = (bytes / memory).max(1.0);
            let order = (memory / RUN_BYTES).clamp(RUNS.0, RUNS.1);
            let passes = if runs > order { runs.log(order).ceil() } else { 1.0 };
            let accesses = 2.0 * (bytes / BLOCK_SIZE as f64).ceil() * passes;
            let access = self.seq_page_cost * 0.75 + self.random_page_cost * 0.25;
            comparison * rows * rows.log2() + accesses * access
        } else if rows > 2.0 * kept || bytes > memory {
            // A heap of the first rows.
            comparison * rows * (2.0 * kept).log2()
        } else {
            comparison * rows * rows.log2()
        };
        (startup, self.cpu_operator_cost * rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    const INPUT: Cost = Cost { disabled: 1, startup: 5.0, total: 100.0 };
    const SORT: SortSize =
        SortSize { rows: 1024.0, width: 20.0, fetch: None, tasks: 1.0, work_mem: 1_048_576.0 };

    #[test]
    fn a_sort_compares_each_row_with_some_others() {
        let settings = PlannerSettings::default();
        let whole = settings.sorted(INPUT, &SORT);
        // 1024 rows, 10 comparisons of two operators each.
        close(whole.startup, 100.0 + 1024.0 * 10.0 * 0.005);
        close(whole.total, whole.startup + 1024.0 * 0.0025);
        assert_eq!(whole.disabled, 1);
        // With a limit, rows are compared with those that are kept: 8 of them, so 4 comparisons.
        let few = settings.sorted(INPUT, &SortSize { fetch: Some(8), ..SORT });
        close(few.startup, 100.0 + 1024.0 * 4.0 * 0.005);
        close(few.total, few.startup + 8.0 * 0.0025);
        let most = settings.sorted(INPUT, &SortSize { fetch: Some(600), ..SORT });
        close(most.startup, whole.startup);
    }

    #[test]
    fn a_sort_without_memory_writes_runs() {
        let settings = PlannerSettings::default();
        // 48 bytes a row, so 6 pages are written and read.
        let spilled = settings.sorted(INPUT, &SortSize { work_mem: 8192.0, ..SORT });
        close(spilled.startup, 100.0 + 1024.0 * 10.0 * 0.005 + 12.0 * 1.75);
        // Only the rows that are kept need memory.
        let few = settings.sorted(INPUT, &SortSize { work_mem: 8192.0, fetch: Some(8), ..SORT });
        close(few.startup, 100.0 + 1024.0 * 4.0 * 0.005);
    }

    #[test]
    fn tasks_share_a_sort_and_merge_their_rows() {
        let settings = PlannerSettings::default();
        let sort = SortSize { tasks: 2.0, ..SORT };
        // Two tasks count as 1.7.
        let rows: f64 = 1024.0 / 1.7;
        let merged = settings.sorted(INPUT, &sort);
        close(merged.startup, 100.0 + rows * rows.log2() * 0.005 + 2.0 * 0.005);
        close(merged.total, merged.startup + rows * 0.0025 + 1024.0 * (0.005 + 0.0025));
    }
}
