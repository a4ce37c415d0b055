//! Sequences: their parameters from `pg_sequence`, and their current values from their own pages.
//!
//! Few callers need them, so we read both on demand.

use trunkline_format::catalog::{PG_SEQUENCE, SequenceRow};
use trunkline_format::sequence::Sequence;

use super::cluster::OnDamage;
use super::database::Database;
use super::error::CatalogError;
use super::reader::{Faults, Reader};
use super::relation::RelationInfo;
use crate::heap::HeapError;
use crate::pool::{Backend, ReadError};

impl Database {
    /// Returns the parameters of all sequences that can be read, and the damage that we skipped,
    /// such as pages that `pg_sequence` has lost.
    ///
    /// # Errors
    /// [`CatalogError`]: `pg_sequence` cannot be read at all.
    pub fn sequences(
        &self,
        backend: &mut Backend,
    ) -> Result<(Vec<SequenceRow>, Vec<CatalogError>), CatalogError> {
        self.check_layout(&PG_SEQUENCE)?;
        let locator = self.catalog(&PG_SEQUENCE)?;
        let mut faults = Faults::new(OnDamage::Rescue);
        let mut reader = Reader { backend, cluster: &self.cluster, faults: &mut faults };
        let rows = reader.rows::<SequenceRow>(locator)?;
        Ok((rows, faults.into_found()))
    }

    /// Returns the current value of a sequence. After a clean shutdown it is exact. After a crash,
    /// it may be up to 32 values ahead, as in the server.
    ///
    /// # Errors
    /// [`CatalogError`]: the relation has no file, or its page is not that of a sequence.
    pub fn sequence_value(
        &self,
        backend: &mut Backend,
        relation: &RelationInfo,
    ) -> Result<Sequence, CatalogError> {
        self.require_files(relation)?;
        let files = self.files(relation).ok_or_else(|| self.no_catalog())?;
        let failed = |error: ReadError| CatalogError::Heap(HeapError::Read(error));
        let pin = backend.read(&files, 0).map_err(failed)?;
        let page = backend.read_lock(pin.page()).map_err(|cancelled| failed(cancelled.into()))?;
        let sequence = Sequence::parse(&page);
        sequence.map_err(|source| CatalogError::Sequence { location: files.location(0), source })
    }

    fn no_catalog(&self) -> CatalogError {
        CatalogError::NoCatalog { table: PG_SEQUENCE.name, database: self.display_name() }
    }
}
