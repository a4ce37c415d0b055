//! Loads the [`ExpressionCatalogs`] of a database on demand.
//!
//! All of them are read as they are, except for `pg_proc`, some of whose values may be in its TOAST
//! table.

use trunkline_aio::facade::Arc;
use trunkline_format::catalog::{CatalogRow, PG_PROC, ProcedureRow};
use trunkline_format::varlena::Varlena;

use super::cluster::OnDamage;
use super::database::Database;
use super::error::CatalogError;
use super::expression_catalogs::ExpressionCatalogs;
use super::procedure::Procedure;
use super::reader::{Faults, Reader};
use crate::heap::{HeapError, ToastBatch, ToastReader};
use crate::pool::Backend;
use crate::read_stream::StreamOptions;

impl Database {
    /// The catalogs that define what an expression means. They are loaded by the first call, which
    /// takes some milliseconds. If two sessions load them concurrently, the second one discards its
    /// copy, which is identical.
    ///
    /// # Errors
    /// [`CatalogError`]: a catalog is damaged, or cannot be read. Damage is always an error, even if
    /// other damage is being collected: if a function or an operator were left out, an expression
    /// would silently mean something else.
    pub fn expression_catalogs(
        &self,
        backend: &mut Backend,
    ) -> Result<Arc<ExpressionCatalogs>, CatalogError> {
        if let Some(found) = &*self.expressions.lock() {
            return Ok(Arc::clone(found));
        }
        let definitions = match self.load_definitions(backend) {
            Err(CatalogError::Heap(error)) if error.is_cancelled() => return Err(error.into()),
            loaded => loaded.map_err(|error| error.to_string()),
        };
        let made = Arc::new(ExpressionCatalogs {
            procedures: self.load_procedures(backend)?,
            aggregates: self.rows_on_demand(backend)?,
            operators: self.rows_on_demand(backend)?,
            casts: self.rows_on_demand(backend)?,
            families: self.rows_on_demand(backend)?,
            family_operators: self.rows_on_demand(backend)?,
            family_functions: self.rows_on_demand(backend)?,
            collations: self.rows_on_demand(backend)?,
            languages: self.rows_on_demand(backend)?,
            definitions,
        });
        Ok(Arc::clone(self.expressions.lock().get_or_insert(made)))
    }

    pub(super) fn rows_on_demand<R: CatalogRow>(
        &self,
        backend: &mut Backend,
    ) -> Result<Vec<R>, CatalogError> {
        self.check_layout(R::CATALOG)?;
        let locator = self.catalog(R::CATALOG)?;
        let mut faults = Faults::new(OnDamage::Fail);
        Reader { backend, cluster: &self.cluster, faults: &mut faults }.rows(locator)
    }

    /// Reads `pg_proc`. A function in SQL or another language may have a text that is stored out of
    /// line. We fetch those values together after the scan, because a scan must not read other
    /// relations while it holds a page.
    fn load_procedures(&self, backend: &mut Backend) -> Result<Vec<Procedure>, CatalogError> {
        self.check_layout(&PG_PROC)?;
        let locator = self.catalog(&PG_PROC)?;
        let mut faults = Faults::new(OnDamage::Fail);
        let mut reader = Reader { backend, cluster: &self.cluster, faults: &mut faults };
        let (mut found, mut long, mut batch) = (Vec::new(), Vec::new(), ToastBatch::new());
        reader.scan(locator, |tuple| {
            let row = ProcedureRow::decode(tuple)?;
            let before = batch.len();
            for stored in long_columns(&row) {
                if let Ok(Varlena::External(pointer)) = Varlena::parse(stored) {
                    batch.push(pointer);
                }
            }
            match batch.len() == before {
                true => found.push(Procedure::of_row(row, inline_payload)?),
                false => long.push(row),
            }
            Ok(())
        })?;
        let toast = self.relation(PG_PROC.oid).and_then(|relation| self.toast_files(relation));
        if let Some(toast) = toast.filter(|_| !batch.is_empty()) {
            let options = StreamOptions::default();
            let mut toast = ToastReader::new(backend, toast, &self.cluster.transactions, options);
            toast.fetch(backend, &mut batch).map_err(HeapError::from)?;
        }
        // The values come in the order in which they were pushed.
        let mut fetched = 0..batch.len();
        for row in long {
            let payload = |stored: &[u8]| match Varlena::parse(stored).ok()? {
                Varlena::External(_) => batch.value(fetched.next()?)?.ok().map(<[u8]>::to_vec),
                _ => inline_payload(stored),
            };
            let row = Procedure::of_row(row, payload);
            found.push(row.map_err(|_| CatalogError::LongValue { table: PG_PROC.name })?);
        }
        Ok(found)
    }
}

/// The columns of a row that may be stored out of line, in the order in which they are decoded.
fn long_columns(row: &ProcedureRow) -> impl Iterator<Item = &[u8]> {
    [&row.all_arguments, &row.modes, &row.names, &row.defaults, &row.source, &row.body]
        .into_iter()
        .filter_map(|stored| stored.as_deref())
}

/// The payload of a value that is stored in its row.
fn inline_payload(stored: &[u8]) -> Option<Vec<u8>> {
    let mut decompressed = Vec::new();
    let payload = Varlena::parse(stored).ok()?.payload(&mut decompressed).ok()?;
    Some(payload.to_vec())
}
