//! Tables, with the tables that inherit from them.

use std::sync::Arc;

use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, Union};
use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_engine::storage::Relation as RelationFiles;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BoundStatement, Relation, TableScan, with_stack};

use super::planner::{Lowering, TableSource, field, planned};
use crate::access_path::{index_files, index_only_files};
use crate::expression::column_name;
use crate::scan::{
    PathSource, ScanColumns, ScanTable, TableAccess, stored_places, table_files, visibility_map,
};

/// The tables whose rows are those of `parent`: itself, or tables that inherit from it.
fn scanned<'d>(
    database: &'d Database,
    parent: &'d RelationInfo,
    inherit: bool,
) -> Vec<&'d RelationInfo> {
    match (inherit, parent.is_partitioned()) {
        (true, true) => database.leaves(parent),
        // ONLY of a partitioned table has no rows.
        (false, true) => Vec::new(),
        (true, false) => database.inheritors(parent),
        (false, false) => vec![parent],
    }
}

/// The files of all tables that a statement reads, and of the indexes that it may use. Those without
/// files are left out: they are reported when they are lowered. A statement without conditions uses at most
/// one index, so that `SELECT count(*)` doesn't ask for the sizes of all indexes of a thousand partitions.
pub(crate) fn scanned_files(
    statement: &BoundStatement,
    database: &Database,
) -> Vec<(Oid, RelationFiles)> {
    let mut files = Vec::new();
    let subqueries = &statement.subqueries;
    let queries = subqueries.ids().into_iter().map(|id| subqueries.get(id));
    let queries: Vec<_> = queries.chain([&statement.query]).collect();
    let indexes = queries.iter().any(|query| has_condition(&query.relation));
    for query in queries {
        add_files(&query.relation, database, indexes, &mut files);
    }
    files
}

/// Whether rows are filtered or joined anywhere below.
fn has_condition(relation: &Relation) -> bool {
    let mut found = matches!(relation, Relation::Filter { .. } | Relation::Join { .. });
    with_stack(|| relation.inputs(|input| found = found || has_condition(input)));
    found
}

fn add_files(
    relation: &Relation,
    database: &Database,
    indexes: bool,
    files: &mut Vec<(Oid, RelationFiles)>,
) {
    if let Relation::Table(scan) = relation
        && let Some(parent) = database.relation(scan.table)
    {
        for table in scanned(database, parent, scan.inherit) {
            files.extend(table_files(database, table).ok().map(|found| (table.oid, found.rows)));
            if indexes {
                files.extend(index_files(database, table));
            }
            let needed = stored_places(database, parent, table, &scan.columns);
            if let (Some(needed), Ok(found)) = (needed, table_files(database, table)) {
                let map = (&found.rows, visibility_map);
                files.extend(index_only_files(database, table, map, &needed, indexes));
            }
        }
    }
    with_stack(|| relation.inputs(|input| add_files(input, database, indexes, files)));
}

impl Lowering<'_> {
    pub(super) fn table(&mut self, scan: &TableScan) -> Result<LogicalPlan, SqlError> {
        let database = Arc::clone(&self.tables.database);
        let parent = database.relation(scan.table).ok_or_else(|| {
            SqlError::internal(format!("could not open relation with OID {}", scan.table))
        })?;
        let tables = scanned(&database, parent, scan.inherit);
        let mut plans = Vec::with_capacity(tables.len());
        let single = tables.len() == 1;
        for (table, number) in tables.into_iter().zip(1..) {
            let alias = match single {
                true => scan.alias.to_string(),
                false => format!("{}_{number}", scan.alias),
            };
            plans.push(Arc::new(self.one_table(scan, parent, table, (alias, !single))?));
        }
        match plans.len() {
            0 => self.empty(scan),
            1 => Ok(plans.pop().map(Arc::unwrap_or_clone).unwrap_or_default()),
            _ => planned(Union::try_new(plans)).map(LogicalPlan::Union),
        }
    }

    fn one_table(
        &mut self,
        scan: &TableScan,
        parent: &RelationInfo,
        table: &RelationInfo,
        (alias, is_child): (String, bool),
    ) -> Result<LogicalPlan, SqlError> {
        let TableSource { database, reads, .. } = self.tables;
        let columns = &scan.columns;
        let columns = ScanColumns::new(self.environment, database, parent, table, columns)?;
        let access = TableAccess::new(database, table, reads)?.with_alias(alias, is_child);
        let names: Vec<String> = scan.columns.iter().map(|column| column_name(column.id)).collect();
        let source = PathSource {
            environment: self.environment.clone(),
            database: Arc::clone(database),
            table: table.oid,
        };
        let scanned = ScanTable::new(access, columns, &names, source);
        let provider = provider_as_source(Arc::new(scanned));
        let builder = LogicalPlanBuilder::scan(self.new_name("t"), provider, None);
        // Without its qualifier, a field can be combined with those of other children.
        let fields = names.iter().map(|name| field(name).alias(name));
        let fields: Vec<_> = fields.collect();
        planned(builder.and_then(|scan| match fields.is_empty() {
            true => scan.build(),
            false => scan.project(fields)?.build(),
        }))
    }

    /// No rows.
    fn empty(&mut self, scan: &TableScan) -> Result<LogicalPlan, SqlError> {
        let columns: Vec<_> = scan.columns.iter().map(|column| column.id).collect();
        self.values(&columns, &[])
    }
}
