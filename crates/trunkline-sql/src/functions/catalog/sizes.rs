//! Sizes: `pg_relation_size` and its family, `pg_database_size`, `pg_tablespace_size`, and where a
//! tablespace is.
//!
//! A table's size includes its TOAST table with its index, and all forks of both. The total adds its
//! indexes.

use trunkline_engine::catalog::RelationInfo;
use trunkline_format::{Fork, Oid};

use crate::catalog::SessionCatalog;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const SIZES: &[(&str, Kernel)] = &[
    ("pg_relation_size(regclass)", |call| {
        each(call, |session, relation| session.sizes.fork(relation.oid, Fork::Main))
    }),
    ("pg_relation_size", |call| {
        let forks = Reader::<&str>::new(call, 1)?;
        let session = call.settings.session()?;
        let oids = Reader::<u32>::new(call, 0)?;
        each_row(call.rows, |row| {
            let (Some(oid), Some(fork)) = (oids.get(row), forks.get(row)) else { return Ok(None) };
            // The server looks for the relation first.
            if session.catalog.database().relation(Oid(oid)).is_none() {
                return Ok(None);
            }
            let size = session.sizes.fork(Oid(oid), fork_named(fork)?)?;
            Ok(Some(size as i64))
        })
    }),
    ("pg_table_size", |call| each(call, table_size)),
    ("pg_indexes_size", |call| each(call, indexes_size)),
    ("pg_total_relation_size", |call| {
        each(call, |session, relation| {
            Ok(table_size(session, relation)? + indexes_size(session, relation)?)
        })
    }),
    ("pg_database_size_oid", |call| {
        let session = call.settings.session()?;
        let oids = Reader::<u32>::new(call, 0)?;
        each_row(call.rows, |row| {
            let Some(oid) = oids.get(row) else { return Ok(None) };
            let mut all = session.catalog.database().databases().iter();
            if call.settings.major >= 18 && !all.any(|row| row.oid == Oid(oid)) {
                let message = format!("database with OID {oid} does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
            // A database without files is one that doesn't exist.
            Ok(Some(session.sizes.database(Oid(oid))? as i64).filter(|bytes| *bytes > 0))
        })
    }),
    ("pg_database_size_name", |call| {
        let session = call.settings.session()?;
        let catalog = &session.catalog;
        unary(call, |name: &str| {
            let stored = catalog.encoding().encode(name).unwrap_or_default();
            let row = catalog.database().databases().iter().find(|row| *row.name == *stored);
            let row = row.ok_or_else(|| {
                let message = format!("database \"{name}\" does not exist");
                SqlError::new(SqlState::INVALID_CATALOG_NAME, message)
            })?;
            Ok(session.sizes.database(row.oid)? as i64)
        })
    }),
    ("pg_tablespace_size_oid", |call| {
        let session = call.settings.session()?;
        let oids = Reader::<u32>::new(call, 0)?;
        each_row(call.rows, |row| match oids.get(row) {
            Some(oid) => tablespace_size(call, session, Oid(oid)),
            None => Ok(None),
        })
    }),
    ("pg_tablespace_size_name", |call| {
        let session = call.settings.session()?;
        let catalog = &session.catalog;
        let names = Reader::<&str>::new(call, 0)?;
        each_row(call.rows, |row| {
            let Some(name) = names.get(row) else { return Ok(None) };
            let stored = catalog.encoding().encode(name).unwrap_or_default();
            let row = catalog.database().tablespaces().iter().find(|row| *row.name == *stored);
            let row = row.ok_or_else(|| {
                let message = format!("tablespace \"{name}\" does not exist");
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            })?;
            tablespace_size(call, session, row.oid)
        })
    }),
    ("pg_tablespace_location", |call| {
        let session = call.settings.session()?;
        let own = session.catalog.database().info().tablespace;
        unary(call, |oid: u32| {
            let oid = if oid == 0 { own } else { Oid(oid) };
            session.sizes.tablespace_location(oid)?.ok_or_else(|| {
                let message =
                    format!("could not stat file \"pg_tblspc/{oid}\": No such file or directory");
                SqlError::new(SqlState::UNDEFINED_FILE, message)
            })
        })
    }),
];

/// The size of each relation; null if there is none.
fn each(
    call: &Call<'_>,
    size: impl Fn(&SessionCatalog, &RelationInfo) -> Result<u64, SqlError>,
) -> Result<arrow_array::ArrayRef, SqlError> {
    let session = call.settings.session()?;
    let oids = Reader::<u32>::new(call, 0)?;
    each_row(call.rows, |row| {
        let relation = oids.get(row).and_then(|oid| session.catalog.database().relation(Oid(oid)));
        relation.map(|relation| size(session, relation).map(|bytes| bytes as i64)).transpose()
    })
}

fn fork_named(name: &str) -> Result<Fork, SqlError> {
    match name {
        "main" => Ok(Fork::Main),
        "fsm" => Ok(Fork::Fsm),
        "vm" => Ok(Fork::Vm),
        "init" => Ok(Fork::Init),
        _ => {
            let hint = "Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".";
            let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name");
            Err(error.with_hint(hint))
        }
    }
}

/// All forks of a relation.
fn all_forks(session: &SessionCatalog, relation: Oid) -> Result<u64, SqlError> {
    Fork::ALL.iter().map(|&fork| session.sizes.fork(relation, fork)).sum()
}

/// All forks of the indexes of a relation.
fn indexes_size(session: &SessionCatalog, relation: &RelationInfo) -> Result<u64, SqlError> {
    let indexes = session.catalog.database().indexes_of(relation.oid);
    indexes.iter().map(|row| all_forks(session, row.index)).sum()
}

fn table_size(session: &SessionCatalog, relation: &RelationInfo) -> Result<u64, SqlError> {
    let mut size = all_forks(session, relation.oid)?;
    if let Some(toast) = session.catalog.database().relation(relation.toast) {
        size += all_forks(session, toast.oid)? + indexes_size(session, toast)?;
    }
    Ok(size)
}

/// The size of a tablespace. If there is none, null, or since version 18 an error.
fn tablespace_size(
    call: &Call<'_>,
    session: &SessionCatalog,
    tablespace: Oid,
) -> Result<Option<i64>, SqlError> {
    let all = session.catalog.database().tablespaces();
    if call.settings.major >= 18 && !all.iter().any(|row| row.oid == tablespace) {
        let message = format!("tablespace with OID {tablespace} does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
    }
    Ok(session.sizes.tablespace(tablespace)?.map(|bytes| bytes as i64))
}
