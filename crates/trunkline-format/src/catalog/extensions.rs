//! Catalogs of what extends a database: extensions, and the wrappers and servers of foreign data.

use super::describe::describe_catalog;
use crate::ids::Oid;

describe_catalog! {
    /// Extensions (`catalog/pg_extension.h`).
    PG_EXTENSION = "pg_extension", 3079;
    index "pg_extension_oid_index", 3080;
    columns {
        oid: Oid,
        extname: Name,
        extowner: Oid,
        extnamespace: Oid,
        extrelocatable: Bool,
        extversion: Text,
        extconfig: OidArray,
        extcondition: TextArray,
    }
    /// A row of `pg_extension`.
    row ExtensionRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = extname,
        /// The OID of the schema of its objects.
        schema: Oid = extnamespace,
        /// Whether its objects can be moved to another schema.
        relocatable: bool = extrelocatable,
        /// Its version.
        version: Box<[u8]> = extversion,
    }
}

describe_catalog! {
    /// Foreign-data wrappers (`catalog/pg_foreign_data_wrapper.h`).
    PG_FOREIGN_DATA_WRAPPER = "pg_foreign_data_wrapper", 2328;
    index "pg_foreign_data_wrapper_oid_index", 112;
    columns {
        oid: Oid,
        fdwname: Name,
        fdwowner: Oid,
        fdwhandler: Oid,
        fdwvalidator: Oid,
        fdwconnection: Oid.since(V19),
        fdwacl: AclItemArray,
        fdwoptions: TextArray,
    }
    /// A row of `pg_foreign_data_wrapper`.
    row ForeignDataWrapperRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = fdwname,
    }
}

describe_catalog! {
    /// Foreign servers (`catalog/pg_foreign_server.h`).
    PG_FOREIGN_SERVER = "pg_foreign_server", 1417;
    index "pg_foreign_server_oid_index", 113;
    columns {
        oid: Oid,
        srvname: Name,
        srvowner: Oid,
        srvfdw: Oid,
        srvtype: Text,
        srvversion: Text,
        srvacl: AclItemArray,
        srvoptions: TextArray,
    }
    /// A row of `pg_foreign_server`.
    row ForeignServerRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = srvname,
    }
}
