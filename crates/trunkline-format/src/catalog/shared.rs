//! Catalogs shared by all databases of a cluster: databases, tablespaces, roles, and their
//! settings.
//!
//! We don't know the encoding of the names in these catalogs. Each database can use a different
//! encoding, and the server stores the name of a shared object in the encoding of whichever
//! database the object was created from.

use super::describe::describe_catalog;
use super::tuple::{CatalogTuple, RowError};
use crate::ids::Oid;

describe_catalog! {
    /// Databases (`catalog/pg_database.h`).
    PG_DATABASE = "pg_database", 1262, shared, mapped;
    index "pg_database_oid_index", 2672;
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
        /// Its OID, which is also its directory's name.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = datname,
        /// Its encoding: 6 is UTF-8, 0 is SQL_ASCII.
        encoding: i32 = encoding,
        /// The default collation's provider: `b` builtin, `c` libc, `i` ICU.
        provider: u8 = datlocprovider,
        /// `datistemplate`: whether any role with `CREATEDB` may copy it.
        is_template: bool = datistemplate,
        /// `datallowconn`: whether the server accepts connections to it.
        allows_connections: bool = datallowconn,
        /// `datconnlimit`: the maximum number of connections. -1 means that there is no limit, and
        /// -2 means that `DROP DATABASE` was interrupted.
        connection_limit: i32 = datconnlimit,
        /// Its default tablespace.
        tablespace: Oid = dattablespace,
        /// The default collation's libc locale, such as `C` or `de_DE.UTF-8`.
        collate: Box<[u8]> = datcollate,
    }
}

impl DatabaseRow {
    /// Returns true if the default collation compares text byte by byte, in which case the sort
    /// order doesn't depend on the libc or ICU version installed on the machine.
    pub fn sorts_by_bytes(&self) -> bool {
        match self.provider {
            b'b' => true,
            b'c' => matches!(&*self.collate, b"C" | b"POSIX"),
            _ => false,
        }
    }

    /// Returns true if `DROP DATABASE` was interrupted (`DATCONNLIMIT_INVALID_DB`), in which case
    /// some of the database's files may already have been removed.
    pub fn is_invalid(&self) -> bool {
        self.connection_limit == -2
    }
}

describe_catalog! {
    /// Tablespaces (`catalog/pg_tablespace.h`).
    PG_TABLESPACE = "pg_tablespace", 1213, shared, mapped;
    index "pg_tablespace_oid_index", 2697;
    columns {
        oid: Oid,
        spcname: Name,
        spcowner: Oid,
        spcacl: AclItemArray,
        spcoptions: TextArray,
    }
    /// A row of `pg_tablespace`.
    row TablespaceRow {
        /// Its OID, which is also the name of its symlink in `pg_tblspc`.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = spcname,
    }
}

describe_catalog! {
    /// Roles (`catalog/pg_authid.h`).
    PG_AUTHID = "pg_authid", 1260, shared, mapped;
    index "pg_authid_oid_index", 2677;
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
    /// A row of `pg_authid`: a role.
    row RoleRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = rolname,
        /// Whether it is a superuser.
        superuser: bool = rolsuper,
    }
}

describe_catalog! {
    /// Settings stored by `ALTER DATABASE … SET` and `ALTER ROLE … SET`
    /// (`catalog/pg_db_role_setting.h`).
    PG_DB_ROLE_SETTING = "pg_db_role_setting", 2964, shared, mapped;
    index "pg_db_role_setting_databaseid_rol_index", 2965;
    columns {
        setdatabase: Oid,
        setrole: Oid,
        setconfig: TextArray,
    }
    /// A row of `pg_db_role_setting`: initial settings for sessions.
    row RoleSettingRow {
        /// The database the settings apply to; 0 means all databases.
        database: Oid = setdatabase,
        /// The role the settings apply to; 0 means all roles.
        role: Oid = setrole,
        /// The settings as they are stored, which means that they may be compressed or stored out
        /// of line. After detoasting them, call [`super::settings_of`] to split them.
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
