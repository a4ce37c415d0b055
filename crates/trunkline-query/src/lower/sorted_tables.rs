//! The tables whose rows a sort takes as they are, so that the order of an index may be worth something.
//!
//! ```text
//!   SELECT … FROM t WHERE a > 5 ORDER BY b        Sort (Project (Filter (Table t)))
//! ```
//! The scan is planned before the sort. If its table is one of these, it prepares paths in the order of each
//! index, which other scans don't need.

use trunkline_sql::bound::{ColumnId, Relation, TableScan};

/// Tables below sorts, by the first of their columns.
#[derive(Debug, Default)]
pub(super) struct SortedTables(Vec<ColumnId>);

impl SortedTables {
    /// Adds the table that the input of a sort reads, if it reads only that.
    pub(super) fn add(&mut self, input: &Relation) {
        let mut below = input;
        loop {
            below = match below {
                Relation::Project { input, .. } | Relation::Filter { input, .. } => input,
                Relation::Table(scan) => {
                    self.0.extend(scan.columns.first().map(|column| column.id));
                    return;
                }
                _ => return,
            };
        }
    }

    /// Whether the rows of a table are sorted.
    pub(super) fn contains(&self, scan: &TableScan) -> bool {
        scan.columns.first().is_some_and(|column| self.0.contains(&column.id))
    }
}
