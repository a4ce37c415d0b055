//! OIDs of built-in objects to which the rules of SQL refer. They are the same in every database.
//!
//! ```
//! use trunkline_sql::catalog::oids;
//! assert_eq!(oids::INT4.0, 23);
//! assert!(oids::is_polymorphic(oids::ANYARRAY));
//! ```

use trunkline_format::Oid;

macro_rules! oids {
    ($($name:ident = $oid:literal;)*) => {
        $(#[doc = concat!("`pg_type.oid` ", stringify!($oid), ".")] pub const $name: Oid = Oid($oid);)*
    };
}

oids! {
    BOOL = 16;
    BYTEA = 17;
    CHAR = 18;
    NAME = 19;
    INT8 = 20;
    INT2 = 21;
    INT2VECTOR = 22;
    INT4 = 23;
    REGPROC = 24;
    TEXT = 25;
    OID = 26;
    TID = 27;
    XID = 28;
    CID = 29;
    OIDVECTOR = 30;
    JSON = 114;
    JSONB = 3802;
    FLOAT4 = 700;
    FLOAT8 = 701;
    UNKNOWN = 705;
    INT2ARRAY = 1005;
    TEXTARRAY = 1009;
    OIDARRAY = 1028;
    BPCHAR = 1042;
    VARCHAR = 1043;
    DATE = 1082;
    TIME = 1083;
    TIMESTAMP = 1114;
    TIMESTAMPTZ = 1184;
    INTERVAL = 1186;
    TIMETZ = 1266;
    BIT = 1560;
    VARBIT = 1562;
    NUMERIC = 1700;
    REGCLASS = 2205;
    REGTYPE = 2206;
    RECORD = 2249;
    CSTRING = 2275;
    ANY = 2276;
    ANYARRAY = 2277;
    VOID = 2278;
    ANYELEMENT = 2283;
    RECORDARRAY = 2287;
    ANYNONARRAY = 2776;
    ANYENUM = 3500;
    ANYRANGE = 3831;
    ANYMULTIRANGE = 4537;
    ANYCOMPATIBLEMULTIRANGE = 4538;
    ANYCOMPATIBLE = 5077;
    ANYCOMPATIBLEARRAY = 5078;
    ANYCOMPATIBLENONARRAY = 5079;
    ANYCOMPATIBLERANGE = 5080;
}

/// No object (`InvalidOid`).
pub const NONE: Oid = Oid(0);

/// The schema `pg_catalog`.
pub const PG_CATALOG: Oid = Oid(11);

/// The access method `btree`.
pub const BTREE: Oid = Oid(403);

/// The access method `hash`.
pub const HASH: Oid = Oid(405);

/// `DEFAULT_COLLATION_OID`: the collation of the database.
pub const DEFAULT_COLLATION: Oid = Oid(100);

/// Whether a type stands for the types that a call supplies, all of which must be equal
/// (`IsPolymorphicTypeFamily1`).
pub fn is_polymorphic_exact(oid: Oid) -> bool {
    [ANYELEMENT, ANYARRAY, ANYNONARRAY, ANYENUM, ANYRANGE, ANYMULTIRANGE].contains(&oid)
}

/// Whether a type stands for the common type of those that a call supplies
/// (`IsPolymorphicTypeFamily2`).
pub fn is_polymorphic_compatible(oid: Oid) -> bool {
    [
        ANYCOMPATIBLE,
        ANYCOMPATIBLEARRAY,
        ANYCOMPATIBLENONARRAY,
        ANYCOMPATIBLERANGE,
        ANYCOMPATIBLEMULTIRANGE,
    ]
    .contains(&oid)
}

/// Whether a type stands for types that a call supplies (`IsPolymorphicType`).
pub fn is_polymorphic(oid: Oid) -> bool {
    is_polymorphic_exact(oid) || is_polymorphic_compatible(oid)
}
