//! Catalogs of data types, and of the functions and operators that values can refer to.
//!
//! Names are in the database's encoding.

use super::describe::describe_catalog;
use crate::align::Align;
use crate::ids::Oid;

describe_catalog! {
    /// Types (`catalog/pg_type.h`).
    PG_TYPE = "pg_type", 1247, mapped;
    index "pg_type_oid_index", 2703;
    columns {
        oid: Oid,
        typname: Name,
        typnamespace: Oid,
        typowner: Oid,
        typlen: Int2,
        typbyval: Bool,
        typtype: Char,
        typcategory: Char,
        typispreferred: Bool,
        typisdefined: Bool,
        typdelim: Char,
        typrelid: Oid,
        typsubscript: Regproc,
        typelem: Oid,
        typarray: Oid,
        typinput: Regproc,
        typoutput: Regproc,
        typreceive: Regproc,
        typsend: Regproc,
        typmodin: Regproc,
        typmodout: Regproc,
        typanalyze: Regproc,
        typalign: Char,
        typstorage: Char,
        typnotnull: Bool,
        typbasetype: Oid,
        typtypmod: Int4,
        typndims: Int4,
        typcollation: Oid,
        typdefaultbin: PgNodeTree,
        typdefault: Text,
        typacl: AclItemArray,
    }
    /// A row of `pg_type`.
    row TypeRow {
        /// `oid`.
        oid: Oid = oid,
        /// `typname`, in the encoding of the database.
        name: Box<[u8]> = typname,
        /// `typnamespace`.
        schema: Oid = typnamespace,
        /// `typlen`: bytes; -1 with a varlena header, -2 for a C string.
        len: i16 = typlen,
        /// `typtype`: `b` base, `c` composite, `d` domain, `e` enum, `m` multirange, `p` pseudo,
        /// `r` range.
        kind: u8 = typtype,
        /// `typdelim`: the separator between elements of an array of this type.
        delimiter: u8 = typdelim,
        /// `typrelid`: the relation with a composite type's columns; otherwise 0.
        relation: Oid = typrelid,
        /// `typelem`: the element type; 0 if the type cannot be subscripted.
        element: Oid = typelem,
        /// `typoutput`: the output function. OID 751 (`array_out`) identifies an array type.
        output: Oid = typoutput,
        /// `typalign`.
        align: Align = typalign,
        /// `typbasetype`: a domain's base type; otherwise 0.
        base: Oid = typbasetype,
        /// `typtypmod`: the modifier of a domain's base type; otherwise -1.
        base_modifier: i32 = typtypmod,
    }
}

impl TypeRow {
    /// Whether the type is a true array (`IsTrueArrayType`). `int2vector` and `oidvector` also have
    /// an element type, but aren't printed as `type[]`.
    pub fn is_array(&self) -> bool {
        /// `array_out`.
        const ARRAY_OUT: Oid = Oid(751);
        self.element != Oid(0) && self.len == -1 && self.output == ARRAY_OUT
    }
}

describe_catalog! {
    /// Labels of enums (`catalog/pg_enum.h`).
    PG_ENUM = "pg_enum", 3501;
    index "pg_enum_oid_index", 3502;
    columns {
        oid: Oid,
        enumtypid: Oid,
        enumsortorder: Float4,
        enumlabel: Name,
    }
    /// A row of `pg_enum`: one label.
    row EnumRow {
        /// The OID stored in values.
        oid: Oid = oid,
        /// The OID of the enum.
        enum_type: Oid = enumtypid,
        /// `enumsortorder`: its place among the labels. It can be a fraction if the label was added
        /// later.
        order: f32 = enumsortorder,
        /// The label.
        label: Box<[u8]> = enumlabel,
    }
}

describe_catalog! {
    /// Range types (`catalog/pg_range.h`).
    PG_RANGE = "pg_range", 3541;
    index "pg_range_rngtypid_index", 3542;
    columns {
        rngtypid: Oid,
        rngsubtype: Oid,
        rngmultitypid: Oid,
        rngcollation: Oid,
        rngsubopc: Oid,
        rngconstruct2: Regproc.since(V19),
        rngconstruct3: Regproc.since(V19),
        rngmltconstruct0: Regproc.since(V19),
        rngmltconstruct1: Regproc.since(V19),
        rngmltconstruct2: Regproc.since(V19),
        rngcanonical: Regproc,
        rngsubdiff: Regproc,
    }
    /// A row of `pg_range`.
    row RangeRow {
        /// The OID of the range type.
        range: Oid = rngtypid,
        /// The OID of the subtype, the type of the range's bounds.
        subtype: Oid = rngsubtype,
        /// The OID of its multirange type.
        multirange: Oid = rngmultitypid,
    }
}

describe_catalog! {
    /// Functions and procedures (`catalog/pg_proc.h`), up to the last column that we read.
    PG_PROC = "pg_proc", 1255, mapped, open;
    index "pg_proc_oid_index", 2690;
    columns {
        oid: Oid,
        proname: Name,
        pronamespace: Oid,
        proowner: Oid,
        prolang: Oid,
        procost: Float4,
        prorows: Float4,
        provariadic: Oid,
        prosupport: Regproc,
        prokind: Char,
        prosecdef: Bool,
        proleakproof: Bool,
        proisstrict: Bool,
        proretset: Bool,
        provolatile: Char,
        proparallel: Char,
        pronargs: Int2,
        pronargdefaults: Int2,
        prorettype: Oid,
        proargtypes: OidVector,
        proallargtypes: OidArray,
        proargmodes: CharArray,
        proargnames: TextArray,
        proargdefaults: PgNodeTree,
        protrftypes: OidArray,
        prosrc: Text,
    }
}

describe_catalog! {
    /// Operators (`catalog/pg_operator.h`).
    PG_OPERATOR = "pg_operator", 2617;
    index "pg_operator_oid_index", 2688;
    columns {
        oid: Oid,
        oprname: Name,
        oprnamespace: Oid,
        oprowner: Oid,
        oprkind: Char,
        oprcanmerge: Bool,
        oprcanhash: Bool,
        oprleft: Oid,
        oprright: Oid,
        oprresult: Oid,
        oprcom: Oid,
        oprnegate: Oid,
        oprcode: Regproc,
        oprrest: Regproc,
        oprjoin: Regproc,
    }
}

describe_catalog! {
    /// Collations (`catalog/pg_collation.h`).
    PG_COLLATION = "pg_collation", 3456;
    index "pg_collation_oid_index", 3085;
    columns {
        oid: Oid,
        collname: Name,
        collnamespace: Oid,
        collowner: Oid,
        collprovider: Char,
        collisdeterministic: Bool,
        collencoding: Int4,
        collcollate: Text,
        collctype: Text,
        colllocale: Text.since(V17),
        colliculocale: Text.until(V16),
        collicurules: Text.since(V16),
        collversion: Text,
    }
}

describe_catalog! {
    /// Text search configurations (`catalog/pg_ts_config.h`).
    PG_TS_CONFIG = "pg_ts_config", 3602;
    index "pg_ts_config_oid_index", 3712;
    columns {
        oid: Oid,
        cfgname: Name,
        cfgnamespace: Oid,
        cfgowner: Oid,
        cfgparser: Oid,
    }
}

describe_catalog! {
    /// Text search dictionaries (`catalog/pg_ts_dict.h`).
    PG_TS_DICT = "pg_ts_dict", 3600;
    index "pg_ts_dict_oid_index", 3605;
    columns {
        oid: Oid,
        dictname: Name,
        dictnamespace: Oid,
        dictowner: Oid,
        dicttemplate: Oid,
        dictinitoption: Text,
    }
}
