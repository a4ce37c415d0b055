//! Catalogs about relations: `pg_class`, `pg_attribute`, indexes, partitions, schemas.
//!
//! Names are in the encoding of the database.

use super::codes::{Generated, Persistence, RelationKind};
use super::describe::describe_catalog;
use super::tuple::{CatalogTuple, RowError};
use crate::align::Align;
use crate::ids::Oid;

describe_catalog! {
    /// Relations of every kind (`catalog/pg_class.h`).
    PG_CLASS = "pg_class", 1259, mapped;
    columns {
        oid: Oid,
        relname: Name,
        relnamespace: Oid,
        reltype: Oid,
        reloftype: Oid,
        relowner: Oid,
        relam: Oid,
        relfilenode: Oid,
        reltablespace: Oid,
        relpages: Int4,
        reltuples: Float4,
        relallvisible: Int4,
        relallfrozen: Int4.since(V18),
        reltoastrelid: Oid,
        relhasindex: Bool,
        relisshared: Bool,
        relpersistence: Char,
        relkind: Char,
        relnatts: Int2,
        relchecks: Int2,
        relhasrules: Bool,
        relhastriggers: Bool,
        relhassubclass: Bool,
        relrowsecurity: Bool,
        relforcerowsecurity: Bool,
        relispopulated: Bool,
        relreplident: Char,
        relispartition: Bool,
        relrewrite: Oid,
        relfrozenxid: Xid,
        relminmxid: Xid,
        relacl: AclItemArray,
        reloptions: TextArray,
        relpartbound: PgNodeTree,
    }
    /// A row of `pg_class`.
    row ClassRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = relname,
        /// The OID of its schema.
        schema: Oid = relnamespace,
        /// The OID of the composite type of its rows; 0 if it has none.
        row_type: Oid = reltype,
        /// The OID of its access method; 0 if it has none.
        access_method: Oid = relam,
        /// Its file number; 0 without files, and for mapped catalogs.
        relfilenode: u32 = relfilenode,
        /// The OID of its tablespace; 0 is the database's default.
        tablespace: Oid = reltablespace,
        /// Blocks when `VACUUM` or `ANALYZE` last counted them.
        pages: i32 = relpages,
        /// Live rows when `VACUUM` or `ANALYZE` last estimated them; `None` (-1 on disk) if neither
        /// has run.
        rows: Option<f32>,
        /// The OID of its TOAST table; 0 if it has none.
        toast: Oid = reltoastrelid,
        /// Whether all databases share it.
        shared: bool = relisshared,
        /// Whether it survives a crash.
        persistence: Persistence = relpersistence,
        /// What it is.
        kind: RelationKind = relkind,
        /// Columns in `pg_attribute`, dropped ones included, system columns not.
        column_count: u16 = relnatts,
        /// Whether it holds the result of its query; false only for materialized views.
        populated: bool = relispopulated,
        /// Whether it is a partition.
        is_partition: bool = relispartition,
        /// `relfrozenxid`: no row has an older normal xid; 0 without rows.
        frozen_xid: u32 = relfrozenxid,
        /// `relminmxid`: no row has an older multixact; 0 without rows.
        min_multi: u32 = relminmxid,
    }
    finish read_rows
}

impl ClassRow {
    fn read_rows(mut self, tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        self.rows = Some(tuple.get("reltuples")?).filter(|&rows| rows >= 0.0);
        Ok(self)
    }
}

describe_catalog! {
    /// Columns (`catalog/pg_attribute.h`). Several columns moved and shrank in PostgreSQL 16 to make
    /// the row smaller; `attstattarget` became nullable in 17.
    PG_ATTRIBUTE = "pg_attribute", 1249, mapped;
    columns {
        attrelid: Oid,
        attname: Name,
        atttypid: Oid,
        attstattarget: Int4.until(V15),
        attlen: Int2,
        attnum: Int2,
        attndims: Int4.until(V15),
        attcacheoff: Int4.until(V17),
        atttypmod: Int4,
        attndims: Int2.since(V16),
        attbyval: Bool,
        attalign: Char,
        attstorage: Char,
        attcompression: Char,
        attnotnull: Bool,
        atthasdef: Bool,
        atthasmissing: Bool,
        attidentity: Char,
        attgenerated: Char,
        attisdropped: Bool,
        attislocal: Bool,
        attinhcount: Int2.since(V16),
        attstattarget: Int2.since(V16).until(V16),
        attinhcount: Int4.until(V15),
        attcollation: Oid,
        attstattarget: Int2.nullable().since(V17),
        attacl: AclItemArray,
        attoptions: TextArray,
        attfdwoptions: TextArray,
        attmissingval: AnyArray,
    }
    /// A row of `pg_attribute`.
    row AttributeRow {
        /// The OID of the relation.
        relation: Oid = attrelid,
        /// Its name.
        name: Box<[u8]> = attname,
        /// The OID of its type; 0 if it was dropped.
        type_oid: Oid = atttypid,
        /// `attlen`: bytes; -1 with a varlena header, -2 for a C string.
        len: i16 = attlen,
        /// Its number, from 1; system columns have negative ones.
        number: i16 = attnum,
        /// `atttypmod`, such as a length; -1 if there is none.
        modifier: i32 = atttypmod,
        /// `attalign`.
        align: Align = attalign,
        /// Whether it has a `NOT NULL` constraint.
        not_null: bool = attnotnull,
        /// Whether rows from before it was added have the value in `missing`.
        has_missing: bool = atthasmissing,
        /// Whether it is generated.
        generated: Generated = attgenerated,
        /// Whether it was dropped. Old rows still hold its values, so it keeps its place.
        dropped: bool = attisdropped,
        /// The OID of its collation; 0 if its type has none.
        collation: Oid = attcollation,
        /// `attmissingval` as it is stored: an array of one element.
        missing: Option<Box<[u8]>>,
    }
    finish read_missing
}

impl AttributeRow {
    /// The last column of the row is looked up only where it is in use: it takes deforming the row.
    fn read_missing(mut self, tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        if self.has_missing {
            self.missing = tuple.get("attmissingval")?;
        }
        Ok(self)
    }
}

describe_catalog! {
    /// Indexes (`catalog/pg_index.h`).
    PG_INDEX = "pg_index", 2610;
    columns {
        indexrelid: Oid,
        indrelid: Oid,
        indnatts: Int2,
        indnkeyatts: Int2,
        indisunique: Bool,
        indnullsnotdistinct: Bool,
        indisprimary: Bool,
        indisexclusion: Bool,
        indimmediate: Bool,
        indisclustered: Bool,
        indisvalid: Bool,
        indcheckxmin: Bool,
        indisready: Bool,
        indislive: Bool,
        indisreplident: Bool,
        indkey: Int2Vector,
        indcollation: OidVector,
        indclass: OidVector,
        indoption: Int2Vector,
        indexprs: PgNodeTree,
        indpred: PgNodeTree,
    }
    /// A row of `pg_index`.
    row IndexRow {
        /// The OID of the index.
        index: Oid = indexrelid,
        /// The OID of its table.
        table: Oid = indrelid,
        /// Key columns; those after them come from `INCLUDE`.
        key_count: u16 = indnkeyatts,
        /// Whether it is unique.
        unique: bool = indisunique,
        /// `NULLS NOT DISTINCT`: whether a unique index treats nulls as equal.
        nulls_not_distinct: bool = indnullsnotdistinct,
        /// Whether it implements the primary key.
        primary: bool = indisprimary,
        /// Whether queries may use it.
        valid: bool = indisvalid,
        /// Whether new rows are inserted into it.
        ready: bool = indisready,
        /// False while it is being dropped concurrently.
        live: bool = indislive,
        /// The table's columns by number, `INCLUDE` columns too; 0 for an expression.
        columns: Vec<i16> = indkey,
        /// The collation of each key column; 0 if it has none.
        collations: Vec<Oid> = indcollation,
        /// The operator class of each key column.
        classes: Vec<Oid> = indclass,
        /// `indoption` of each key column: bit 0 `DESC`, bit 1 `NULLS FIRST`.
        options: Vec<i16> = indoption,
        /// Whether it has a `WHERE` clause.
        partial: bool,
    }
    finish check_counts
}

impl IndexRow {
    /// Users index the vectors by key column, so their lengths must be those that the row says.
    fn check_counts(mut self, tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        self.partial = tuple.stored("indpred")?.is_some();
        let column_count: i16 = tuple.get("indnatts")?;
        let columns = usize::try_from(column_count).unwrap_or_default();
        let keys = usize::from(self.key_count);
        if keys > columns {
            return Err(tuple.value("indnkeyatts", self.key_count));
        }
        for (column, found, expected) in [
            ("indkey", self.columns.len(), columns),
            ("indcollation", self.collations.len(), keys),
            ("indclass", self.classes.len(), keys),
            ("indoption", self.options.len(), keys),
        ] {
            if found != expected {
                return Err(tuple.value(column, i64::try_from(found).unwrap_or(i64::MAX)));
            }
        }
        Ok(self)
    }
}

describe_catalog! {
    /// Parents of tables and partitions (`catalog/pg_inherits.h`).
    PG_INHERITS = "pg_inherits", 2611;
    columns {
        inhrelid: Oid,
        inhparent: Oid,
        inhseqno: Int4,
        inhdetachpending: Bool,
    }
    /// A row of `pg_inherits`.
    row InheritsRow {
        /// The OID of the child or partition.
        child: Oid = inhrelid,
        /// The OID of the parent.
        parent: Oid = inhparent,
        /// Whether `DETACH CONCURRENTLY` is pending: queries no longer see the partition.
        detaching: bool = inhdetachpending,
    }
}

describe_catalog! {
    /// Schemas (`catalog/pg_namespace.h`).
    PG_NAMESPACE = "pg_namespace", 2615;
    columns {
        oid: Oid,
        nspname: Name,
        nspowner: Oid,
        nspacl: AclItemArray,
    }
    /// A row of `pg_namespace`: a schema.
    row NamespaceRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = nspname,
    }
}

describe_catalog! {
    /// Access methods (`catalog/pg_am.h`).
    PG_AM = "pg_am", 2601;
    columns {
        oid: Oid,
        amname: Name,
        amhandler: Regproc,
        amtype: Char,
    }
    /// A row of `pg_am`.
    row AccessMethodRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = amname,
    }
}

describe_catalog! {
    /// Operator classes (`catalog/pg_opclass.h`).
    PG_OPCLASS = "pg_opclass", 2616;
    columns {
        oid: Oid,
        opcmethod: Oid,
        opcname: Name,
        opcnamespace: Oid,
        opcowner: Oid,
        opcfamily: Oid,
        opcintype: Oid,
        opcdefault: Bool,
        opckeytype: Oid,
    }
    /// A row of `pg_opclass`.
    row OperatorClassRow {
        /// Its OID.
        oid: Oid = oid,
        /// The OID of its family: classes of several types that sort alike.
        family: Oid = opcfamily,
        /// The OID of the type that it indexes.
        input_type: Oid = opcintype,
    }
}

describe_catalog! {
    /// Parameters of sequences (`catalog/pg_sequence.h`).
    PG_SEQUENCE = "pg_sequence", 2224;
    columns {
        seqrelid: Oid,
        seqtypid: Oid,
        seqstart: Int8,
        seqincrement: Int8,
        seqmax: Int8,
        seqmin: Int8,
        seqcache: Int8,
        seqcycle: Bool,
    }
}
