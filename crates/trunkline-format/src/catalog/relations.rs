//! Catalogs about relations: `pg_class`, `pg_attribute`, indexes, partitions, schemas.
//!
//! Names are in the database's encoding.

use super::codes::{Generated, Persistence, RelationKind};
use super::describe::describe_catalog;
use super::tuple::{CatalogTuple, RowError};
use crate::align::Align;
use crate::ids::Oid;

describe_catalog! {
    /// Relations of all kinds (`catalog/pg_class.h`).
    PG_CLASS = "pg_class", 1259, mapped;
    index "pg_class_oid_index", 2662;
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
        /// The OID of its row type; 0 if it has none.
        row_type: Oid = reltype,
        /// The OID of the composite type of a typed table (`CREATE TABLE … OF`); otherwise 0.
        of_type: Oid = reloftype,
        /// The OID of its access method; 0 if it has none.
        access_method: Oid = relam,
        /// `relfilenode`; 0 for mapped catalogs, and for relations without storage.
        relfilenode: u32 = relfilenode,
        /// The OID of its tablespace; 0 means the database's default tablespace.
        tablespace: Oid = reltablespace,
        /// `relpages`: its size in blocks as of the last `VACUUM` or `ANALYZE`.
        pages: i32 = relpages,
        /// `reltuples`: live rows as estimated by the last `VACUUM` or `ANALYZE`. `None` (-1 on
        /// disk) if neither has run yet.
        rows: Option<f32>,
        /// `relallvisible`: blocks that were marked all-visible in its visibility map as of then.
        all_visible: i32 = relallvisible,
        /// The OID of its TOAST table; 0 if it has none.
        toast: Oid = reltoastrelid,
        /// Whether it is shared by all databases.
        shared: bool = relisshared,
        /// `relpersistence`: whether it survives a crash.
        persistence: Persistence = relpersistence,
        /// `relkind`.
        kind: RelationKind = relkind,
        /// `relnatts`: user columns, including dropped columns.
        column_count: u16 = relnatts,
        /// `relhastriggers`: whether it has triggers, or has had some.
        has_triggers: bool = relhastriggers,
        /// `relispopulated`: false only for a materialized view that doesn't hold its query's
        /// result.
        populated: bool = relispopulated,
        /// Whether it is a partition.
        is_partition: bool = relispartition,
        /// `relfrozenxid`: all older normal xids have been frozen. 0 if the relation has no rows.
        frozen_xid: u32 = relfrozenxid,
        /// `relminmxid`: no row has an older multixact. 0 if the relation has no rows.
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
    /// Columns (`catalog/pg_attribute.h`). PostgreSQL 16 moved and shrank several columns to make
    /// the row smaller. `attstattarget` became nullable in 17.
    PG_ATTRIBUTE = "pg_attribute", 1249, mapped;
    index "pg_attribute_relid_attnum_index", 2659;
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
        /// The OID of its type; 0 if the column was dropped.
        type_oid: Oid = atttypid,
        /// `attlen`: bytes; -1 with a varlena header, -2 for a C string.
        len: i16 = attlen,
        /// `attnum`, from 1; negative for system columns.
        number: i16 = attnum,
        /// `atttypmod`, such as a maximum length; -1 if there is none.
        modifier: i32 = atttypmod,
        /// `attalign`.
        align: Align = attalign,
        /// Whether it has a `NOT NULL` constraint.
        not_null: bool = attnotnull,
        /// Whether rows written before the column was added have the value in `missing`.
        has_missing: bool = atthasmissing,
        /// `attgenerated`: whether it is a generated column.
        generated: Generated = attgenerated,
        /// Whether it was dropped. Old rows still contain its values, so it keeps its `attnum`.
        dropped: bool = attisdropped,
        /// The OID of its collation; 0 if its type isn't collatable.
        collation: Oid = attcollation,
        /// `attmissingval` as stored: a one-element array.
        missing: Option<Box<[u8]>>,
    }
    finish read_missing
}

impl AttributeRow {
    /// Reads `attmissingval` only if `atthasmissing` is set, because reading it requires deforming
    /// the row.
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
    index "pg_index_indexrelid_index", 2679;
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
        /// `indnkeyatts`: the number of key columns. `INCLUDE` columns follow them.
        key_count: u16 = indnkeyatts,
        /// Whether it is unique.
        unique: bool = indisunique,
        /// `NULLS NOT DISTINCT`: whether a unique index treats nulls as equal.
        nulls_not_distinct: bool = indnullsnotdistinct,
        /// Whether it implements the primary key.
        primary: bool = indisprimary,
        /// `indisvalid`: whether queries may use it.
        valid: bool = indisvalid,
        /// `indcheckxmin`: it may lack rows of broken HOT chains, so an old snapshot must not use it.
        check_xmin: bool = indcheckxmin,
        /// `indisready`: whether inserts must maintain it.
        ready: bool = indisready,
        /// `indislive`: false while it is being dropped concurrently.
        live: bool = indislive,
        /// `indkey`: the table's column numbers, including `INCLUDE` columns; 0 for an expression.
        columns: Vec<i16> = indkey,
        /// Each key column's collation; 0 if the column has none.
        collations: Vec<Oid> = indcollation,
        /// Each key column's operator class.
        classes: Vec<Oid> = indclass,
        /// Each key column's `indoption`: bit 0 is `DESC`, bit 1 is `NULLS FIRST`.
        options: Vec<i16> = indoption,
        /// Whether it has a `WHERE` clause.
        partial: bool,
    }
    finish check_counts
}

impl IndexRow {
    /// Checks that each vector's length matches the column counts, because callers index by key
    /// column.
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
    /// Inheritance parents of tables and partitions (`catalog/pg_inherits.h`).
    PG_INHERITS = "pg_inherits", 2611;
    index "pg_inherits_relid_seqno_index", 2680;
    columns {
        inhrelid: Oid,
        inhparent: Oid,
        inhseqno: Int4,
        inhdetachpending: Bool,
    }
    /// A row of `pg_inherits`.
    row InheritsRow {
        /// The OID of the child table or partition.
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
    index "pg_namespace_oid_index", 2685;
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
    index "pg_am_oid_index", 2652;
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
    index "pg_opclass_oid_index", 2687;
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
        /// The OID of its access method.
        method: Oid = opcmethod,
        /// Its name.
        name: Box<[u8]> = opcname,
        /// The OID of its schema.
        schema: Oid = opcnamespace,
        /// The OID of its operator family, which groups the compatible classes of related types.
        family: Oid = opcfamily,
        /// The OID of its input type.
        input_type: Oid = opcintype,
        /// Whether it is the default for its input type.
        default: bool = opcdefault,
    }
}

describe_catalog! {
    /// Sequence parameters (`catalog/pg_sequence.h`).
    PG_SEQUENCE = "pg_sequence", 2224;
    index "pg_sequence_seqrelid_index", 5002;
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
    /// A row of `pg_sequence`: the options of `CREATE SEQUENCE`. The current value is in the
    /// sequence's own page ([`crate::sequence::Sequence`]).
    row SequenceRow {
        /// The OID of the sequence.
        sequence: Oid = seqrelid,
        /// The OID of its type: `smallint`, `integer` or `bigint`.
        type_oid: Oid = seqtypid,
        /// `START WITH`.
        start: i64 = seqstart,
        /// `INCREMENT BY`.
        increment: i64 = seqincrement,
        /// `MAXVALUE`.
        max: i64 = seqmax,
        /// `MINVALUE`.
        min: i64 = seqmin,
        /// `CACHE`.
        cache: i64 = seqcache,
        /// `CYCLE`.
        cycle: bool = seqcycle,
    }
}
