//! Catalogs that are found as any other table, by their rows in `pg_class`.
//!
//! Taken from what servers of each version say of themselves in `pg_attribute`.

use super::columns::{byte, double, name, short, varying, varying8, word};
use super::layout::CatalogTable;
use crate::control::PgVersion::{V15, V16, V17, V19};
use crate::ids::Oid;

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
