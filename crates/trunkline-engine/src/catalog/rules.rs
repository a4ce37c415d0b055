//! Rules: the queries of views, which are the rule `_RETURN` of each view in `pg_rewrite`, and the
//! commands that other rules replace.
//!
//! A query is a long text, most often in the TOAST table of `pg_rewrite`. The rows are loaded by the
//! first look-up, which takes a few pages, and each query is fetched when it is needed.

use trunkline_aio::facade::Arc;
use trunkline_format::Oid;
use trunkline_format::catalog::{PG_REWRITE, RewriteRow};
use trunkline_format::varlena::Varlena;

use super::database::{Database, Rules};
use super::error::CatalogError;
use crate::heap::{HeapError, ToastBatch, ToastReader};
use crate::pool::Backend;
use crate::read_stream::StreamOptions;

/// `ev_type` of rules for `SELECT`.
const SELECT: u8 = b'1';

impl Database {
    /// The query of a view, as the text of a node tree: a list of one `QUERY`. `None` if the relation
    /// has none, because it is not a view.
    ///
    /// # Errors
    /// [`CatalogError`]: the catalog or the value is damaged, or cannot be read.
    pub fn view_query(
        &self,
        backend: &mut Backend,
        view: Oid,
    ) -> Result<Option<Vec<u8>>, CatalogError> {
        let rules = self.rules(backend)?;
        let query = rules.get(&view).and_then(|own| own.iter().find(|row| row.event == SELECT));
        let Some(stored) = query.and_then(|row| row.action.as_deref()) else {
            return Ok(None);
        };
        let damaged = || CatalogError::LongValue { table: PG_REWRITE.name };
        let value = Varlena::parse(stored).map_err(|_| damaged())?;
        let Varlena::External(pointer) = value else {
            let mut decompressed = Vec::new();
            let payload = value.payload(&mut decompressed).map_err(|_| damaged())?;
            return Ok(Some(payload.to_vec()));
        };
        let toast = self.relation(PG_REWRITE.oid).and_then(|relation| self.toast_files(relation));
        let toast = toast.ok_or_else(damaged)?;
        let mut batch = ToastBatch::new();
        let number = batch.push(pointer);
        let options = StreamOptions::default();
        let mut toast = ToastReader::new(backend, toast, &self.cluster.transactions, options);
        toast.fetch(backend, &mut batch).map_err(HeapError::from)?;
        let found = batch.value(number).and_then(Result::ok).ok_or_else(damaged)?;
        Ok(Some(found.to_vec()))
    }

    /// The commands that rules always replace with other queries, as bits: 2 for `UPDATE`, 3 for
    /// `INSERT`, 4 for `DELETE`.
    ///
    /// # Errors
    /// As for [`Database::view_query`].
    pub fn replaced_commands(
        &self,
        backend: &mut Backend,
        relation: Oid,
    ) -> Result<u32, CatalogError> {
        let rules = self.rules(backend)?;
        let own = rules.get(&relation).map_or(&[][..], Vec::as_slice);
        // A text of two letters has a header of one or four bytes, and is never compressed.
        let has_condition = |row: &RewriteRow| {
            let is_none = |stored: &[u8]| stored.len() <= 6 && stored.ends_with(b"<>");
            row.condition.as_deref().is_some_and(|stored| !is_none(stored))
        };
        let replacing = own.iter().filter(|row| row.instead && !has_condition(row));
        let bits = replacing.map(|row| 1 << row.event.saturating_sub(b'0').min(31));
        Ok(bits.fold(0, |all, bit: u32| all | bit))
    }

    fn rules(&self, backend: &mut Backend) -> Result<Arc<Rules>, CatalogError> {
        if let Some(found) = &*self.rules.lock() {
            return Ok(Arc::clone(found));
        }
        let rows: Vec<RewriteRow> = self.rows_on_demand(backend)?;
        let mut made = Rules::default();
        for row in rows {
            made.entry(row.relation).or_default().push(row);
        }
        let made = Arc::new(made);
        Ok(Arc::clone(self.rules.lock().get_or_insert(made)))
    }
}
