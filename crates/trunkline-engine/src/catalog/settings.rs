//! Session defaults stored in the catalogs. They are the rows of `pg_db_role_setting` that are
//! created by `ALTER DATABASE … SET` and `ALTER ROLE ALL SET`.
//!
//! Some of these settings, such as `DateStyle`, affect how `COPY` prints values. Few other callers
//! need the settings, so we read them only on demand. We ignore settings that apply to a single
//! role, because there is no session user.

use std::collections::BTreeMap;

use trunkline_format::Oid;
use trunkline_format::catalog::{
    CatalogRow, PG_DB_ROLE_SETTING, RoleSettingRow, RowError, settings_of,
};
use trunkline_format::varlena::Varlena;

use super::database::Database;
use super::error::CatalogError;
use super::reader::{Faults, Reader};
use crate::heap::{HeapError, ToastBatch, ToastReader};
use crate::pool::Backend;
use crate::read_stream::StreamOptions;

/// Values by lower-case names.
type Settings = BTreeMap<String, String>;

impl Database {
    /// Returns the settings with which every session in this database starts, regardless of its
    /// role, as a map from lower-case name to value. Settings for this database override settings
    /// for all databases. Also returns the damage that we skipped, as in [`Database::faults`].
    ///
    /// # Errors
    /// [`CatalogError`]: they cannot be read.
    pub fn settings(
        &self,
        backend: &mut Backend,
    ) -> Result<(Settings, Vec<CatalogError>), CatalogError> {
        let (table, cluster) = (&PG_DB_ROLE_SETTING, &self.cluster);
        let mut faults = Faults::new(cluster.on_damage);
        if let Err(error) = self.check_layout(table) {
            // If one of this catalog's pg_attribute rows was left out, the layout can't match.
            if self.faults().is_empty() {
                return Err(error);
            }
            faults.take(error)?;
        }
        let locator = cluster.shared_catalog(table)?;
        let (mut of_all, mut of_it) = (Settings::new(), Settings::new());
        // Long arrays are stored out of line, in the TOAST table. We fetch them all together after
        // the scan, and use the `own` vector to remember which of them are settings for this
        // database.
        let (mut long, mut own) = (ToastBatch::new(), Vec::new());
        let mut reader = Reader { backend, cluster, faults: &mut faults };
        reader.scan(locator, |tuple| {
            let row = RoleSettingRow::decode(tuple)?;
            let is_own = row.database == self.info.oid;
            if row.role != Oid(0) || !(is_own || row.database == Oid(0)) {
                return Ok(());
            }
            if let Ok(Varlena::External(pointer)) = Varlena::parse(&row.settings) {
                long.push(pointer);
                own.push(is_own);
                return Ok(());
            }
            take(&row, if is_own { &mut of_it } else { &mut of_all })
        })?;
        let toast = self.relation(table.oid).and_then(|relation| self.toast_files(relation));
        if let Some(toast) = toast.filter(|_| !long.is_empty()) {
            let options = StreamOptions::default();
            let mut toast = ToastReader::new(backend, toast, &cluster.transactions, options);
            toast.fetch(backend, &mut long).map_err(HeapError::from)?;
        }
        for (number, is_own) in own.into_iter().enumerate() {
            match long.value(number).and_then(Result::ok).and_then(settings_of) {
                Some(found) => add(found, if is_own { &mut of_it } else { &mut of_all }),
                None => faults.take(CatalogError::LongValue { table: table.name })?,
            }
        }
        of_all.append(&mut of_it);
        Ok((of_all, faults.into_found()))
    }
}

/// Adds the settings of a row.
fn take(row: &RoleSettingRow, settings: &mut Settings) -> Result<(), RowError> {
    let mut decompressed = Vec::new();
    let array = Varlena::parse(&row.settings).and_then(|array| array.payload(&mut decompressed));
    let found = array.ok().and_then(settings_of).ok_or(RowError::Value {
        table: PG_DB_ROLE_SETTING.name,
        column: "setconfig",
        found: i64::from(row.settings.first().copied().unwrap_or_default()),
    })?;
    add(found, settings);
    Ok(())
}

fn add<'a>(found: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, settings: &mut Settings) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for (name, value) in found {
        settings.insert(text(name).to_ascii_lowercase(), text(value));
    }
}
