//! What `ANALYZE` has found out about a table's columns.

use std::sync::Arc;

use trunkline_aio::facade::hash::Map;
use trunkline_engine::catalog::{ColumnInfo, Database, RelationInfo};
use trunkline_format::catalog::{
    ColumnStatisticsRow, STATISTICS_CORRELATION, STATISTICS_HISTOGRAM, STATISTICS_MCV,
    StatisticsSlot, array_floats,
};
use trunkline_sql::catalog::SqlCatalog;
use trunkline_sql::functions::ArrayView;

use super::column_order::ColumnOrder;

/// The strategy number of `<`.
const LESS: i16 = 1;

/// The statistics of a column, from a row of `pg_statistic`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ColumnStatistics {
    /// `stanullfrac`: the fraction of nulls.
    pub(super) nulls: f64,
    /// `stadistinct`: the number of distinct values; if negative, the number per row.
    pub(super) distinct: f64,
    /// The most common values, with the fraction of the rows that have them.
    pub(super) common: Vec<(Box<[u8]>, f64)>,
    /// Values that divide the others into parts of the same size, in ascending order.
    pub(super) histogram: Vec<Box<[u8]>>,
    /// How well the order of the rows follows that of the values: -1 to 1.
    pub(super) correlation: f64,
    /// How the values are sorted; `None` if only a server knows.
    pub(super) order: Option<ColumnOrder>,
}

impl ColumnStatistics {
    /// The number of distinct values in the given number of rows.
    pub(super) fn distinct_in(&self, rows: f64) -> f64 {
        let distinct = if self.distinct < 0.0 { -self.distinct * rows } else { self.distinct };
        distinct.max(1.0)
    }

    /// The fraction of the rows that have one of the most common values.
    pub(super) fn common_fraction(&self) -> f64 {
        self.common.iter().map(|(_, fraction)| fraction).sum()
    }
}

/// The statistics of the columns of a table, by their places. Columns that were never analyzed have
/// none.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableStatistics {
    pub(super) columns: Map<usize, Arc<ColumnStatistics>>,
}

impl TableStatistics {
    /// The statistics of these columns of a table, from its rows of `pg_statistic`. What can't be
    /// understood is left out, since it would only change estimates.
    pub(crate) fn of(
        database: &Database,
        catalog: &SqlCatalog,
        table: &RelationInfo,
        rows: &[ColumnStatisticsRow],
        wanted: &[usize],
    ) -> Self {
        let columns = database.columns(table).unwrap_or_default();
        let found = rows.iter().filter_map(|row| {
            let place = usize::try_from(row.column).ok()?.checked_sub(1)?;
            let column = columns.get(place).filter(|column| !column.dropped)?;
            if !wanted.contains(&place) {
                return None;
            }
            let order = ColumnOrder::of_type(database, column.type_oid, column.collation);
            Some((place, Arc::new(ColumnStatistics::of_row(catalog, row, column, order))))
        });
        Self { columns: found.collect() }
    }
}

impl ColumnStatistics {
    fn of_row(
        catalog: &SqlCatalog,
        row: &ColumnStatisticsRow,
        column: &ColumnInfo,
        order: Option<ColumnOrder>,
    ) -> Self {
        let mut statistics = Self {
            nulls: f64::from(row.null_fraction).clamp(0.0, 1.0),
            distinct: f64::from(row.distinct),
            order,
            ..Self::default()
        };
        let less = order.and_then(|order| {
            catalog.family_operator(order.family, order.input, order.input, LESS)
        });
        for slot in &row.slots {
            let numbers = slot.numbers.as_deref().and_then(array_floats).unwrap_or_default();
            match slot.kind {
                STATISTICS_MCV => {
                    let values = values(slot, column).unwrap_or_default();
                    let fractions = numbers.iter().map(|&fraction| f64::from(fraction));
                    statistics.common = values.into_iter().zip(fractions).collect();
                }
                STATISTICS_HISTOGRAM if less == Some(slot.operator) => {
                    statistics.histogram = values(slot, column).unwrap_or_default();
                }
                STATISTICS_CORRELATION if less == Some(slot.operator) => {
                    let found = numbers.first().copied().unwrap_or_default();
                    statistics.correlation = f64::from(found).clamp(-1.0, 1.0);
                }
                _ => {}
            }
        }
        statistics
    }
}

/// The values of a slot. `None` if they are damaged, or in another collation than the column.
fn values(slot: &StatisticsSlot, column: &ColumnInfo) -> Option<Vec<Box<[u8]>>> {
    if slot.collation != column.collation {
        return None;
    }
    let array = ArrayView::parse(slot.values.as_deref()?).ok()?;
    let elements = array.elements(column.attribute).ok()?;
    elements.iter().map(|element| element.as_deref().map(Box::from)).collect()
}
