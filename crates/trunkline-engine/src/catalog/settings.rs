//! The settings that a database's sessions begin with: what `ALTER DATABASE … SET` and
//! `ALTER ROLE ALL SET` left in `pg_db_role_setting`, which all databases share.
//!
//! Only few ask for them, so they are read when somebody does.

use std::collections::BTreeMap;

use trunkline_format::catalog::{PG_DB_ROLE_SETTING, RoleSettingRow, RowError, settings_of};
use trunkline_format::segment::segment_of;
use trunkline_format::varlena::Varlena;
use trunkline_format::{Fork, Oid};

use super::database::Database;
use super::error::CatalogError;
use crate::heap::{HeapScan, ScanOptions};
use crate::pool::Backend;
use crate::storage::{GLOBAL_TABLESPACE, RelationLocator};

/// Values by names in lower case.
type Settings = BTreeMap<String, String>;

impl Database {
    /// The settings that sessions of any role begin with in this database: values by names in lower
    /// case. What is said of the database counts before what is said of all.
    ///
    /// # Errors
    /// [`CatalogError`]: they cannot be read, or are so long that they are not in their rows.
    pub fn settings(&self, backend: &mut Backend) -> Result<Settings, CatalogError> {
        let (table, cluster) = (&PG_DB_ROLE_SETTING, &self.cluster);
        self.check_layout(table)?;
        let file = cluster.map.file_of(table.oid);
        let relfilenode = file.ok_or_else(|| CatalogError::NoCatalog {
            table: table.name,
            database: "global".to_owned(),
        })?;
        let (tablespace, database) = (GLOBAL_TABLESPACE, Oid(0));
        let locator = RelationLocator { tablespace, database, relfilenode };
        let relation = cluster.storage.relation(locator, Fork::Main);
        let layout = table.layout(cluster.version);
        let (mut of_all, mut of_it) = (Settings::new(), Settings::new());
        let options = ScanOptions::default();
        let mut scan = HeapScan::of_table(backend, &relation, &cluster.transactions, options)?;
        while let Some(page) = scan.next_page(backend)? {
            for row in page.rows() {
                let row = row?;
                let read = layout.fields(row.tuple).and_then(|mut fields| {
                    let row = RoleSettingRow::read(&mut fields)?;
                    match (row.role, row.database) {
                        (Oid(0), Oid(0)) => take(&row, &mut of_all),
                        (Oid(0), database) if database == self.info.oid => take(&row, &mut of_it),
                        _ => Ok(()),
                    }
                });
                read.map_err(|source| CatalogError::Row {
                    path: relation.path(segment_of(row.tid.block).0),
                    block: row.tid.block,
                    item: row.tid.item,
                    source,
                })?;
            }
        }
        of_all.append(&mut of_it);
        Ok(of_all)
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
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for (name, value) in found {
        settings.insert(text(name).to_ascii_lowercase(), text(value));
    }
    Ok(())
}
