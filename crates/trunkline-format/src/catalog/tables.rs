//! The catalogs that we know by heart, with their columns in all versions.
//!
//! Taken from what servers of each version say of themselves in `pg_attribute`.

use super::layout::{CatalogColumn, CatalogTable};
use crate::align::Align;
use crate::control::PgVersion::{self, V15, V16, V17, V18, V19};
use crate::ids::Oid;

/// The size of a name, padded with zeros.
pub const NAME_SIZE: usize = 64;

const fn column(name: &'static str, len: i16, align: Align, fixed: bool) -> CatalogColumn {
    CatalogColumn { name, len, align, fixed, since: V15, until: V19 }
}

/// `oid`, `int4`, `float4`, `xid`, `regproc`.
const fn word(name: &'static str) -> CatalogColumn {
    column(name, 4, Align::Int, true)
}

const fn short(name: &'static str) -> CatalogColumn {
    column(name, 2, Align::Short, true)
}

/// `bool`, `"char"`.
const fn byte(name: &'static str) -> CatalogColumn {
    column(name, 1, Align::Char, true)
}

/// `int8`, `timestamptz`.
const fn double(name: &'static str) -> CatalogColumn {
    column(name, 8, Align::Double, true)
}

const fn name(name: &'static str) -> CatalogColumn {
    column(name, NAME_SIZE as i16, Align::Char, true)
}

const fn varying(name: &'static str) -> CatalogColumn {
    column(name, -1, Align::Int, false)
}

/// `aclitem[]` from 16, `anyarray`.
const fn varying8(name: &'static str) -> CatalogColumn {
    column(name, -1, Align::Double, false)
}

impl CatalogColumn {
    const fn nullable(self) -> Self {
        Self { fixed: false, ..self }
    }

    const fn since(self, since: PgVersion) -> Self {
        Self { since, ..self }
    }

    const fn until(self, until: PgVersion) -> Self {
        Self { until, ..self }
    }
}

/// Relations of every kind.
pub static PG_CLASS: CatalogTable = CatalogTable {
    name: "pg_class",
    oid: Oid(1259),
    shared: false,
    mapped: true,
    open: false,
    columns: &[
        word("oid"),
        name("relname"),
        word("relnamespace"),
        word("reltype"),
        word("reloftype"),
        word("relowner"),
        word("relam"),
        word("relfilenode"),
        word("reltablespace"),
        word("relpages"),
        word("reltuples"),
        word("relallvisible"),
        word("relallfrozen").since(V18),
        word("reltoastrelid"),
        byte("relhasindex"),
        byte("relisshared"),
        byte("relpersistence"),
        byte("relkind"),
        short("relnatts"),
        short("relchecks"),
        byte("relhasrules"),
        byte("relhastriggers"),
        byte("relhassubclass"),
        byte("relrowsecurity"),
        byte("relforcerowsecurity"),
        byte("relispopulated"),
        byte("relreplident"),
        byte("relispartition"),
        word("relrewrite"),
        word("relfrozenxid"),
        word("relminmxid"),
        varying8("relacl").since(V16),
        varying("relacl").until(V15),
        varying("reloptions"),
        varying("relpartbound"),
    ],
};

/// Columns.
pub static PG_ATTRIBUTE: CatalogTable = CatalogTable {
    name: "pg_attribute",
    oid: Oid(1249),
    shared: false,
    mapped: true,
    open: false,
    columns: &[
        word("attrelid"),
        name("attname"),
        word("atttypid"),
        word("attstattarget").until(V15),
        short("attlen"),
        short("attnum"),
        word("attndims").until(V15),
        word("attcacheoff").until(V17),
        word("atttypmod"),
        short("attndims").since(V16),
        byte("attbyval"),
        byte("attalign"),
        byte("attstorage"),
        byte("attcompression"),
        byte("attnotnull"),
        byte("atthasdef"),
        byte("atthasmissing"),
        byte("attidentity"),
        byte("attgenerated"),
        byte("attisdropped"),
        byte("attislocal"),
        short("attinhcount").since(V16),
        short("attstattarget").since(V16).until(V16),
        word("attinhcount").until(V15),
        word("attcollation"),
        short("attstattarget").nullable().since(V17),
        varying8("attacl").since(V16),
        varying("attacl").until(V15),
        varying("attoptions"),
        varying("attfdwoptions"),
        varying8("attmissingval"),
    ],
};

/// Databases.
pub static PG_DATABASE: CatalogTable = CatalogTable {
    name: "pg_database",
    oid: Oid(1262),
    shared: true,
    mapped: true,
    open: false,
    columns: &[
        word("oid"),
        name("datname"),
        word("datdba"),
        word("encoding"),
        byte("datlocprovider"),
        byte("datistemplate"),
        byte("datallowconn"),
        byte("dathasloginevt").since(V17),
        word("datconnlimit"),
        word("datfrozenxid"),
        word("datminmxid"),
        word("dattablespace"),
        varying("datcollate"),
        varying("datctype"),
        varying("datlocale").since(V17),
        varying("daticulocale").until(V16),
        varying("daticurules").since(V16),
        varying("datcollversion"),
        varying8("datacl").since(V16),
        varying("datacl").until(V15),
    ],
};

/// Types.
pub static PG_TYPE: CatalogTable = CatalogTable {
    name: "pg_type",
    oid: Oid(1247),
    shared: false,
    mapped: true,
    open: false,
    columns: &[
        word("oid"),
        name("typname"),
        word("typnamespace"),
        word("typowner"),
        short("typlen"),
        byte("typbyval"),
        byte("typtype"),
        byte("typcategory"),
        byte("typispreferred"),
        byte("typisdefined"),
        byte("typdelim"),
        word("typrelid"),
        word("typsubscript"),
        word("typelem"),
        word("typarray"),
        word("typinput"),
        word("typoutput"),
        word("typreceive"),
        word("typsend"),
        word("typmodin"),
        word("typmodout"),
        word("typanalyze"),
        byte("typalign"),
        byte("typstorage"),
        byte("typnotnull"),
        word("typbasetype"),
        word("typtypmod"),
        word("typndims"),
        word("typcollation"),
        varying("typdefaultbin"),
        varying("typdefault"),
        varying8("typacl").since(V16),
        varying("typacl").until(V15),
    ],
};

/// Schemas.
pub static PG_NAMESPACE: CatalogTable = CatalogTable {
    name: "pg_namespace",
    oid: Oid(2615),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("oid"),
        name("nspname"),
        word("nspowner"),
        varying8("nspacl").since(V16),
        varying("nspacl").until(V15),
    ],
};

/// Tablespaces.
pub static PG_TABLESPACE: CatalogTable = CatalogTable {
    name: "pg_tablespace",
    oid: Oid(1213),
    shared: true,
    mapped: true,
    open: false,
    columns: &[
        word("oid"),
        name("spcname"),
        word("spcowner"),
        varying8("spcacl").since(V16),
        varying("spcacl").until(V15),
        varying("spcoptions"),
    ],
};

/// Access methods.
pub static PG_AM: CatalogTable = CatalogTable {
    name: "pg_am",
    oid: Oid(2601),
    shared: false,
    mapped: false,
    open: false,
    columns: &[word("oid"), name("amname"), word("amhandler"), byte("amtype")],
};

/// Partitions and children.
pub static PG_INHERITS: CatalogTable = CatalogTable {
    name: "pg_inherits",
    oid: Oid(2611),
    shared: false,
    mapped: false,
    open: false,
    columns: &[word("inhrelid"), word("inhparent"), word("inhseqno"), byte("inhdetachpending")],
};

/// Indexes.
pub static PG_INDEX: CatalogTable = CatalogTable {
    name: "pg_index",
    oid: Oid(2610),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("indexrelid"),
        word("indrelid"),
        short("indnatts"),
        short("indnkeyatts"),
        byte("indisunique"),
        byte("indnullsnotdistinct"),
        byte("indisprimary"),
        byte("indisexclusion"),
        byte("indimmediate"),
        byte("indisclustered"),
        byte("indisvalid"),
        byte("indcheckxmin"),
        byte("indisready"),
        byte("indislive"),
        byte("indisreplident"),
        varying("indkey"),
        varying("indcollation"),
        varying("indclass"),
        varying("indoption"),
        varying("indexprs"),
        varying("indpred"),
    ],
};

/// Labels of enums.
pub static PG_ENUM: CatalogTable = CatalogTable {
    name: "pg_enum",
    oid: Oid(3501),
    shared: false,
    mapped: false,
    open: false,
    columns: &[word("oid"), word("enumtypid"), word("enumsortorder"), name("enumlabel")],
};

/// Ranges.
pub static PG_RANGE: CatalogTable = CatalogTable {
    name: "pg_range",
    oid: Oid(3541),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("rngtypid"),
        word("rngsubtype"),
        word("rngmultitypid"),
        word("rngcollation"),
        word("rngsubopc"),
        word("rngconstruct2").since(V19),
        word("rngconstruct3").since(V19),
        word("rngmltconstruct0").since(V19),
        word("rngmltconstruct1").since(V19),
        word("rngmltconstruct2").since(V19),
        word("rngcanonical"),
        word("rngsubdiff"),
    ],
};

/// Options of sequences.
pub static PG_SEQUENCE: CatalogTable = CatalogTable {
    name: "pg_sequence",
    oid: Oid(2224),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("seqrelid"),
        word("seqtypid"),
        double("seqstart"),
        double("seqincrement"),
        double("seqmax"),
        double("seqmin"),
        double("seqcache"),
        byte("seqcycle"),
    ],
};

/// Roles.
pub static PG_AUTHID: CatalogTable = CatalogTable {
    name: "pg_authid",
    oid: Oid(1260),
    shared: true,
    mapped: true,
    open: false,
    columns: &[
        word("oid"),
        name("rolname"),
        byte("rolsuper"),
        byte("rolinherit"),
        byte("rolcreaterole"),
        byte("rolcreatedb"),
        byte("rolcanlogin"),
        byte("rolreplication"),
        byte("rolbypassrls"),
        word("rolconnlimit"),
        varying("rolpassword"),
        double("rolvaliduntil").nullable(),
    ],
};

/// Settings of databases and roles.
pub static PG_DB_ROLE_SETTING: CatalogTable = CatalogTable {
    name: "pg_db_role_setting",
    oid: Oid(2964),
    shared: true,
    mapped: true,
    open: false,
    columns: &[word("setdatabase"), word("setrole"), varying("setconfig")],
};

/// Operator classes.
pub static PG_OPCLASS: CatalogTable = CatalogTable {
    name: "pg_opclass",
    oid: Oid(2616),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("oid"),
        word("opcmethod"),
        name("opcname"),
        word("opcnamespace"),
        word("opcowner"),
        word("opcfamily"),
        word("opcintype"),
        byte("opcdefault"),
        word("opckeytype"),
    ],
};

/// Collations.
pub static PG_COLLATION: CatalogTable = CatalogTable {
    name: "pg_collation",
    oid: Oid(3456),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("oid"),
        name("collname"),
        word("collnamespace"),
        word("collowner"),
        byte("collprovider"),
        byte("collisdeterministic"),
        word("collencoding"),
        varying("collcollate"),
        varying("collctype"),
        varying("colllocale").since(V17),
        varying("colliculocale").until(V16),
        varying("collicurules").since(V16),
        varying("collversion"),
    ],
};

/// Functions and procedures, as far as their signatures.
pub static PG_PROC: CatalogTable = CatalogTable {
    name: "pg_proc",
    oid: Oid(1255),
    shared: false,
    mapped: true,
    open: true,
    columns: &[
        word("oid"),
        name("proname"),
        word("pronamespace"),
        word("proowner"),
        word("prolang"),
        word("procost"),
        word("prorows"),
        word("provariadic"),
        word("prosupport"),
        byte("prokind"),
        byte("prosecdef"),
        byte("proleakproof"),
        byte("proisstrict"),
        byte("proretset"),
        byte("provolatile"),
        byte("proparallel"),
        short("pronargs"),
        short("pronargdefaults"),
        word("prorettype"),
        varying("proargtypes"),
    ],
};

/// Operators.
pub static PG_OPERATOR: CatalogTable = CatalogTable {
    name: "pg_operator",
    oid: Oid(2617),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("oid"),
        name("oprname"),
        word("oprnamespace"),
        word("oprowner"),
        byte("oprkind"),
        byte("oprcanmerge"),
        byte("oprcanhash"),
        word("oprleft"),
        word("oprright"),
        word("oprresult"),
        word("oprcom"),
        word("oprnegate"),
        word("oprcode"),
        word("oprrest"),
        word("oprjoin"),
    ],
};

/// Configurations of text search.
pub static PG_TS_CONFIG: CatalogTable = CatalogTable {
    name: "pg_ts_config",
    oid: Oid(3602),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("oid"),
        name("cfgname"),
        word("cfgnamespace"),
        word("cfgowner"),
        word("cfgparser"),
    ],
};

/// Dictionaries of text search.
pub static PG_TS_DICT: CatalogTable = CatalogTable {
    name: "pg_ts_dict",
    oid: Oid(3600),
    shared: false,
    mapped: false,
    open: false,
    columns: &[
        word("oid"),
        name("dictname"),
        word("dictnamespace"),
        word("dictowner"),
        word("dicttemplate"),
        varying("dictinitoption"),
    ],
};
