//! How the scans of a table read it: its files, its size, and the sessions of the statement.

use std::fmt;
use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use trunkline_engine::Engine;
use trunkline_engine::btree::ScanSizes;
use trunkline_engine::catalog::{Database, RelationInfo, TableFiles};
use trunkline_engine::heap::{RowFilter, ScanOptions};
use trunkline_engine::index_scan::{IndexScanOptions, IndexedTable};
use trunkline_engine::pool::{Backend, Strategy};
use trunkline_engine::read_stream::{StatementStreams, StreamOptions};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::Relation;
use trunkline_engine::transactions::Transactions;
use trunkline_format::catalog::RelationKind;
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid};
use trunkline_sql::{SqlError, SqlState};

use super::cancellation::Cancellation;
use super::columns::catalog_error;
use super::found_pages::FoundRelations;
use super::table_sizes::TableSizes;
use crate::access_path::{IndexSearch, PlannerSettings, RelationPages};

/// The number of blocks below which a table is scanned by one worker (`min_parallel_table_scan_size`,
/// 8 MiB).
const PARALLEL_BLOCKS_MIN: u32 = 1024;

/// The name of a table in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableName {
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) alias: String,
    /// It is one of several tables that are read as one.
    pub(crate) is_child: bool,
}

/// How a statement reads tables.
#[derive(Debug, Clone)]
pub(crate) struct StatementReads {
    pub(crate) engine: Engine,
    pub(crate) io: Arc<Settings>,
    pub(crate) streams: StatementStreams,
    pub(crate) cancellation: Cancellation,
    /// The sizes of all tables of the statement, and of their indexes.
    pub(crate) sizes: Arc<TableSizes>,
    /// Where their pages are.
    pub(crate) found: Arc<FoundRelations>,
    /// What costs depend on.
    pub(crate) planner: Arc<PlannerSettings>,
    /// `work_mem`, in bytes.
    pub(crate) work_mem: usize,
}

/// How the scans of a table read it. Clones are cheap.
#[derive(Clone)]
pub(crate) struct TableAccess {
    pub(super) engine: Engine,
    /// How the statement reads.
    io: Arc<Settings>,
    pub(super) files: TableFiles,
    pub(super) transactions: Arc<Transactions>,
    pub(super) streams: StatementStreams,
    pub(super) cancellation: Cancellation,
    /// The table.
    table: Oid,
    /// The table's name, for `EXPLAIN`.
    pub(super) name: Arc<TableName>,
    blocks: u32,
    /// The estimated number of rows.
    rows: Option<f64>,
    filter: RowFilter,
    sizes: Arc<TableSizes>,
    found: Arc<FoundRelations>,
    planner: Arc<PlannerSettings>,
    work_mem: usize,
}

/// The bytes of a row's header and line pointer.
const ROW_OVERHEAD: f64 = 28.0;

/// The pages that a table has for estimates if it was never vacuumed, as in PostgreSQL.
const NEW_TABLE_PAGES: f64 = 10.0;

/// The files that the rows of a relation are in.
///
/// # Errors
/// 42809 if the relation has no rows of its own.
pub(crate) fn table_files(
    database: &Database,
    relation: &RelationInfo,
) -> Result<TableFiles, SqlError> {
    match relation.kind {
        // A sequence is a table with one row, without TOAST values.
        RelationKind::Sequence => database
            .files(relation)
            .map(|rows| TableFiles { rows, toast: None })
            .ok_or_else(|| SqlError::internal("a sequence without files")),
        _ => database.table_files(relation).map_err(|error| catalog_error(&error)),
    }
}

/// The visibility map of a table.
pub(crate) fn visibility_map(rows: &Relation) -> Relation {
    rows.storage().relation(rows.locator(), Fork::Vm)
}

impl fmt::Debug for TableAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name.schema, self.name.table)
    }
}

impl TableAccess {
    /// Opens a table.
    ///
    /// # Errors
    /// 42809 if the relation has no rows of its own; 55000 for a materialized view without rows;
    /// 58P01 if its files are missing.
    pub(crate) fn new(
        database: &Database,
        relation: &RelationInfo,
        reads: &StatementReads,
    ) -> Result<Self, SqlError> {
        let StatementReads { engine, io, streams, cancellation, sizes, found, planner, work_mem } =
            reads;
        if relation.kind == RelationKind::MaterializedView && !relation.populated {
            let name = relation.quoted_name();
            let message = format!("materialized view \"{name}\" has not been populated");
            let hint = "Use the REFRESH MATERIALIZED VIEW command.";
            let code = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(SqlError::new(code, message).with_hint(hint));
        }
        let files = table_files(database, relation)?;
        let blocks = sizes.blocks(relation.oid)?;
        // As in PostgreSQL, the density of the last VACUUM is applied to the current size.
        let density = |rows: f32| f64::from(rows) / f64::from(relation.pages);
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let known = relation.rows.filter(|_| relation.pages > 0);
        Ok(Self {
            engine: engine.clone(),
            io: Arc::clone(io),
            files,
            table: relation.oid,
            transactions: Arc::clone(database.transactions()),
            streams: streams.clone(),
            cancellation: cancellation.clone(),
            name: Arc::new(TableName {
                schema: text(&database.schema_name(relation)),
                table: text(&relation.name),
                alias: text(&relation.name),
                is_child: false,
            }),
            blocks,
            rows: known.map(|rows| (density(rows) * f64::from(blocks)).round()),
            filter: match relation.kind {
                RelationKind::Sequence => RowFilter::Sequence,
                _ => RowFilter::Visible,
            },
            sizes: Arc::clone(sizes),
            found: Arc::clone(found),
            planner: Arc::clone(planner),
            work_mem: *work_mem,
        })
    }

    /// The same table with this alias.
    pub(crate) fn with_alias(mut self, alias: String, is_child: bool) -> Self {
        let name = Arc::make_mut(&mut self.name);
        name.alias = alias;
        name.is_child = is_child;
        self
    }

    /// The same table for another statement of the session. The size of the table stays the same.
    pub(crate) fn for_statement(&self, reads: &StatementReads) -> Self {
        let StatementReads { io, streams, cancellation, sizes, found, planner, work_mem, .. } =
            reads;
        Self {
            io: Arc::clone(io),
            streams: streams.clone(),
            cancellation: cancellation.clone(),
            sizes: Arc::clone(sizes),
            found: Arc::clone(found),
            planner: Arc::clone(planner),
            work_mem: *work_mem,
            ..self.clone()
        }
    }

    /// The table's OID.
    pub(crate) fn table(&self) -> Oid {
        self.table
    }

    /// The table's name.
    pub(crate) fn name(&self) -> &TableName {
        &self.name
    }

    /// The number of blocks when the table was opened.
    pub(super) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The most partitions that a scan is divided into.
    pub(super) fn partitions_max(&self) -> usize {
        self.blocks.div_ceil(PARALLEL_BLOCKS_MIN).max(1) as usize
    }

    /// Opens a session that is cancelled with the statement.
    pub(super) fn session(&self) -> Result<Backend, SqlError> {
        self.cancellation.open_session(&self.engine)
    }

    /// How a partition reads. A large table doesn't displace others from the pool.
    pub(super) fn scan_options(&self, unordered: bool) -> ScanOptions {
        let options = ScanOptions { rows: self.filter, ..ScanOptions::of(&self.io) };
        let large = self.blocks > self.engine.pool().buffers() / 4;
        let strategy = if large { Strategy::BulkRead } else { Strategy::Normal };
        let stream = StreamOptions { strategy, unordered, ..options.stream };
        ScanOptions { stream, ..options }
    }

    /// How the scans of indexes read. The order of an index isn't kept.
    pub(super) fn index_options(&self) -> IndexScanOptions {
        IndexScanOptions { unordered: true, ..IndexScanOptions::of(&self.io) }
    }

    /// The table's pages, for estimates.
    pub(crate) fn pages(&self) -> RelationPages {
        self.pages_of(self.table, self.blocks)
    }

    /// The pages of an index that may be used; `None` if its file can't be used.
    pub(super) fn index_pages(&self, index: Oid) -> Option<RelationPages> {
        Some(self.pages_of(index, self.sizes.blocks(index).ok()?))
    }

    fn pages_of(&self, relation: Oid, blocks: BlockNo) -> RelationPages {
        let costs = self.planner.page_costs();
        RelationPages { blocks, costs: costs.with(self.found.find(relation)) }
    }

    /// The table's visibility map with its length in blocks; `None` if its size was not asked for.
    pub(super) fn visibility_map(&self) -> Option<(Relation, BlockNo)> {
        let blocks = self.sizes.map_blocks(self.table)?;
        Some((visibility_map(&self.files.rows), blocks))
    }

    /// The table with an index.
    ///
    /// # Errors
    /// As for [`TableSizes::blocks`].
    pub(super) fn indexed(&self, search: &IndexSearch) -> Result<IndexedTable, SqlError> {
        let index_blocks = self.sizes.blocks(search.index.oid)?;
        Ok(IndexedTable {
            index: search.index().clone(),
            rows: self.files.rows.clone(),
            sizes: ScanSizes { index_blocks, table_blocks: self.blocks },
            transactions: Arc::clone(&self.transactions),
        })
    }

    /// What costs depend on.
    pub(crate) fn planner(&self) -> &PlannerSettings {
        &self.planner
    }

    /// `work_mem`, in bytes.
    pub(crate) fn work_mem(&self) -> usize {
        self.work_mem
    }

    /// The reads that a scan can have in flight: `effective_io_concurrency`, unless the pool has too few
    /// buffers. A scan may pin about half of those that are free.
    pub(super) fn reads_max(&self) -> u32 {
        self.io.effective_io_concurrency().min(self.engine.pool().buffers() / 2).max(1)
    }

    /// The estimated number of rows. Without `VACUUM` or `ANALYZE`, it follows from the size and the
    /// width of a row (`estimate_rel_size`).
    pub(super) fn estimated_rows(&self, width: f64) -> f64 {
        let guess = || {
            let pages = f64::from(self.blocks).max(NEW_TABLE_PAGES);
            let density = (BLOCK_SIZE as f64 - 24.0) / (width + ROW_OVERHEAD);
            (pages * density.floor().max(1.0)).round()
        };
        self.rows.unwrap_or_else(guess).max(1.0)
    }

    /// Estimates. They are never exact, or DataFusion would answer `count(*)` from them. `rows` are those
    /// that pass the filters, if known.
    pub(super) fn statistics(&self, schema: &Schema, rows: Option<f64>) -> Statistics {
        let mut statistics = Statistics::new_unknown(schema);
        if let Some(rows) = self.rows.and(rows.or(self.rows)) {
            statistics.num_rows = Precision::Inexact(rows as usize);
        }
        statistics
    }
}
