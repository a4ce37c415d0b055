//! Statistics of columns, from `pg_statistic`.
//!
//! The catalog is large in databases with many tables, and a query needs the rows of a few tables. So
//! they are read through the catalog's index when they are needed, and kept as long as the database is
//! open: nothing changes them meanwhile.

use trunkline_aio::facade::Arc;
use trunkline_format::Oid;
use trunkline_format::btree::{Comparison, Condition, Direction, KeyRanges};
use trunkline_format::catalog::{CatalogRow, ColumnStatisticsRow, PG_STATISTIC};
use trunkline_format::varlena::Varlena;

use super::database::Database;
use super::error::CatalogError;
use crate::btree::ScanSizes;
use crate::heap::{HeapError, ToastBatch, ToastReader};
use crate::index_scan::{IndexScan, IndexScanError, IndexScanOptions, IndexedTable};
use crate::pool::{Backend, Policy};
use crate::read_stream::StreamOptions;

impl Database {
    /// The statistics of a table's columns, if they have been read already.
    pub fn known_statistics(&self, table: Oid) -> Option<Arc<Vec<ColumnStatisticsRow>>> {
        self.statistics.lock().get(&table).map(Arc::clone)
    }

    /// The statistics of a table's columns, without those of tables that inherit from it. Arrays are
    /// payloads without a varlena header. Empty if the table was never analyzed, or if the catalog has
    /// no index that we can search.
    ///
    /// # Errors
    /// [`CatalogError`]: the catalog or its index is damaged, or cannot be read.
    pub fn column_statistics(
        &self,
        backend: &mut Backend,
        table: Oid,
    ) -> Result<Arc<Vec<ColumnStatisticsRow>>, CatalogError> {
        if let Some(found) = self.known_statistics(table) {
            return Ok(found);
        }
        let policy = backend.policy();
        backend.set_policy(Policy { zero_damaged_pages: false, ..policy });
        let found = self.read_statistics(backend, table);
        backend.set_policy(policy);
        let found = Arc::new(found?);
        Ok(Arc::clone(self.statistics.lock().entry(table).or_insert(found)))
    }

    fn read_statistics(
        &self,
        backend: &mut Backend,
        table: Oid,
    ) -> Result<Vec<ColumnStatisticsRow>, CatalogError> {
        self.check_layout(&PG_STATISTIC)?;
        let locator = self.catalog(&PG_STATISTIC)?;
        let index = self.index(PG_STATISTIC.index.oid).filter(|index| index.valid);
        let Some(index) = index.and_then(|index| self.btree(index)) else { return Ok(Vec::new()) };
        let conditions = [Condition::Compare {
            column: 0,
            comparison: Comparison::Equal,
            value: Some(table.0.to_le_bytes().into()),
        }];
        let ranges = KeyRanges::new(index.layout(), &conditions, Direction::Forward);
        let Ok(Some(ranges)) = ranges else { return Ok(Vec::new()) };
        let storage = |source| CatalogError::File { table: &PG_STATISTIC, source };
        let rows = self.cluster.storage.relation(locator.rows, trunkline_format::Fork::Main);
        let sizes = ScanSizes {
            index_blocks: index.relation().blocks().map_err(storage)?,
            table_blocks: rows.blocks().map_err(storage)?,
        };
        let transactions = Arc::clone(&self.cluster.transactions);
        let layout = PG_STATISTIC.layout(self.cluster.version);
        let indexed = IndexedTable { index, rows: rows.clone(), sizes, transactions };
        let mut scan = IndexScan::new(backend, &indexed, ranges, IndexScanOptions::default());
        let mut found: Vec<ColumnStatisticsRow> = Vec::new();
        while let Some(page) = scan.next_page(backend).map_err(scan_error)? {
            for row in page.rows() {
                let row = row?;
                let decoded = layout
                    .tuple(row.tuple)
                    .and_then(|mut tuple| ColumnStatisticsRow::decode(&mut tuple));
                let decoded = decoded.map_err(|source| {
                    let location = rows.location(row.tid.block).at_item(row.tid.item);
                    CatalogError::Row { location, source }
                })?;
                // A wrong entry of the index can't bring a row of another table.
                if decoded.table == table && !decoded.inherited {
                    found.push(decoded);
                }
            }
        }
        self.fetch_values(backend, &mut found)?;
        Ok(found)
    }

    /// Replaces stored arrays by their payloads.
    fn fetch_values(
        &self,
        backend: &mut Backend,
        rows: &mut [ColumnStatisticsRow],
    ) -> Result<(), CatalogError> {
        let mut batch = ToastBatch::new();
        for stored in arrays(rows) {
            if let Ok(Varlena::External(pointer)) = Varlena::parse(stored) {
                batch.push(pointer);
            }
        }
        let toast = self.relation(PG_STATISTIC.oid).and_then(|catalog| self.toast_files(catalog));
        if let Some(toast) = toast.filter(|_| !batch.is_empty()) {
            let options = StreamOptions::default();
            let mut toast = ToastReader::new(backend, toast, &self.cluster.transactions, options);
            toast.fetch(backend, &mut batch).map_err(HeapError::from)?;
        }
        // The values come in the order in which they were pushed.
        let mut fetched = 0..batch.len();
        for stored in arrays(rows) {
            let payload = match Varlena::parse(stored) {
                Ok(Varlena::External(_)) => {
                    let found = fetched.next().and_then(|number| batch.value(number));
                    found.and_then(|found| found.ok().map(Box::from))
                }
                Ok(value) => {
                    let mut decompressed = Vec::new();
                    value.payload(&mut decompressed).ok().map(Box::from)
                }
                Err(_) => None,
            };
            *stored = payload.ok_or(CatalogError::LongValue { table: PG_STATISTIC.name })?;
        }
        Ok(())
    }
}

/// The arrays of all slots.
fn arrays(rows: &mut [ColumnStatisticsRow]) -> impl Iterator<Item = &mut Box<[u8]>> {
    let slots = rows.iter_mut().flat_map(|row| row.slots.iter_mut());
    slots.flat_map(|slot| slot.numbers.iter_mut().chain(slot.values.iter_mut()))
}

fn scan_error(error: IndexScanError) -> CatalogError {
    match error {
        IndexScanError::Heap(error) => error.into(),
        IndexScanError::Index(error) => CatalogError::Index(error),
        IndexScanError::Row(error) => error.into(),
    }
}
