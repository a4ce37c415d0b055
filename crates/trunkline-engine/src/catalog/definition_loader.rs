//! Loads the [`DefinitionCatalogs`] of a database.
//!
//! Most of these catalogs have a TOAST table: an expression is a long text. We fetch long values after
//! the scan of a catalog, because a scan must not read other relations while it holds a page.

use trunkline_format::catalog::{
    CatalogRow, ColumnDefaultRow, ConstraintRow, DescriptionRow, IndexExpressionsRow,
    PartitionBoundRow, PartitionedTableRow, SharedDescriptionRow, StatisticsRow,
};
use trunkline_format::varlena::Varlena;

use super::cluster::OnDamage;
use super::database::Database;
use super::definition_catalogs::DefinitionCatalogs;
use super::error::CatalogError;
use super::reader::{Faults, Reader};
use crate::heap::{HeapError, ToastBatch, ToastReader};
use crate::pool::Backend;
use crate::read_stream::StreamOptions;

/// A stored datum, or its payload once it has been loaded.
type Value = Option<Box<[u8]>>;

/// A row with values that may be compressed or stored out of line.
trait LongRow: CatalogRow {
    /// These values.
    fn long_values(&mut self) -> impl Iterator<Item = &mut Value>;
}

/// Implements [`LongRow`] for row types, with the names of their fields.
macro_rules! long_rows {
    ($($row:ident: $($field:ident),+;)*) => {
        $(impl LongRow for $row {
            fn long_values(&mut self) -> impl Iterator<Item = &mut Value> {
                [$(&mut self.$field),+].into_iter()
            }
        })*
    };
}

long_rows! {
    ConstraintRow: columns, referenced_columns, set_columns, expression;
    PartitionedTableRow: expressions;
    PartitionBoundRow: bound, options;
    StatisticsRow: expressions;
    ColumnDefaultRow: expression;
    IndexExpressionsRow: expressions, predicate;
    DescriptionRow: text;
    SharedDescriptionRow: text;
}

impl Database {
    /// Loads these catalogs.
    ///
    /// # Errors
    /// [`CatalogError`]: a catalog is damaged, or cannot be read.
    pub(super) fn load_definitions(
        &self,
        backend: &mut Backend,
    ) -> Result<DefinitionCatalogs, CatalogError> {
        let mut index_expressions: Vec<IndexExpressionsRow> = self.long_rows(backend)?;
        index_expressions.retain(|row| row.expressions.is_some() || row.predicate.is_some());
        let mut partition_bounds: Vec<PartitionBoundRow> = self.long_rows(backend)?;
        partition_bounds.retain(|row| row.bound.is_some() || row.options.is_some());
        Ok(DefinitionCatalogs {
            roles: self.shared_rows(backend)?,
            constraints: self.long_rows(backend)?,
            partitioned_tables: self.long_rows(backend)?,
            partition_bounds,
            statistics: self.long_rows(backend)?,
            column_defaults: self.long_rows(backend)?,
            index_expressions,
            descriptions: self.long_rows(backend)?,
            shared_descriptions: self.long_rows(backend)?,
            conversions: self.rows_on_demand(backend)?,
            text_search_parsers: self.rows_on_demand(backend)?,
            text_search_templates: self.rows_on_demand(backend)?,
            text_search_configs: self.rows_on_demand(backend)?,
            text_search_dictionaries: self.rows_on_demand(backend)?,
            extensions: self.rows_on_demand(backend)?,
            foreign_data_wrappers: self.rows_on_demand(backend)?,
            foreign_servers: self.rows_on_demand(backend)?,
        })
    }

    /// The rows of a catalog with the payloads of their long values.
    fn long_rows<R: LongRow>(&self, backend: &mut Backend) -> Result<Vec<R>, CatalogError> {
        let mut rows: Vec<R> = self.shared_rows(backend)?;
        let mut batch = ToastBatch::new();
        for stored in rows.iter_mut().flat_map(R::long_values).flatten() {
            if let Ok(Varlena::External(pointer)) = Varlena::parse(stored) {
                batch.push(pointer);
            }
        }
        let toast = self.relation(R::CATALOG.oid).and_then(|relation| self.toast_files(relation));
        if let Some(toast) = toast.filter(|_| !batch.is_empty()) {
            let options = StreamOptions::default();
            let mut toast = ToastReader::new(backend, toast, &self.cluster.transactions, options);
            toast.fetch(backend, &mut batch).map_err(HeapError::from)?;
        }
        // The values come in the order in which they were pushed.
        let mut fetched = 0..batch.len();
        for value in rows.iter_mut().flat_map(R::long_values).flatten() {
            let payload = match Varlena::parse(value) {
                Ok(Varlena::External(_)) => {
                    let found = fetched.next().and_then(|number| batch.value(number));
                    found.and_then(|found| found.ok().map(Box::from))
                }
                _ => inline_payload(value),
            };
            *value = payload.ok_or(CatalogError::LongValue { table: R::CATALOG.name })?;
        }
        Ok(rows)
    }

    /// The rows of a catalog, which may be one that all databases share.
    fn shared_rows<R: CatalogRow>(&self, backend: &mut Backend) -> Result<Vec<R>, CatalogError> {
        if !R::CATALOG.shared {
            return self.rows_on_demand(backend);
        }
        self.check_layout(R::CATALOG)?;
        let locator = self.cluster.shared_catalog(R::CATALOG)?;
        let mut faults = Faults::new(OnDamage::Fail);
        Reader { backend, cluster: &self.cluster, faults: &mut faults }.rows(locator)
    }
}

/// The payload of a value that is stored in its row.
fn inline_payload(stored: &[u8]) -> Option<Box<[u8]>> {
    let mut decompressed = Vec::new();
    let payload = Varlena::parse(stored).ok()?.payload(&mut decompressed).ok()?;
    Some(payload.into())
}
