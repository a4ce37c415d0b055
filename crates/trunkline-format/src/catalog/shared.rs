//! Catalogs that all databases of a cluster share: databases, tablespaces, roles, their settings.
//!
//! Names in them are in no particular encoding: each database can have another one, and the server
//! does not convert names of shared objects.

use super::describe::describe_catalog;
use super::tuple::{CatalogTuple, RowError};
use crate::ids::Oid;

describe_catalog! {
    /// Databases (`catalog/pg_database.h`).
    PG_DATABASE = "pg_database", 1262, shared, mapped;
    columns {
        oid: Oid,
        datname: Name,
        datdba: Oid,
        encoding: Int4,
        datlocprovider: Char,
        datistemplate: Bool,
        datallowconn: Bool,
        dathasloginevt: Bool.since(V17),
        datconnlimit: Int4,
        datfrozenxid: Xid,
        datminmxid: Xid,
        dattablespace: Oid,
        datcollate: Text,
        datctype: Text,
        datlocale: Text.since(V17),
        daticulocale: Text.until(V16),
        daticurules: Text.since(V16),
        datcollversion: Text,
        datacl: AclItemArray,
    }
    /// A row of `pg_database`.
    row DatabaseRow {
        /// Its OID: the name of its directory.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = datname,
        /// The encoding of its text: 6 is UTF-8, 0 is SQL_ASCII.
        encoding: i32 = encoding,
        /// The provider of the default collation: `b` builtin, `c` libc, `i` ICU.
        provider: u8 = datlocprovider,
        /// Whether `CREATE DATABASE` may copy it.
        is_template: bool = datistemplate,
        /// Whether a server accepts connections to it.
        allows_connections: bool = datallowconn,
        /// The most connections; -1 without a limit, -2 after an interrupted `DROP DATABASE`.
        connection_limit: i32 = datconnlimit,
        /// Its default tablespace.
        tablespace: Oid = dattablespace,
        /// The collation's name for libc, such as `C` or `de_DE.UTF-8`.
        collate: Box<[u8]> = datcollate,
    }
}

impl DatabaseRow {
    /// Whether the default collation sorts text by its bytes, so that the order of text does not
    /// depend on a library of the machine.
    pub fn sorts_by_bytes(&self) -> bool {
        match self.provider {
            b'b' => true,
            b'c' => matches!(&*self.collate, b"C" | b"POSIX"),
            _ => false,
        }
    }

    /// Whether `DROP DATABASE` was interrupted (`DATCONNLIMIT_INVALID_DB`): files may be gone.
    pub fn is_invalid(&self) -> bool {
        self.connection_limit == -2
    }
}

describe_catalog! {
    /// Tablespaces (`catalog/pg_tablespace.h`).
    PG_TABLESPACE = "pg_tablespace", 1213, shared, mapped;
    columns {
        oid: Oid,
        spcname: Name,
        spcowner: Oid,
        spcacl: AclItemArray,
        spcoptions: TextArray,
    }
    /// A row of `pg_tablespace`.
    row TablespaceRow {
        /// Its OID: the name of its link in `pg_tblspc`.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = spcname,
    }
}

describe_catalog! {
    /// Roles (`catalog/pg_authid.h`).
    PG_AUTHID = "pg_authid", 1260, shared, mapped;
    columns {
        oid: Oid,
        rolname: Name,
        rolsuper: Bool,
        rolinherit: Bool,
        rolcreaterole: Bool,
        rolcreatedb: Bool,
        rolcanlogin: Bool,
        rolreplication: Bool,
        rolbypassrls: Bool,
        rolconnlimit: Int4,
        rolpassword: Text,
        rolvaliduntil: Timestamptz.nullable(),
    }
}

describe_catalog! {
    /// What `ALTER DATABASE … SET` and `ALTER ROLE … SET` store
    /// (`catalog/pg_db_role_setting.h`).
    PG_DB_ROLE_SETTING = "pg_db_role_setting", 2964, shared, mapped;
    columns {
        setdatabase: Oid,
        setrole: Oid,
        setconfig: TextArray,
    }
    /// A row of `pg_db_role_setting`: settings that sessions start with.
    row RoleSettingRow {
        /// The database that they are for; 0: any.
        database: Oid = setdatabase,
        /// The role that they are for; 0: any.
        role: Oid = setrole,
        /// The settings as they are stored, perhaps compressed or in TOAST. [`super::settings_of`]
        /// takes them apart once they are plain.
        settings: Box<[u8]>,
    }
    finish read_settings
}

impl RoleSettingRow {
    fn read_settings(mut self, tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        self.settings = tuple.stored("setconfig")?.unwrap_or_default().into();
        Ok(self)
    }
}
