//! The settings that a database's sessions begin with: what `ALTER DATABASE … SET` and
//! `ALTER ROLE ALL SET` left in `pg_db_role_setting`, which all databases share.
//!
//! Only few ask for them, so they are read when somebody does.

use std::collections::BTreeMap;

use trunkline_format::Oid;
use trunkline_format::catalog::{PG_DB_ROLE_SETTING, RoleSettingRow, RowError, settings_of};
use trunkline_format::varlena::Varlena;

use super::database::Database;
use super::error::CatalogError;
use super::load::shared_catalog;
use super::reader::{Faults, Reader};
use crate::heap::{HeapError, ToastBatch, ToastReader};
use crate::pool::Backend;
use crate::read_stream::StreamOptions;

/// Values by names in lower case.
type Settings = BTreeMap<String, String>;

impl Database {
    /// The settings that sessions of any role begin with in this database: values by names in lower
    /// case. What is said of the database counts before what is said of all. With them comes what
    /// was left out, as of the catalogs themselves ([`Database::faults`]): nothing unless the
    /// catalog was opened with [`super::OnDamage::Collect`].
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
            // Where a row that describes it is missing, it cannot agree.
            if self.faults().is_empty() {
                return Err(error);
            }
            faults.take(error)?;
        }
        let locator = shared_catalog(table, &cluster.map)?;
        let (mut of_all, mut of_it) = (Settings::new(), Settings::new());
        // Of each that is not in its row, whether it is of this database.
        let (mut long, mut own) = (ToastBatch::new(), Vec::new());
        let mut reader = Reader {
            backend,
            storage: &cluster.storage,
            transactions: &cluster.transactions,
            version: cluster.version,
            faults: &mut faults,
        };
        reader.scan(table, locator, |fields| {
            let row = RoleSettingRow::read(fields)?;
            let is_own = row.database == self.info.oid;
            if row.role != Oid(0) || !(is_own || row.database == Oid(0)) {
                return Ok(());
            }
            if let Ok(Varlena::External(pointer)) = Varlena::parse(row.settings) {
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

/// Takes the settings of a row.
fn take(row: &RoleSettingRow<'_>, settings: &mut Settings) -> Result<(), RowError> {
    let mut room = Vec::new();
    let array = Varlena::parse(row.settings).and_then(|array| array.payload(&mut room));
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
