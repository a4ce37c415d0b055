//! Tables, with the tables that inherit from them.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, Union};
use trunkline_engine::catalog::{Database, RelationInfo, TableFiles};
use trunkline_engine::storage::Relation as RelationFiles;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{
    BoundStatement, ColumnId, Relation, TableColumn, TableScan, with_stack,
};

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

/// The table whose rows a scan reads, if it is a single one.
pub(crate) fn only_table<'d>(database: &'d Database, scan: &TableScan) -> Option<&'d RelationInfo> {
    match scanned(database, database.relation(scan.table)?, scan.inherit)[..] {
        [table] if table.oid == scan.table => Some(table),
        _ => None,
    }
}

/// The files of all tables that a statement reads, and of the indexes that it may use. Those without
/// files are left out: they are reported when they are lowered. A statement without conditions and sorts uses at
/// most one index, so that `SELECT count(*)` doesn't ask for the sizes of all indexes of a thousand partitions.
pub(crate) fn scanned_files(
    statement: &BoundStatement,
    database: &Database,
) -> Vec<(Oid, RelationFiles)> {
    let mut files = Vec::new();
    let subqueries = &statement.subqueries;
    let queries = subqueries.ids().into_iter().map(|id| subqueries.get(id));
    let queries: Vec<_> = queries.chain([&statement.query]).collect();
    let may_search = queries.iter().any(|query| may_use_index(&query.relation));
    let outputs = queries.iter().flat_map(|query| &query.output);
    let mut used: BTreeSet<ColumnId> = outputs.map(|column| column.id).collect();
    statement.query.relation.used(subqueries, &mut |id| {
        used.insert(id);
    });
    let wanted = WantedFiles { database, may_search, used };
    for query in queries {
        wanted.add(&query.relation, &mut files);
    }
    files
}

/// Which files of tables a statement may read.
struct WantedFiles<'a> {
    database: &'a Database,
    /// Whether the statement may search any index, or read it for its order.
    may_search: bool,
    /// The columns that the statement uses, whichever tables they are from.
    used: BTreeSet<ColumnId>,
}

/// Whether rows are filtered, joined or sorted anywhere below.
fn may_use_index(relation: &Relation) -> bool {
    use Relation::{Filter, Join, Sort};
    let mut found = matches!(relation, Filter { .. } | Join { .. } | Sort { .. });
    with_stack(|| relation.inputs(|input| found = found || may_use_index(input)));
    found
}

impl WantedFiles<'_> {
    fn add(&self, relation: &Relation, files: &mut Vec<(Oid, RelationFiles)>) {
        let database = self.database;
        if let Relation::Table(scan) = relation
            && let Some(parent) = database.relation(scan.table)
        {
            let used = scan.columns.iter().filter(|column| self.used.contains(&column.id));
            let used: Vec<TableColumn> = used.copied().collect();
            for table in scanned(database, parent, scan.inherit) {
                let Ok(TableFiles { rows, .. }) = table_files(database, table) else { continue };
                if let Some(needed) = stored_places(database, parent, table, &used) {
                    let map = (&rows, visibility_map as fn(&_) -> _);
                    let conditions = self.may_search;
                    files.extend(index_only_files(database, table, map, &needed, conditions));
                }
                files.push((table.oid, rows));
                if self.may_search {
                    files.extend(index_files(database, table));
                }
            }
        }
        with_stack(|| relation.inputs(|input| self.add(input, files)));
    }
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
            // The rows of several tables are never in the order of an index.
            is_sorted: !is_child && self.sorted.contains(scan),
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
