//! Scans of catalogs, and what becomes of what is damaged there.
//!
//! A row that makes no sense ends the reading: what is left out here would be missing everywhere
//! without a word. Who asks for it gets the others, and [`Faults`].

use trunkline_aio::sync::Arc;
use trunkline_format::catalog::{CatalogTable, Fields, RowError};
use trunkline_format::segment::segment_of;
use trunkline_format::{Fork, PgVersion};

use super::OnDamage;
use super::error::CatalogError;
use crate::heap::{HeapError, HeapScan, ScanOptions};
use crate::pool::Backend;
use crate::storage::{RelationLocator, Storage};
use crate::transactions::Transactions;

/// Reads catalogs with a backend.
pub(super) struct Reader<'r> {
    pub(super) backend: &'r mut Backend,
    pub(super) storage: &'r Storage,
    pub(super) transactions: &'r Arc<Transactions>,
    pub(super) version: PgVersion,
    pub(super) faults: &'r mut Faults,
}

/// What was left out of catalogs, if anything may be.
#[derive(Debug)]
pub(super) struct Faults {
    on_damage: OnDamage,
    found: Vec<CatalogError>,
}

impl Faults {
    pub(super) fn new(on_damage: OnDamage) -> Self {
        Self { on_damage, found: Vec::new() }
    }

    /// Takes a fault and goes on, or hands it back.
    pub(super) fn take(&mut self, error: CatalogError) -> Result<(), CatalogError> {
        let cancelled = matches!(&error, CatalogError::Heap(error) if error.is_cancelled());
        if self.on_damage == OnDamage::Fail || cancelled {
            return Err(error);
        }
        self.found.push(error);
        Ok(())
    }

    /// Takes what may follow from another fault, and hands back what must have a cause of its own.
    pub(super) fn take_further(&mut self, error: CatalogError) -> Result<(), CatalogError> {
        if self.found.is_empty() { Err(error) } else { self.take(error) }
    }

    pub(super) fn into_found(self) -> Vec<CatalogError> {
        self.found
    }
}

impl Reader<'_> {
    /// Scans a catalog and hands out its visible rows.
    pub(super) fn scan(
        &mut self,
        table: &'static CatalogTable,
        locator: RelationLocator,
        mut each: impl FnMut(&mut Fields<'_, '_>) -> Result<(), RowError>,
    ) -> Result<(), CatalogError> {
        let relation = self.storage.relation(locator, Fork::Main);
        let layout = table.layout(self.version);
        let options = ScanOptions::default();
        let scan = HeapScan::of_table(self.backend, &relation, self.transactions, options);
        let mut scan = match scan {
            Ok(scan) => scan,
            Err(error) => return self.faults.take(error.into()),
        };
        loop {
            let page = match scan.next_page(self.backend) {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(()),
                Err(error) => {
                    // About one block the scan goes on; about the file there is no more.
                    let of_file =
                        matches!(&error, HeapError::Read(error) if error.block().is_none());
                    self.faults.take(error.into())?;
                    if of_file {
                        return Ok(());
                    }
                    continue;
                }
            };
            for row in page.rows() {
                let row = match row {
                    Ok(row) => row,
                    Err(error) => {
                        self.faults.take(error.into())?;
                        continue;
                    }
                };
                let read = layout.fields(row.tuple).and_then(|mut fields| each(&mut fields));
                if let Err(source) = read {
                    self.faults.take(CatalogError::Row {
                        path: relation.path(segment_of(row.tid.block).0),
                        block: row.tid.block,
                        item: row.tid.item,
                        source,
                    })?;
                }
            }
        }
    }

    /// What `read` reads of the catalog at `place`; nothing if there is no place, which is a fault.
    pub(super) fn found<T: Default>(
        &mut self,
        place: Result<RelationLocator, CatalogError>,
        read: impl FnOnce(&mut Self, RelationLocator) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        match place {
            Ok(place) => read(self, place),
            Err(error) => self.faults.take(error).map(|()| T::default()),
        }
    }
}
