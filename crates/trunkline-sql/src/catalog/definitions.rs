//! Definitions and descriptions of objects, by OID: constraints, comments, roles.
//!
//! The catalogs are those of [`DefinitionCatalogs`]. If they couldn't be loaded, only statements that
//! need them fail.

use std::fmt;

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::hash::Map;
use trunkline_engine::catalog::{DefinitionCatalogs, ExpressionCatalogs};
use trunkline_format::Oid;
use trunkline_format::catalog::{
    ColumnDefaultRow, ConstraintRow, IndexExpressionsRow, PartitionedTableRow, RoleRow,
    StatisticsRow,
};

use crate::error::{SqlError, SqlState};

/// The definitions of a database, indexed.
pub struct Definitions {
    expressions: Arc<ExpressionCatalogs>,
    /// Places in the catalogs.
    roles: Map<Oid, usize>,
    constraints: Map<Oid, usize>,
    index_expressions: Map<Oid, usize>,
    partitioned_tables: Map<Oid, usize>,
    partition_bounds: Map<Oid, usize>,
    statistics: Map<Oid, usize>,
    column_defaults: Map<(Oid, i16), usize>,
    /// By object, catalog and part.
    descriptions: Map<(Oid, Oid, i32), usize>,
    shared_descriptions: Map<(Oid, Oid), usize>,
}

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definitions").finish_non_exhaustive()
    }
}

impl Definitions {
    pub(super) fn new(expressions: &Arc<ExpressionCatalogs>) -> Self {
        let mut made = Self {
            expressions: Arc::clone(expressions),
            roles: Map::default(),
            constraints: Map::default(),
            index_expressions: Map::default(),
            partitioned_tables: Map::default(),
            partition_bounds: Map::default(),
            statistics: Map::default(),
            column_defaults: Map::default(),
            descriptions: Map::default(),
            shared_descriptions: Map::default(),
        };
        let Ok(rows) = expressions.definitions() else { return made };
        made.roles = places(&rows.roles, |row| row.oid);
        made.constraints = places(&rows.constraints, |row| row.oid);
        made.index_expressions = places(&rows.index_expressions, |row| row.index);
        made.partitioned_tables = places(&rows.partitioned_tables, |row| row.relation);
        made.partition_bounds = places(&rows.partition_bounds, |row| row.relation);
        made.statistics = places(&rows.statistics, |row| row.oid);
        made.column_defaults = places(&rows.column_defaults, |row| (row.relation, row.number));
        made.descriptions = places(&rows.descriptions, |row| (row.object, row.class, row.part));
        made.shared_descriptions = places(&rows.shared_descriptions, |row| (row.object, row.class));
        made
    }

    /// The catalogs.
    ///
    /// # Errors
    /// XX001: they couldn't be loaded.
    pub fn catalogs(&self) -> Result<&DefinitionCatalogs, SqlError> {
        let loaded = self.expressions.definitions();
        loaded.map_err(|why| SqlError::new(SqlState::DATA_CORRUPTED, why))
    }

    /// The role with this OID.
    ///
    /// # Errors
    /// As for [`Definitions::catalogs`], here and below.
    pub fn role(&self, oid: Oid) -> Result<Option<&RoleRow>, SqlError> {
        Ok(find(&self.catalogs()?.roles, self.roles.get(&oid)))
    }

    /// The role with this name, in the encoding of the database.
    pub fn role_named(&self, name: &[u8]) -> Result<Option<&RoleRow>, SqlError> {
        Ok(self.catalogs()?.roles.iter().find(|row| *row.name == *name))
    }

    /// The constraint with this OID.
    pub fn constraint(&self, oid: Oid) -> Result<Option<&ConstraintRow>, SqlError> {
        Ok(find(&self.catalogs()?.constraints, self.constraints.get(&oid)))
    }

    /// The expressions of an index; `None` if it has none.
    pub fn index_expressions(&self, index: Oid) -> Result<Option<&IndexExpressionsRow>, SqlError> {
        Ok(find(&self.catalogs()?.index_expressions, self.index_expressions.get(&index)))
    }

    /// How a table is partitioned.
    pub fn partitioned_table(&self, table: Oid) -> Result<Option<&PartitionedTableRow>, SqlError> {
        Ok(find(&self.catalogs()?.partitioned_tables, self.partitioned_tables.get(&table)))
    }

    /// The bound of a partition, as the text of a node tree.
    pub fn partition_bound(&self, partition: Oid) -> Result<Option<&[u8]>, SqlError> {
        let rows = &self.catalogs()?.partition_bounds;
        let row = find(rows, self.partition_bounds.get(&partition));
        Ok(row.and_then(|row| row.bound.as_deref()))
    }

    /// Whether a relation has storage parameters (`WITH (…)`).
    pub fn has_options(&self, relation: Oid) -> Result<bool, SqlError> {
        let rows = &self.catalogs()?.partition_bounds;
        let row = find(rows, self.partition_bounds.get(&relation));
        Ok(row.is_some_and(|row| row.options.is_some()))
    }

    /// The extended statistics with this OID.
    pub fn statistics(&self, oid: Oid) -> Result<Option<&StatisticsRow>, SqlError> {
        Ok(find(&self.catalogs()?.statistics, self.statistics.get(&oid)))
    }

    /// The default or generation expression of a column.
    pub fn column_default(
        &self,
        table: Oid,
        number: i16,
    ) -> Result<Option<&ColumnDefaultRow>, SqlError> {
        let rows = &self.catalogs()?.column_defaults;
        Ok(find(rows, self.column_defaults.get(&(table, number))))
    }

    /// The comment on an object of a catalog, or on a part of it.
    pub fn description(
        &self,
        object: Oid,
        class: Oid,
        part: i32,
    ) -> Result<Option<&[u8]>, SqlError> {
        let rows = &self.catalogs()?.descriptions;
        let row = find(rows, self.descriptions.get(&(object, class, part)));
        Ok(row.and_then(|row| row.text.as_deref()))
    }

    /// The comment on an object that all databases share.
    pub fn shared_description(&self, object: Oid, class: Oid) -> Result<Option<&[u8]>, SqlError> {
        let rows = &self.catalogs()?.shared_descriptions;
        let row = find(rows, self.shared_descriptions.get(&(object, class)));
        Ok(row.and_then(|row| row.text.as_deref()))
    }
}

fn places<R, K: std::hash::Hash + Eq>(rows: &[R], key: impl Fn(&R) -> K) -> Map<K, usize> {
    rows.iter().enumerate().map(|(at, row)| (key(row), at)).collect()
}

fn find<'r, R>(rows: &'r [R], at: Option<&usize>) -> Option<&'r R> {
    rows.get(*at?)
}
