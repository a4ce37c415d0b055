//! **Overlay of the catalogs**: functions and views that make I/O visible, and that the catalogs of a
//! directory lack.
//!
//! `pg_aios` came with PostgreSQL 18, and `pg_buffercache` belongs to an extension that may not be
//! installed, but trunkline has both for every directory, which it never changes. So name resolution
//! looks into the overlay after it has looked into the catalogs: for functions and relations of
//! `pg_catalog`, which search paths contain. Nothing else sees the overlay. A scan of `pg_class` shows
//! what is stored, in which the overlay's relations don't occur.
//!
//! ```text
//!   pg_aios            a relation: the rows of pg_get_aios()
//!   pg_get_aios()      a function, whose source is the name of a kernel
//! ```
//!
//! Where `pg_catalog` itself has a function or relation of a name, the overlay doesn't.

use trunkline_aio::facade::hash::{Map, Set};
use trunkline_engine::catalog::{Database, Parameter, ParameterMode, Procedure};
use trunkline_format::Oid;
use trunkline_format::catalog::ProcedureRow;

use super::oids;
use super::overlay_definitions::{
    FUNCTIONS, FunctionDefinition, OIDS, RELATIONS, ResultDefinition,
};

/// `INTERNALlanguageId`.
const INTERNAL: Oid = Oid(12);

/// A relation that isn't stored: the rows of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtualRelation {
    /// What its `pg_class.oid` would be.
    pub oid: Oid,
    /// Its name.
    pub name: &'static str,
    /// The function, which has no arguments.
    pub function: Oid,
}

/// The overlay of one database.
#[derive(Debug)]
pub(super) struct Overlay {
    procedures: Vec<Procedure>,
    by_oid: Map<Oid, usize>,
    relations: Vec<VirtualRelation>,
}

impl Overlay {
    /// What a database lacks. `stored` has the functions of its catalog.
    pub(super) fn new(database: &Database, stored: &[Procedure]) -> Self {
        let built_in = stored.iter().filter(|row| row.schema == oids::PG_CATALOG);
        let defined: Map<&'static str, ()> =
            FUNCTIONS.iter().map(|function| (function.name, ())).collect();
        let mut functions: Map<&[u8], Oid> = Map::default();
        for row in built_in {
            let name = str::from_utf8(&row.name).unwrap_or_default();
            if defined.contains_key(name) {
                functions.insert(&row.name, row.oid);
            }
        }
        let known: Set<&[u8]> = functions.keys().copied().collect();
        let missing = FUNCTIONS.iter().filter(|found| !known.contains(found.name.as_bytes()));
        let procedures: Vec<Procedure> = missing.map(procedure).collect();
        for row in &procedures {
            functions.insert(&row.name, row.oid);
        }
        let schema = database.schema(oids::PG_CATALOG);
        let is_stored = |name: &str| {
            schema.is_some_and(|schema| database.find(schema, name.as_bytes()).is_some())
        };
        let relations = RELATIONS.iter().filter(|relation| !is_stored(relation.name));
        let relations = relations.filter_map(|relation| {
            let function = *functions.get(relation.function.as_bytes())?;
            Some(VirtualRelation { oid: Oid(relation.oid), name: relation.name, function })
        });
        let relations = relations.collect();
        let by_oid = procedures.iter().enumerate().map(|(at, row)| (row.oid, at)).collect();
        Self { procedures, by_oid, relations }
    }

    /// The function with this OID.
    pub(super) fn procedure(&self, oid: Oid) -> Option<&Procedure> {
        self.procedures.get(*self.by_oid.get(&oid)?)
    }

    /// All functions with this name.
    pub(super) fn procedures_named(&self, name: Box<[u8]>) -> impl Iterator<Item = &Procedure> {
        self.procedures.iter().filter(move |row| row.name == name)
    }

    /// The relation with this name.
    pub(super) fn relation_named(&self, name: &str) -> Option<VirtualRelation> {
        self.relations.iter().find(|relation| relation.name == name).copied()
    }

    /// The relation with this OID.
    pub(super) fn relation(&self, oid: Oid) -> Option<VirtualRelation> {
        let mut relations = self.relations.iter().filter(|_| OIDS.contains(&oid.0));
        relations.find(|relation| relation.oid == oid).copied()
    }
}

/// A function as its row in `pg_proc` would describe it.
fn procedure(definition: &FunctionDefinition) -> Procedure {
    let parameter = |mode: ParameterMode| {
        move |&(name, type_oid): &(&str, Oid)| Parameter {
            name: name.as_bytes().into(),
            type_oid,
            mode,
        }
    };
    let (result, columns, returns_set) = match &definition.result {
        ResultDefinition::Value(oid) => (*oid, &[][..], false),
        ResultDefinition::Rows(columns) => (oids::RECORD, *columns, true),
        ResultDefinition::Row(columns) => (oids::RECORD, *columns, false),
    };
    let inputs = definition.arguments.iter().map(parameter(ParameterMode::In));
    let outputs = columns.iter().map(parameter(ParameterMode::Out));
    let row = ProcedureRow {
        oid: Oid(definition.oid),
        name: definition.name.as_bytes().into(),
        schema: oids::PG_CATALOG,
        language: INTERNAL,
        variadic: oids::NONE,
        support: oids::NONE,
        kind: b'f',
        cost: 1.0,
        rows: if returns_set { 1000.0 } else { 0.0 },
        security_definer: false,
        leakproof: false,
        parallel: b'u',
        strict: definition.strict,
        returns_set,
        volatility: definition.volatility,
        argument_count: definition.arguments.len() as u16,
        default_count: 0,
        result,
        arguments: definition.arguments.iter().map(|(_, oid)| *oid).collect(),
        all_arguments: None,
        modes: None,
        names: None,
        defaults: None,
        transforms: None,
        source: None,
        binary: None,
        body: None,
        settings: None,
    };
    Procedure::described(row, inputs.chain(outputs).collect(), definition.name)
}
