//! Rows about what relations are in and who owns them: databases, schemas, tablespaces, roles.
//!
//! Names of schemas are bytes in the encoding of the database; those of databases, tablespaces and
//! roles are in no encoding that one could count on, since all databases share them.

use super::fields::{Fields, RowError};
use crate::ids::Oid;

/// A row of `pg_database`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatabaseRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
    /// The encoding of its text: 6 is UTF-8, 0 is unknown.
    pub encoding: i32,
    /// Who compares text: `b` the server itself, `c` the C library, `i` ICU.
    pub provider: u8,
    /// Whether others may be made after it.
    pub is_template: bool,
    /// Whether anybody may connect to it.
    pub allows_connections: bool,
    /// How many may connect; -1 without a limit, -2 if its removal was interrupted.
    pub connection_limit: i32,
    /// Where its files are unless something else is said of them.
    pub tablespace: Oid,
    /// The C library's name for how text is sorted, such as `C` or `de_DE.UTF-8`.
    pub collate: &'a [u8],
}

impl<'a> DatabaseRow<'a> {
    /// Whether text is sorted by its bytes unless a column says otherwise, so that anybody can tell
    /// the order.
    pub fn sorts_by_bytes(&self) -> bool {
        match self.provider {
            b'b' => true,
            b'c' => matches!(self.collate, b"C" | b"POSIX"),
            _ => false,
        }
    }

    /// Takes it out of a row.
    ///
    /// # Errors
    /// [`RowError`]: a column is missing or senseless.
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self {
            oid: fields.oid("oid")?,
            name: fields.name("datname")?,
            encoding: fields.word("encoding")?.cast_signed(),
            provider: fields.code("datlocprovider")?,
            is_template: fields.flag("datistemplate")?,
            allows_connections: fields.flag("datallowconn")?,
            connection_limit: fields.word("datconnlimit")?.cast_signed(),
            tablespace: fields.oid("dattablespace")?,
            collate: fields.text("datcollate")?,
        })
    }
}

/// A row of `pg_tablespace`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TablespaceRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
}

impl<'a> TablespaceRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`DatabaseRow::read`].
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self { oid: fields.oid("oid")?, name: fields.name("spcname")? })
    }
}

/// A row of `pg_namespace`: a schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamespaceRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
}

impl<'a> NamespaceRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`DatabaseRow::read`].
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self { oid: fields.oid("oid")?, name: fields.name("nspname")? })
    }
}

/// A row of `pg_authid`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
}

impl<'a> RoleRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`DatabaseRow::read`].
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self { oid: fields.oid("oid")?, name: fields.name("rolname")? })
    }
}
