//! The catalogs of a database, indexed for the binder.
//!
//! Look-ups by OID are here. Look-ups by name depend on the search path, so they are in
//! [`super::Namespace`].

use std::fmt;

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::hash::Map;
use trunkline_engine::catalog::{Database, ExpressionCatalogs, Procedure};
use trunkline_format::Oid;
use trunkline_format::catalog::{
    AggregateRow, CastRow, CollationRow, OperatorClassRow, OperatorFamilyRow, OperatorRow, TypeRow,
};

use super::definitions::Definitions;
use super::encoding::NameEncoding;
use super::oids;
use super::overlay::{Overlay, VirtualRelation};
use crate::error::SqlError;

/// Where the queries of views come from.
pub trait ViewQueries: Send + Sync {
    /// The query of a view, as the text of a node tree; `None` if the relation is not a view.
    ///
    /// # Errors
    /// It is damaged, or can't be read.
    fn query(&self, view: Oid) -> Result<Option<Vec<u8>>, SqlError>;

    /// The commands that rules always replace with other queries, as bits: 2 for `UPDATE`, 3 for
    /// `INSERT`, 4 for `DELETE`.
    ///
    /// # Errors
    /// As for [`ViewQueries::query`].
    fn replaced_commands(&self, relation: Oid) -> Result<u32, SqlError>;
}

/// What the binder knows about a database. Clones share it.
#[derive(Clone)]
pub struct SqlCatalog(Arc<Contents>, Option<Arc<dyn ViewQueries>>);

struct Contents {
    database: Arc<Database>,
    expressions: Arc<ExpressionCatalogs>,
    definitions: Definitions,
    encoding: NameEncoding,
    /// What the catalogs lack.
    overlay: Overlay,
    types_by_name: Map<Box<[u8]>, Vec<Oid>>,
    /// Places in `expressions`, as in the fields below.
    procedures: Map<Oid, usize>,
    procedures_by_name: Map<Box<[u8]>, Vec<usize>>,
    operators: Map<Oid, usize>,
    operators_by_name: Map<Box<[u8]>, Vec<usize>>,
    aggregates: Map<Oid, usize>,
    /// By source and target.
    casts: Map<(Oid, Oid), usize>,
    collations: Map<Oid, usize>,
    collations_by_name: Map<Box<[u8]>, Vec<usize>>,
    /// Operators for searching, by family, operand types and strategy.
    family_operators: Map<(Oid, Oid, Oid, i16), Oid>,
    /// Support functions, by family, operand types and number.
    family_functions: Map<(Oid, Oid, Oid, i16), Oid>,
    /// For each table, the tables that it inherits from or is a partition of.
    parents: Map<Oid, Vec<Oid>>,
    /// For each range type, its multirange type and the type of its bounds.
    ranges: Map<Oid, (Oid, Oid)>,
}

impl fmt::Debug for SqlCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.0.database.info().name;
        f.debug_tuple("SqlCatalog").field(&String::from_utf8_lossy(name)).finish()
    }
}

/// A column that every table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemColumn {
    /// Its name.
    pub name: &'static str,
    /// Its number, which is negative.
    pub number: i16,
    /// Its type.
    pub type_oid: Oid,
}

/// The system columns.
pub const SYSTEM_COLUMNS: [SystemColumn; 6] = [
    SystemColumn { name: "ctid", number: -1, type_oid: oids::TID },
    SystemColumn { name: "xmin", number: -2, type_oid: oids::XID },
    SystemColumn { name: "cmin", number: -3, type_oid: oids::CID },
    SystemColumn { name: "xmax", number: -4, type_oid: oids::XID },
    SystemColumn { name: "cmax", number: -5, type_oid: oids::CID },
    SystemColumn { name: "tableoid", number: -6, type_oid: oids::OID },
];

impl SqlCatalog {
    /// Indexes the catalogs of a database, which takes a few milliseconds. Make one for each database,
    /// and clone it.
    pub fn new(database: Arc<Database>, expressions: Arc<ExpressionCatalogs>) -> Self {
        let mut types_by_name: Map<Box<[u8]>, Vec<Oid>> = Map::default();
        for row in database.types() {
            types_by_name.entry(row.name.clone()).or_default().push(row.oid);
        }
        let mut parents: Map<Oid, Vec<Oid>> = Map::default();
        for relation in database.relations() {
            for &child in database.children(relation.oid) {
                parents.entry(child).or_default().push(relation.oid);
            }
        }
        let ranges = database.ranges().iter();
        let ranges = ranges.map(|row| (row.range, (row.multirange, row.subtype))).collect();
        let (procedures, operators) = (expressions.procedures(), expressions.operators());
        let collations = expressions.collations();
        let searched = expressions.family_operators().iter().filter(|row| row.purpose == b's');
        let contents = Contents {
            encoding: NameEncoding::new(database.info().encoding),
            overlay: Overlay::new(&database, procedures),
            types_by_name,
            procedures: places(procedures, |row| row.oid),
            procedures_by_name: by_name(procedures, |row| &row.name),
            operators: places(operators, |row| row.oid),
            operators_by_name: by_name(operators, |row| &row.name),
            aggregates: places(expressions.aggregates(), |row| row.function),
            casts: places(expressions.casts(), |row| (row.source, row.target)),
            collations: places(collations, |row| row.oid),
            collations_by_name: by_name(collations, |row| &row.name),
            family_operators: searched
                .map(|row| ((row.family, row.left, row.right, row.strategy), row.operator))
                .collect(),
            family_functions: (expressions.family_functions().iter())
                .map(|row| ((row.family, row.left, row.right, row.number), row.function))
                .collect(),
            definitions: Definitions::new(&expressions),
            parents,
            ranges,
            database,
            expressions,
        };
        Self(Arc::new(contents), None)
    }

    /// The same catalog, with views.
    #[must_use]
    pub fn with_views(self, views: Arc<dyn ViewQueries>) -> Self {
        Self(self.0, Some(views))
    }

    /// The query of a view, as the text of a node tree; `None` if the relation is not a view.
    ///
    /// # Errors
    /// It is damaged, or can't be read. 0A000: this catalog has no queries of views.
    pub fn view_query(&self, view: Oid) -> Result<Option<Vec<u8>>, SqlError> {
        match &self.1 {
            Some(views) => views.query(view),
            None => Err(SqlError::unsupported("views are not supported without their queries")),
        }
    }

    /// The commands that the rules of a relation replace ([`ViewQueries::replaced_commands`]).
    ///
    /// # Errors
    /// As for [`SqlCatalog::view_query`].
    pub fn replaced_commands(&self, relation: Oid) -> Result<u32, SqlError> {
        match &self.1 {
            Some(views) => views.replaced_commands(relation),
            None => Err(SqlError::unsupported("views are not supported without their queries")),
        }
    }

    /// The database itself, for its relations and their columns.
    pub fn database(&self) -> &Arc<Database> {
        &self.0.database
    }

    /// Rules, constraints, comments and roles.
    pub fn definitions(&self) -> &Definitions {
        &self.0.definitions
    }

    /// `pg_opfamily`.
    pub fn families(&self) -> &[OperatorFamilyRow] {
        self.0.expressions.families()
    }

    /// The encoding of the names in the catalogs.
    pub fn encoding(&self) -> NameEncoding {
        self.0.encoding
    }

    /// The type with this OID.
    pub fn data_type(&self, oid: Oid) -> Option<&TypeRow> {
        self.0.database.data_type(oid)
    }

    /// The OIDs of the types with this name, in any schema and in no particular order.
    pub(super) fn types_named(&self, name: &[u8]) -> &[Oid] {
        self.0.types_by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The function, procedure, aggregate or window function with this OID.
    pub fn procedure(&self, oid: Oid) -> Option<&Procedure> {
        match self.0.procedures.get(&oid) {
            Some(&at) => self.0.expressions.procedures().get(at),
            None => self.0.overlay.procedure(oid),
        }
    }

    /// All functions with this name, in any schema and in no particular order.
    pub(super) fn procedures_named(&self, name: &[u8]) -> impl Iterator<Item = &Procedure> {
        let places = self.0.procedures_by_name.get(name).into_iter().flatten();
        let stored = places.filter_map(|&at| self.0.expressions.procedures().get(at));
        let name: Box<[u8]> = name.into();
        stored.chain(self.0.overlay.procedures_named(name))
    }

    /// The relation of the overlay with this name, which is in `pg_catalog`.
    pub(super) fn virtual_named(&self, name: &str) -> Option<VirtualRelation> {
        self.0.overlay.relation_named(name)
    }

    /// The relation of the overlay with this OID.
    pub fn virtual_relation(&self, oid: Oid) -> Option<VirtualRelation> {
        self.0.overlay.relation(oid)
    }

    /// What `pg_aggregate` says about an aggregate, by the OID of its function.
    pub fn aggregate(&self, function: Oid) -> Option<&AggregateRow> {
        self.0.expressions.aggregates().get(*self.0.aggregates.get(&function)?)
    }

    /// The operator with this OID.
    pub fn operator(&self, oid: Oid) -> Option<&OperatorRow> {
        self.0.expressions.operators().get(*self.0.operators.get(&oid)?)
    }

    /// All operators with this name, in any schema and in no particular order.
    pub(super) fn operators_named(&self, name: &[u8]) -> impl Iterator<Item = &OperatorRow> {
        let places = self.0.operators_by_name.get(name).into_iter().flatten();
        places.filter_map(|&at| self.0.expressions.operators().get(at))
    }

    /// The row of `pg_cast` for exactly these types.
    pub fn cast(&self, source: Oid, target: Oid) -> Option<&CastRow> {
        self.0.expressions.casts().get(*self.0.casts.get(&(source, target))?)
    }

    /// The collation with this OID.
    pub fn collation(&self, oid: Oid) -> Option<&CollationRow> {
        self.0.expressions.collations().get(*self.0.collations.get(&oid)?)
    }

    /// All collations with this name, in any schema and in no particular order.
    pub(super) fn collations_named(&self, name: &[u8]) -> impl Iterator<Item = &CollationRow> {
        let places = self.0.collations_by_name.get(name).into_iter().flatten();
        places.filter_map(|&at| self.0.expressions.collations().get(at))
    }

    /// The name of a function's language.
    pub fn language(&self, oid: Oid) -> Option<String> {
        let found = self.0.expressions.languages().iter().find(|row| row.oid == oid)?;
        Some(self.0.encoding.decode(&found.name))
    }

    /// The stored name of a language.
    pub fn language_name(&self, oid: Oid) -> Option<&[u8]> {
        let found = self.0.expressions.languages().iter().find(|row| row.oid == oid)?;
        Some(&found.name)
    }

    /// Whether there is a language with this name.
    pub fn has_language(&self, name: &str) -> bool {
        let mut languages = self.0.expressions.languages().iter();
        let stored = self.0.encoding.encode(name);
        stored.is_some_and(|stored| languages.any(|row| *row.name == *stored))
    }

    /// The default operator classes of an access method.
    pub(super) fn default_classes(&self, method: Oid) -> impl Iterator<Item = &OperatorClassRow> {
        let classes = self.0.database.operator_classes();
        classes.filter(move |row| row.method == method && row.default)
    }

    /// The operator of a family for searching by these operands (`get_opfamily_member`).
    pub fn family_operator(
        &self,
        family: Oid,
        left: Oid,
        right: Oid,
        strategy: i16,
    ) -> Option<Oid> {
        self.0.family_operators.get(&(family, left, right, strategy)).copied()
    }

    /// A support function of a family for these operands (`get_opfamily_proc`).
    pub fn family_function(&self, family: Oid, left: Oid, right: Oid, number: i16) -> Option<Oid> {
        self.0.family_functions.get(&(family, left, right, number)).copied()
    }

    /// The tables that a table inherits from, or is a partition of.
    pub fn parents(&self, table: Oid) -> &[Oid] {
        self.0.parents.get(&table).map_or(&[], Vec::as_slice)
    }

    /// The type of a range type's bounds; `None` unless the type is a range.
    pub fn range_subtype(&self, range: Oid) -> Option<Oid> {
        self.0.ranges.get(&range).map(|&(_, subtype)| subtype)
    }

    /// The multirange type of a range type.
    pub fn range_multirange(&self, range: Oid) -> Option<Oid> {
        self.0.ranges.get(&range).map(|&(multirange, _)| multirange)
    }

    /// The range type of a multirange type; `None` unless the type is a multirange.
    pub fn multirange_range(&self, multirange: Oid) -> Option<Oid> {
        let row = self.0.database.ranges().iter().find(|row| row.multirange == multirange)?;
        Some(row.range)
    }
}

/// The place of each row by a key.
fn places<R, K: std::hash::Hash + Eq>(rows: &[R], key: impl Fn(&R) -> K) -> Map<K, usize> {
    rows.iter().enumerate().map(|(at, row)| (key(row), at)).collect()
}

/// The places of the rows with each name.
fn by_name<R>(rows: &[R], name: impl Fn(&R) -> &Box<[u8]>) -> Map<Box<[u8]>, Vec<usize>> {
    let mut found: Map<Box<[u8]>, Vec<usize>> = Map::default();
    for (at, row) in rows.iter().enumerate() {
        found.entry(name(row).clone()).or_default().push(at);
    }
    found
}
