//! Catalogs of data types, collations and text search objects.
//!
//! Names are in the database's encoding.

use super::describe::describe_catalog;
use super::tuple::{CatalogTuple, RowError};
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
        /// `typbyval`: whether the server passes values by value.
        by_value: bool = typbyval,
        /// `typtype`: `b` base, `c` composite, `d` domain, `e` enum, `m` multirange, `p` pseudo,
        /// `r` range.
        kind: u8 = typtype,
        /// `typcategory`: which types are alternatives when a function or operator is chosen, such as
        /// `N` for numbers and `S` for strings.
        category: u8 = typcategory,
        /// `typispreferred`: whether it is a type of its category that values are best converted to.
        preferred: bool = typispreferred,
        /// `typisdefined`: false for a shell type, which is declared but not yet defined.
        defined: bool = typisdefined,
        /// `typdelim`: the separator between elements of an array of this type.
        delimiter: u8 = typdelim,
        /// `typrelid`: the relation with a composite type's columns; otherwise 0.
        relation: Oid = typrelid,
        /// `typsubscript`: the function that subscripts values; 0 if they cannot be subscripted.
        subscript: Oid = typsubscript,
        /// `typelem`: the element type; 0 if the type cannot be subscripted.
        element: Oid = typelem,
        /// `typarray`: the array type whose element type this is; 0 if there is none.
        array: Oid = typarray,
        /// `typinput`: the input function.
        input: Oid = typinput,
        /// `typoutput`: the output function. OID 751 (`array_out`) identifies an array type.
        output: Oid = typoutput,
        /// `typreceive`: the binary input function; 0 if there is none.
        receive: Oid = typreceive,
        /// `typsend`: the binary output function; 0 if there is none.
        send: Oid = typsend,
        /// `typmodin`: the function that reads a type modifier; 0 if the type has none.
        modifier_in: Oid = typmodin,
        /// `typmodout`: the function that prints a type modifier; 0 if it is printed as a number.
        modifier_out: Oid = typmodout,
        /// `typalign`.
        align: Align = typalign,
        /// `typnotnull`: whether a domain has a `NOT NULL` constraint.
        not_null: bool = typnotnull,
        /// `typbasetype`: a domain's base type; otherwise 0.
        base: Oid = typbasetype,
        /// `typtypmod`: the modifier of a domain's base type; otherwise -1.
        base_modifier: i32 = typtypmod,
        /// `typndims`: the declared dimensions of a domain over an array; otherwise 0.
        dimensions: i32 = typndims,
        /// `typcollation`: the default collation of values; 0 if the type isn't collatable.
        collation: Oid = typcollation,
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
    /// A row of `pg_collation`.
    row CollationRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = collname,
        /// The OID of its schema.
        schema: Oid = collnamespace,
        /// `collprovider`: `b` builtin, `c` libc, `d` the database's default, `i` ICU.
        provider: u8 = collprovider,
        /// `collisdeterministic`: whether strings are equal only if their bytes are.
        deterministic: bool = collisdeterministic,
        /// `collencoding`: the encoding that it works with; -1 for any.
        encoding: i32 = collencoding,
        /// `LC_COLLATE` of a collation of libc.
        lc_collate: Option<Box<[u8]>>,
        /// The locale of a collation of ICU, or of one that is built into the server.
        locale: Option<Box<[u8]>>,
    }
    finish read_locale
}

impl CollationRow {
    /// Reads the columns that can be null. PostgreSQL 17 renamed `colliculocale`.
    fn read_locale(mut self, tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        let is_renamed = tuple.columns().iter().any(|column| column.name == "colllocale");
        self.lc_collate = tuple.text_or_null("collcollate")?;
        self.locale =
            tuple.text_or_null(if is_renamed { "colllocale" } else { "colliculocale" })?;
        Ok(self)
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
    /// A row of `pg_ts_config`.
    row TextSearchConfigRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = cfgname,
        /// The OID of its schema.
        schema: Oid = cfgnamespace,
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
    /// A row of `pg_ts_dict`.
    row TextSearchDictionaryRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = dictname,
        /// The OID of its schema.
        schema: Oid = dictnamespace,
    }
}
