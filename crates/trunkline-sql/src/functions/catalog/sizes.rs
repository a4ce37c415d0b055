//! Sizes: `pg_relation_size` and its family, and `pg_size_pretty`.
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
    ("pg_size_pretty", |call| unary(call, |size: i64| Ok(pretty(size)))),
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

/// Units with the size below which they are used, whether they are rounded, and their power of two.
const UNITS: [(&str, u64, bool, u32); 6] = [
    ("bytes", 10 * 1024, false, 0),
    ("kB", 20 * 1024 - 1, true, 10),
    ("MB", 20 * 1024 - 1, true, 20),
    ("GB", 20 * 1024 - 1, true, 30),
    ("TB", 20 * 1024 - 1, true, 40),
    ("PB", 20 * 1024 - 1, true, 50),
];

/// A size in the largest unit that leaves at least two digits. One more bit than the unit needs is
/// kept for rounding.
fn pretty(mut size: i64) -> String {
    let mut units = UNITS.iter().peekable();
    while let Some(&(name, limit, rounds, bits)) = units.next() {
        match units.peek() {
            Some(&&(_, _, next_rounds, next_bits)) if size.unsigned_abs() >= limit => {
                let shift = next_bits - bits - u32::from(next_rounds) + u32::from(rounds);
                size /= 1_i64 << shift;
            }
            _ => {
                let shown = match (rounds, size < 0) {
                    (true, false) => (size + 1) / 2,
                    (true, true) => (size - 1) / 2,
                    (false, _) => size,
                };
                return format!("{shown} {name}");
            }
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are those of a server.
    #[test]
    fn sizes_are_rounded_as_in_the_server() {
        for (size, expected) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (10_752, "11 kB"),
            (10_751, "10 kB"),
            (-10_752, "-11 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (1_234_567_890, "1177 MB"),
            (i64::MAX, "8192 PB"),
            (i64::MIN, "-8192 PB"),
        ] {
            assert_eq!(pretty(size), expected, "{size}");
        }
    }
}
