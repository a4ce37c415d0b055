//! Catalogs that define and describe objects: views, constraints, partitioning, statistics, comments.
//!
//! Expressions and queries are stored as text in `pg_node_tree` columns. For example, `ev_action` of a
//! view's rule is `({QUERY :commandType 1 …})`, which [`crate::node_tree`] reads. These values are
//! often compressed or stored out of line. A field of type `Option<Box<[u8]>>` is the stored datum with
//! its varlena header, which the caller must detoast.

use super::describe::describe_catalog;
use super::description::CatalogTable;
use super::relations::{PG_CLASS, PG_INDEX};
use super::tuple::{CatalogRow, CatalogTuple, RowError};
use crate::ids::Oid;

describe_catalog! {
    /// Rewrite rules (`catalog/pg_rewrite.h`). The rule `_RETURN` of a view is its query.
    PG_REWRITE = "pg_rewrite", 2618;
    index "pg_rewrite_oid_index", 2692;
    columns {
        oid: Oid,
        rulename: Name,
        ev_class: Oid,
        ev_type: Char,
        ev_enabled: Char,
        is_instead: Bool,
        ev_qual: PgNodeTree,
        ev_action: PgNodeTree,
    }
    /// A row of `pg_rewrite`.
    row RewriteRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = rulename,
        /// The OID of its table or view.
        relation: Oid = ev_class,
        /// The command that it rewrites: 1 `SELECT`, 2 `UPDATE`, 3 `INSERT`, 4 `DELETE`, as a digit.
        event: u8 = ev_type,
        /// `INSTEAD`: whether its queries are executed instead of the command.
        instead: bool = is_instead,
        /// Its condition; `<>` if it has none.
        condition: Option<Box<[u8]>> = ev_qual,
        /// The list of queries.
        action: Option<Box<[u8]>> = ev_action,
    }
}

describe_catalog! {
    /// Constraints (`catalog/pg_constraint.h`).
    PG_CONSTRAINT = "pg_constraint", 2606;
    index "pg_constraint_oid_index", 2667;
    columns {
        oid: Oid,
        conname: Name,
        connamespace: Oid,
        contype: Char,
        condeferrable: Bool,
        condeferred: Bool,
        conenforced: Bool.since(V18),
        convalidated: Bool,
        conrelid: Oid,
        contypid: Oid,
        conindid: Oid,
        conparentid: Oid,
        confrelid: Oid,
        confupdtype: Char,
        confdeltype: Char,
        confmatchtype: Char,
        conislocal: Bool,
        coninhcount: Int4.until(V15),
        coninhcount: Int2.since(V16),
        connoinherit: Bool,
        conperiod: Bool.since(V18),
        conkey: Int2Array,
        confkey: Int2Array,
        conpfeqop: OidArray,
        conppeqop: OidArray,
        conffeqop: OidArray,
        confdelsetcols: Int2Array,
        conexclop: OidArray,
        conbin: PgNodeTree,
    }
    /// A row of `pg_constraint`.
    row ConstraintRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = conname,
        /// `contype`: `c` check, `f` foreign key, `n` not null, `p` primary key, `t` trigger, `u`
        /// unique, `x` exclusion.
        kind: u8 = contype,
        /// `DEFERRABLE`.
        deferrable: bool = condeferrable,
        /// `INITIALLY DEFERRED`.
        deferred: bool = condeferred,
        /// Whether it is enforced; always true before version 18.
        enforced: bool,
        /// Whether all rows were checked.
        validated: bool = convalidated,
        /// The OID of its table; 0 if it belongs to a domain.
        relation: Oid = conrelid,
        /// The OID of its domain; 0 if it belongs to a table.
        domain: Oid = contypid,
        /// The OID of the index that supports it; 0 if none does.
        index: Oid = conindid,
        /// The OID of the table that a foreign key refers to.
        referenced: Oid = confrelid,
        /// `ON UPDATE`: `a` no action, `r` restrict, `c` cascade, `n` set null, `d` set default.
        on_update: u8 = confupdtype,
        /// `ON DELETE`, likewise.
        on_delete: u8 = confdeltype,
        /// `MATCH`: `f` full, `p` partial, `s` simple.
        match_type: u8 = confmatchtype,
        /// `NO INHERIT`.
        no_inherit: bool = connoinherit,
        /// `WITHOUT OVERLAPS` or `PERIOD`; always false before version 18.
        period: bool,
        /// The numbers of the constrained columns, an `int2[]`.
        columns: Option<Box<[u8]>> = conkey,
        /// The numbers of the referenced columns, an `int2[]`.
        referenced_columns: Option<Box<[u8]>> = confkey,
        /// The columns that `ON DELETE SET` sets, an `int2[]`; null for all.
        set_columns: Option<Box<[u8]>> = confdelsetcols,
        /// The expression of a check constraint.
        expression: Option<Box<[u8]>> = conbin,
    }
    finish read_new_columns
}

impl ConstraintRow {
    /// Reads the columns that only some versions have.
    fn read_new_columns(mut self, tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        let has = |name: &str| tuple.columns().iter().any(|column| column.name == name);
        let (has_enforced, has_period) = (has("conenforced"), has("conperiod"));
        self.enforced = !has_enforced || tuple.get("conenforced")?;
        self.period = has_period && tuple.get("conperiod")?;
        Ok(self)
    }
}

describe_catalog! {
    /// How tables are partitioned (`catalog/pg_partitioned_table.h`).
    PG_PARTITIONED_TABLE = "pg_partitioned_table", 3350;
    index "pg_partitioned_table_partrelid_index", 3351;
    columns {
        partrelid: Oid,
        partstrat: Char,
        partnatts: Int2,
        partdefid: Oid,
        partattrs: Int2Vector,
        partclass: OidVector,
        partcollation: OidVector,
        partexprs: PgNodeTree,
    }
    /// A row of `pg_partitioned_table`.
    row PartitionedTableRow {
        /// The OID of the table.
        relation: Oid = partrelid,
        /// `h` hash, `l` list, `r` range.
        strategy: u8 = partstrat,
        /// The OID of the default partition; 0 if there is none.
        default_partition: Oid = partdefid,
        /// The key: column numbers, 0 for an expression.
        columns: Vec<i16> = partattrs,
        /// The operator class of each key column.
        classes: Vec<Oid> = partclass,
        /// The collation of each key column.
        collations: Vec<Oid> = partcollation,
        /// The expressions of the key.
        expressions: Option<Box<[u8]>> = partexprs,
    }
}

describe_catalog! {
    /// Extended statistics (`catalog/pg_statistic_ext.h`).
    PG_STATISTIC_EXT = "pg_statistic_ext", 3381;
    index "pg_statistic_ext_oid_index", 3380;
    columns {
        oid: Oid,
        stxrelid: Oid,
        stxname: Name,
        stxnamespace: Oid,
        stxowner: Oid,
        stxstattarget: Int4.until(V16),
        stxkeys: Int2Vector,
        stxstattarget: Int2.nullable().since(V17),
        stxkind: CharArray,
        stxexprs: PgNodeTree,
    }
    /// A row of `pg_statistic_ext`.
    row StatisticsRow {
        /// Its OID.
        oid: Oid = oid,
        /// The OID of its table.
        relation: Oid = stxrelid,
        /// Its name.
        name: Box<[u8]> = stxname,
        /// The OID of its schema.
        schema: Oid = stxnamespace,
        /// The numbers of its columns.
        columns: Vec<i16> = stxkeys,
        /// Its expressions.
        expressions: Option<Box<[u8]>> = stxexprs,
    }
}

describe_catalog! {
    /// Defaults and generation expressions of columns (`catalog/pg_attrdef.h`).
    PG_ATTRDEF = "pg_attrdef", 2604;
    index "pg_attrdef_oid_index", 2657;
    columns {
        oid: Oid,
        adrelid: Oid,
        adnum: Int2,
        adbin: PgNodeTree,
    }
    /// A row of `pg_attrdef`.
    row ColumnDefaultRow {
        /// Its OID.
        oid: Oid = oid,
        /// The OID of the table.
        relation: Oid = adrelid,
        /// The number of the column.
        number: i16 = adnum,
        /// The expression.
        expression: Option<Box<[u8]>> = adbin,
    }
}

describe_catalog! {
    /// Comments (`catalog/pg_description.h`).
    PG_DESCRIPTION = "pg_description", 2609;
    index "pg_description_o_c_o_index", 2675;
    columns {
        objoid: Oid,
        classoid: Oid,
        objsubid: Int4,
        description: Text,
    }
    /// A row of `pg_description`.
    row DescriptionRow {
        /// The OID of the object.
        object: Oid = objoid,
        /// The OID of the catalog that the object is in.
        class: Oid = classoid,
        /// The number of a column; 0 for the object itself.
        part: i32 = objsubid,
        /// The comment.
        text: Option<Box<[u8]>> = description,
    }
}

describe_catalog! {
    /// Comments on objects that all databases share (`catalog/pg_shdescription.h`).
    PG_SHDESCRIPTION = "pg_shdescription", 2396, shared, mapped;
    index "pg_shdescription_o_c_index", 2397;
    columns {
        objoid: Oid,
        classoid: Oid,
        description: Text,
    }
    /// A row of `pg_shdescription`.
    row SharedDescriptionRow {
        /// The OID of the object.
        object: Oid = objoid,
        /// The OID of the catalog that the object is in.
        class: Oid = classoid,
        /// The comment.
        text: Option<Box<[u8]>> = description,
    }
}

describe_catalog! {
    /// Encoding conversions (`catalog/pg_conversion.h`).
    PG_CONVERSION = "pg_conversion", 2607;
    index "pg_conversion_oid_index", 2670;
    columns {
        oid: Oid,
        conname: Name,
        connamespace: Oid,
        conowner: Oid,
        conforencoding: Int4,
        contoencoding: Int4,
        conproc: Regproc,
        condefault: Bool,
    }
    /// A row of `pg_conversion`.
    row ConversionRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = conname,
        /// The OID of its schema.
        schema: Oid = connamespace,
    }
}

describe_catalog! {
    /// Text search parsers (`catalog/pg_ts_parser.h`).
    PG_TS_PARSER = "pg_ts_parser", 3601, open;
    index "pg_ts_parser_oid_index", 3607;
    columns {
        oid: Oid,
        prsname: Name,
        prsnamespace: Oid,
    }
    /// A row of `pg_ts_parser`.
    row TextSearchParserRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = prsname,
        /// The OID of its schema.
        schema: Oid = prsnamespace,
    }
}

describe_catalog! {
    /// Text search templates (`catalog/pg_ts_template.h`).
    PG_TS_TEMPLATE = "pg_ts_template", 3764, open;
    index "pg_ts_template_oid_index", 3767;
    columns {
        oid: Oid,
        tmplname: Name,
        tmplnamespace: Oid,
    }
    /// A row of `pg_ts_template`.
    row TextSearchTemplateRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = tmplname,
        /// The OID of its schema.
        schema: Oid = tmplnamespace,
    }
}

/// The expressions of an index, which [`super::IndexRow`] leaves out because only their text needs
/// them.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexExpressionsRow {
    /// The OID of the index.
    pub index: Oid,
    /// The key columns that are expressions, in order.
    pub expressions: Option<Box<[u8]>>,
    /// The `WHERE` clause of a partial index.
    pub predicate: Option<Box<[u8]>>,
}

impl CatalogRow for IndexExpressionsRow {
    const CATALOG: &'static CatalogTable = &PG_INDEX;

    fn decode(tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        Ok(Self {
            index: tuple.get("indexrelid")?,
            expressions: tuple.get("indexprs")?,
            predicate: tuple.get("indpred")?,
        })
    }
}

/// The bound of a partition and the storage parameters of a relation, which [`super::ClassRow`] leaves
/// out.
#[derive(Clone, PartialEq, Debug)]
pub struct PartitionBoundRow {
    /// The OID of the relation.
    pub relation: Oid,
    /// `relpartbound`; null unless it is a partition.
    pub bound: Option<Box<[u8]>>,
    /// `reloptions`, a `text[]`.
    pub options: Option<Box<[u8]>>,
}

impl CatalogRow for PartitionBoundRow {
    const CATALOG: &'static CatalogTable = &PG_CLASS;

    fn decode(tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        Ok(Self {
            relation: tuple.get("oid")?,
            bound: tuple.get("relpartbound")?,
            options: tuple.get("reloptions")?,
        })
    }
}
