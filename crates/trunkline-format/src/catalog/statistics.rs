//! `pg_statistic`: what `ANALYZE` has found out about the columns of tables.
//!
//! A row has five slots, each with a kind, numbers and values. Which slot has which kind differs from
//! row to row: the most common values are mostly in the first one, and the histogram in the second.

use super::describe::describe_catalog;
use super::tuple::{CatalogTuple, RowError};
use crate::ids::Oid;

describe_catalog! {
    /// Statistics of columns (`catalog/pg_statistic.h`).
    PG_STATISTIC = "pg_statistic", 2619;
    index "pg_statistic_relid_att_inh_index", 2696;
    columns {
        starelid: Oid,
        staattnum: Int2,
        stainherit: Bool,
        stanullfrac: Float4,
        stawidth: Int4,
        stadistinct: Float4,
        stakind1: Int2,
        stakind2: Int2,
        stakind3: Int2,
        stakind4: Int2,
        stakind5: Int2,
        staop1: Oid,
        staop2: Oid,
        staop3: Oid,
        staop4: Oid,
        staop5: Oid,
        stacoll1: Oid,
        stacoll2: Oid,
        stacoll3: Oid,
        stacoll4: Oid,
        stacoll5: Oid,
        stanumbers1: Float4Array,
        stanumbers2: Float4Array,
        stanumbers3: Float4Array,
        stanumbers4: Float4Array,
        stanumbers5: Float4Array,
        stavalues1: AnyArray,
        stavalues2: AnyArray,
        stavalues3: AnyArray,
        stavalues4: AnyArray,
        stavalues5: AnyArray,
    }
    /// A row of `pg_statistic`.
    row ColumnStatisticsRow {
        /// The OID of the table or index.
        table: Oid = starelid,
        /// The number of the column.
        column: i16 = staattnum,
        /// Whether the statistics include the tables that inherit from it.
        inherited: bool = stainherit,
        /// The fraction of rows in which the column is null.
        null_fraction: f32 = stanullfrac,
        /// The mean size of values that aren't null, in bytes.
        width: i32 = stawidth,
        /// The number of distinct values that aren't null. If negative, the number per row, negated; 0
        /// if unknown.
        distinct: f32 = stadistinct,
        /// The slots that are used.
        slots: Vec<StatisticsSlot>,
    }
    finish read_slots
}

/// `STATISTIC_KIND_MCV`: the most common values, with the fraction of the rows that have each.
pub const STATISTICS_MCV: i16 = 1;
/// `STATISTIC_KIND_HISTOGRAM`: values that divide the others into parts of the same size.
pub const STATISTICS_HISTOGRAM: i16 = 2;
/// `STATISTIC_KIND_CORRELATION`: how well the order of the rows follows that of the values.
pub const STATISTICS_CORRELATION: i16 = 3;

/// A slot of a row.
#[derive(Clone, PartialEq, Debug)]
pub struct StatisticsSlot {
    /// What it contains. The kinds below 100 are PostgreSQL's own.
    pub kind: i16,
    /// The operator that it is about: `=` for most common values, `<` for the other two kinds above.
    pub operator: Oid,
    /// The collation of the values; 0 if they have none.
    pub collation: Oid,
    /// Numbers, as a stored `float4[]`.
    pub numbers: Option<Box<[u8]>>,
    /// Values, as a stored array of the column's type.
    pub values: Option<Box<[u8]>>,
}

/// The columns of the slots.
const SLOTS: [[&str; 5]; 5] = [
    ["stakind1", "staop1", "stacoll1", "stanumbers1", "stavalues1"],
    ["stakind2", "staop2", "stacoll2", "stanumbers2", "stavalues2"],
    ["stakind3", "staop3", "stacoll3", "stanumbers3", "stavalues3"],
    ["stakind4", "staop4", "stacoll4", "stanumbers4", "stavalues4"],
    ["stakind5", "staop5", "stacoll5", "stanumbers5", "stavalues5"],
];

impl ColumnStatisticsRow {
    /// Reads the slots. A kind of 0 means that a slot isn't used.
    fn read_slots(mut self, tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        for [kind, operator, collation, numbers, values] in SLOTS {
            let kind: i16 = tuple.get(kind)?;
            if kind != 0 {
                self.slots.push(StatisticsSlot {
                    kind,
                    operator: tuple.get(operator)?,
                    collation: tuple.get(collation)?,
                    numbers: tuple.get(numbers)?,
                    values: tuple.get(values)?,
                });
            }
        }
        Ok(self)
    }
}
