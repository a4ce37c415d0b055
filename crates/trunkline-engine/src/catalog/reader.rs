//! Sequential scans of catalogs, and the handling of damage found in them.
//!
//! All damage is reported through [`Faults`], so that there is a single place where we decide
//! whether to fail or to collect the error. We read catalogs like any other table, that is, through
//! the pool and using the commit log to determine which rows are visible.
//!
//! If the caller collects damage, a scan skips damaged blocks and rows and continues. But if we can't
//! read the file of a catalog that everything else depends on, the scan fails.

use trunkline_format::Fork;
use trunkline_format::catalog::{
    CatalogRow, CatalogTable, CatalogTuple, PG_ATTRIBUTE, PG_CLASS, PG_DATABASE, RowError,
};
use trunkline_format::page::is_new;

use super::cluster::{CatalogLocator, Cluster, OnDamage};
use super::error::CatalogError;
use crate::heap::{HeapError, HeapScan, ScanOptions};
use crate::pool::{Backend, Policy, ReadError};
use crate::storage::StorageError;

/// Reads catalogs with a backend.
pub(super) struct Reader<'r> {
    pub(super) backend: &'r mut Backend,
    pub(super) cluster: &'r Cluster,
    pub(super) faults: &'r mut Faults,
}

/// Skipped damage, if the caller allows skipping.
#[derive(Debug)]
pub(super) struct Faults {
    on_damage: OnDamage,
    found: Vec<CatalogError>,
}

impl Faults {
    pub(super) fn new(on_damage: OnDamage) -> Self {
        Self { on_damage, found: Vec::new() }
    }

    /// Records damage, or returns it as an error if damage of this kind isn't being collected. A
    /// cancelled read isn't damage, so we always return that as an error.
    pub(super) fn take(&mut self, error: CatalogError) -> Result<(), CatalogError> {
        let cancelled = matches!(&error, CatalogError::Heap(error) if error.is_cancelled());
        let fails = match self.on_damage {
            OnDamage::Fail => true,
            OnDamage::Collect => error.lost_pages(),
            OnDamage::Rescue => false,
        };
        if fails || cancelled {
            return Err(error);
        }
        self.found.push(error);
        Ok(())
    }

    /// Records an error that may be just a consequence of earlier damage. If we haven't found any
    /// damage so far, the error must have some other cause, so we return it. If a catalog has lost
    /// pages, there may be lots of consequences, so we don't record them.
    pub(super) fn take_consequence(&mut self, error: CatalogError) -> Result<(), CatalogError> {
        match &*self.found {
            [] => Err(error),
            _ if self.lost_pages() => Ok(()),
            _ => self.take(error),
        }
    }

    /// Number of recorded errors.
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// Whether a catalog has lost pages.
    fn lost_pages(&self) -> bool {
        self.found.iter().any(CatalogError::lost_pages)
    }

    /// Removes and returns the first recorded error.
    pub(super) fn take_first(&mut self) -> Option<CatalogError> {
        (!self.found.is_empty()).then(|| self.found.remove(0))
    }

    pub(super) fn into_found(self) -> Vec<CatalogError> {
        self.found
    }
}

impl Reader<'_> {
    /// The visible rows of a catalog.
    pub(super) fn rows<R: CatalogRow>(
        &mut self,
        locator: CatalogLocator,
    ) -> Result<Vec<R>, CatalogError> {
        let mut rows = Vec::new();
        self.scan(locator, |tuple| {
            rows.push(R::decode(tuple)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns the visible rows of a catalog. If we fail to locate the catalog, that counts as
    /// damage, so when damage is being collected we return no rows. If a catalog has lost pages, it
    /// is a consequence of that, and not recorded.
    pub(super) fn rows_at<R: CatalogRow>(
        &mut self,
        locator: Result<CatalogLocator, CatalogError>,
    ) -> Result<Vec<R>, CatalogError> {
        match locator {
            Ok(locator) => self.rows(locator),
            Err(_) if self.faults.lost_pages() => Ok(Vec::new()),
            Err(error) => self.faults.take(error).map(|()| Vec::new()),
        }
    }

    /// Passes the visible rows of a catalog to `each`. Also checks that the catalog hasn't lost any
    /// pages.
    ///
    /// A damaged page is an error, even with `zero_damaged_pages`. If the pool replaced it by zeros,
    /// we would report that the catalog has lost the page, instead of what is wrong with it.
    pub(super) fn scan(
        &mut self,
        locator: CatalogLocator,
        each: impl FnMut(&mut CatalogTuple<'_, '_>) -> Result<(), RowError>,
    ) -> Result<(), CatalogError> {
        let policy = self.backend.policy();
        self.backend.set_policy(Policy { zero_damaged_pages: false, ..policy });
        let result = self.scan_pages(locator, each);
        self.backend.set_policy(policy);
        result
    }

    fn scan_pages(
        &mut self,
        locator: CatalogLocator,
        mut each: impl FnMut(&mut CatalogTuple<'_, '_>) -> Result<(), RowError>,
    ) -> Result<(), CatalogError> {
        let table = locator.table;
        let relation = self.cluster.storage.relation(locator.rows, Fork::Main);
        let blocks = match relation.blocks() {
            Ok(blocks) => blocks,
            Err(source) => return self.without_file(table, source),
        };
        if let Some(error) = self.short(&relation, blocks, locator)? {
            self.faults.take(error)?;
        }
        let layout = table.layout(self.cluster.version);
        let (transactions, options) = (&self.cluster.transactions, ScanOptions::default());
        let mut scan = HeapScan::of_blocks(self.backend, &relation, blocks, transactions, options);
        let mut new = Vec::new();
        loop {
            let page = match scan.next_page(self.backend) {
                Ok(Some(page)) => page,
                Ok(None) => break,
                Err(error) => {
                    // We can continue the scan after a damaged block. But if we can't read the file
                    // at all, for example because open() failed, we would report the same error
                    // again for every block.
                    match error {
                        HeapError::Read(ReadError::Storage(source)) => {
                            return self.without_file(table, source);
                        }
                        HeapError::Read(ref of_file) if of_file.block().is_none() => {
                            return self.faults.take(error.into());
                        }
                        _ => self.faults.take(error.into())?,
                    }
                    continue;
                }
            };
            if is_new(page.bytes()) {
                new.push(page.block());
            }
            for row in page.rows() {
                let row = match row {
                    Ok(row) => row,
                    Err(error) => {
                        self.faults.take(error.into())?;
                        continue;
                    }
                };
                let read = layout.tuple(row.tuple).and_then(|mut tuple| each(&mut tuple));
                if let Err(source) = read {
                    let location = relation.location(row.tid.block).at_item(row.tid.item);
                    self.faults.take(CatalogError::Row { location, source })?;
                }
            }
        }
        match self.new_page(&relation, &new, locator)? {
            Some(error) => self.faults.take(error),
            None => Ok(()),
        }
    }

    /// The file of a catalog can't be used. There are catalogs without which we can't find anything.
    /// If we continued without one of those, the snapshot would be empty, and all other errors would
    /// just be consequences.
    fn without_file(
        &mut self,
        table: &'static CatalogTable,
        source: StorageError,
    ) -> Result<(), CatalogError> {
        let error = CatalogError::File { table, source };
        match [PG_CLASS.oid, PG_ATTRIBUTE.oid, PG_DATABASE.oid].contains(&table.oid) {
            true => Err(error),
            false => self.faults.take(error),
        }
    }
}
