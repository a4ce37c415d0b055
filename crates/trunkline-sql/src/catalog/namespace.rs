//! The catalogs as seen through a search path: objects by name, and names of objects.
//!
//! Errors have PostgreSQL's words, such as `type "x" does not exist`. None of them has a position,
//! because a name doesn't know where in the statement it is.

use std::fmt;

use trunkline_engine::catalog::RelationInfo;
use trunkline_format::Oid;
use trunkline_format::catalog::{CollationRow, TypeRow, encoding_name, type_with_modifier};
use trunkline_format::text_output::write_identifier;

use super::oids;
use super::overlay::VirtualRelation;
use super::search_path::{SearchPath, schema_named};
use super::sql_catalog::SqlCatalog;
use crate::error::{SqlError, SqlState};

/// A name as it was written: with or without a schema, and already folded to lower case where it
/// wasn't quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectName<'a> {
    /// The schema.
    pub schema: Option<&'a str>,
    /// The name.
    pub name: &'a str,
}

impl<'a> ObjectName<'a> {
    /// A name without a schema.
    pub fn unqualified(name: &'a str) -> Self {
        Self { schema: None, name }
    }

    /// A name in `pg_catalog`, which is what SQL's own spellings stand for.
    pub fn built_in(name: &'a str) -> Self {
        Self { schema: Some("pg_catalog"), name }
    }
}

/// Without quotes, as in PostgreSQL's messages (`NameListToString`).
impl fmt::Display for ObjectName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(self.name)
    }
}

/// A catalog and the search path of a session.
#[derive(Debug, Clone, Copy)]
pub struct Namespace<'c> {
    catalog: &'c SqlCatalog,
    path: &'c SearchPath,
}

impl<'c> Namespace<'c> {
    /// The catalog as seen through a search path.
    pub fn new(catalog: &'c SqlCatalog, path: &'c SearchPath) -> Self {
        Self { catalog, path }
    }

    /// The catalog.
    pub fn catalog(&self) -> &'c SqlCatalog {
        self.catalog
    }

    /// The search path.
    pub fn path(&self) -> &'c SearchPath {
        self.path
    }

    /// The schema with this name.
    ///
    /// # Errors
    /// 3F000: it doesn't exist.
    pub fn schema(&self, name: &str) -> Result<Oid, SqlError> {
        schema_named(self.catalog, name).ok_or_else(|| {
            let message = format!("schema \"{name}\" does not exist");
            SqlError::new(SqlState::INVALID_SCHEMA_NAME, message)
        })
    }

    /// The place in the order of search of an object's schema. `None` if a name stands for no object
    /// of that schema. If the name has a schema, `given`, that is the only one searched.
    pub(super) fn place(&self, given: Option<Oid>, schema: Oid) -> Option<usize> {
        match given {
            Some(given) => (given == schema).then_some(0),
            None => self.path.place(schema),
        }
    }

    /// Of the objects with a name, the one whose schema is searched first.
    fn first<T>(
        &self,
        given: Option<Oid>,
        objects: impl Iterator<Item = T>,
        schema: impl Fn(&T) -> Oid,
    ) -> Option<T> {
        let placed =
            objects.filter_map(|object| Some((self.place(given, schema(&object))?, object)));
        placed.min_by_key(|(place, _)| *place).map(|(_, object)| object)
    }

    /// The type with this name, if there is one. A shell type is returned too.
    ///
    /// # Errors
    /// 3F000: the name's schema doesn't exist.
    pub fn find_type(&self, name: ObjectName<'_>) -> Result<Option<&'c TypeRow>, SqlError> {
        let given = name.schema.map(|schema| self.schema(schema)).transpose()?;
        let Some(stored) = self.catalog.encoding().encode(name.name) else { return Ok(None) };
        let rows = self.catalog.types_named(&stored).iter();
        let rows = rows.filter_map(|&oid| self.catalog.data_type(oid));
        Ok(self.first(given, rows, |row| row.schema))
    }

    /// The type with this name.
    ///
    /// # Errors
    /// 42704: there is no such type, or it is only declared. 3F000: its schema doesn't exist.
    pub fn type_named(&self, name: ObjectName<'_>) -> Result<&'c TypeRow, SqlError> {
        let error = |what: &str| {
            let message = format!("type \"{name}\" {what}");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        };
        let found = self.find_type(name)?.ok_or_else(|| error("does not exist"))?;
        if !found.defined {
            return Err(error("is only a shell"));
        }
        Ok(found)
    }

    /// The table, view, index or other relation with this name.
    ///
    /// # Errors
    /// 42P01: there is no such relation, or its schema doesn't exist.
    pub fn relation_named(&self, name: ObjectName<'_>) -> Result<&'c RelationInfo, SqlError> {
        let missing = || {
            let message = format!("relation \"{name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        };
        let stored = self.catalog.encoding().encode(name.name).ok_or_else(missing)?;
        let database = self.catalog.database();
        let find = |schema: Oid| database.find(database.schema(schema)?, &stored);
        let found = match name.schema {
            Some(schema) => schema_named(self.catalog, schema).and_then(find),
            None => self.path.searched().iter().find_map(|&schema| find(schema)),
        };
        found.ok_or_else(missing)
    }

    /// The relation of the overlay that a name stands for. `None` if a stored relation is found first.
    pub fn virtual_relation(&self, name: ObjectName<'_>) -> Option<VirtualRelation> {
        let found = self.catalog.virtual_named(name.name)?;
        let schemas = match name.schema {
            Some(schema) => &[schema_named(self.catalog, schema)?][..],
            None => self.path.searched(),
        };
        let database = self.catalog.database();
        for &schema in schemas {
            if schema == oids::PG_CATALOG {
                return Some(found);
            }
            let stored = database.schema(schema);
            if stored.is_some_and(|schema| database.find(schema, name.name.as_bytes()).is_some()) {
                return None;
            }
        }
        None
    }

    /// The collation with this name that works with the encoding of the database.
    ///
    /// # Errors
    /// 42704: there is none. 3F000: its schema doesn't exist.
    pub fn collation_named(&self, name: ObjectName<'_>) -> Result<&'c CollationRow, SqlError> {
        let given = name.schema.map(|schema| self.schema(schema)).transpose()?;
        let encoding = self.catalog.database().info().encoding;
        let stored = self.catalog.encoding().encode(name.name).unwrap_or_default();
        let of_encoding = |wanted: i32| {
            let rows = self.catalog.collations_named(&stored);
            rows.filter(move |row| row.encoding == wanted)
        };
        // In each schema, a collation for this encoding precedes one for all encodings.
        let rows = of_encoding(encoding).chain(of_encoding(-1));
        self.first(given, rows, |row| row.schema).ok_or_else(|| self.no_collation(name))
    }

    /// 42704: there is no such collation.
    pub fn no_collation(&self, name: ObjectName<'_>) -> SqlError {
        let encoding = encoding_name(self.catalog.database().info().encoding);
        let message = format!("collation \"{name}\" for encoding \"{encoding}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    }

    /// Whether the name of a type alone stands for that type (`TypeIsVisible`).
    pub fn is_type_visible(&self, row: &TypeRow) -> bool {
        let rows = self.catalog.types_named(&row.name).iter();
        let rows = rows.filter_map(|&oid| self.catalog.data_type(oid));
        self.first(None, rows, |row| row.schema).is_some_and(|found| found.oid == row.oid)
    }

    /// The name of a type for messages, such as `integer` (`format_type_be`).
    pub fn type_name(&self, oid: Oid) -> String {
        self.format_type(oid, None)
    }

    /// A type as `format_type` spells it. `Some(-1)` is a type that is known to have no modifier,
    /// which matters for `character` and `bit`: without a modifier, the standard gives them a length
    /// of 1. `None` doesn't say.
    pub fn format_type(&self, oid: Oid, modifier: Option<i32>) -> String {
        if oid == oids::NONE {
            return "-".to_owned();
        }
        let Some(row) = self.catalog.data_type(oid) else { return "???".to_owned() };
        if row.is_array() {
            // The element of an array is never an array, unless the catalog is damaged.
            let element = self.catalog.data_type(row.element);
            if let Some(element) = element.filter(|element| !element.is_array()) {
                return self.format_type(element.oid, modifier) + "[]";
            }
        }
        if let Some(text) = modifier.and_then(|modifier| type_with_modifier(oid, modifier)) {
            return text;
        }
        if let Some(name) = standard_name(oid, modifier.is_some()) {
            return name.to_owned();
        }
        let (major, encoding) =
            (self.catalog.database().version().major(), self.catalog.encoding());
        let shown = |name: &[u8]| {
            let mut quoted = Vec::new();
            write_identifier(name, major, &mut quoted);
            encoding.decode(&quoted)
        };
        let mut text = String::new();
        if !self.is_type_visible(row) {
            let schema = self.catalog.database().schema(row.schema);
            text = schema.map_or_else(|| row.schema.to_string(), |schema| shown(&schema.name));
            text.push('.');
        }
        text += &shown(&row.name);
        // A type without an output function for its modifier shows the number.
        match modifier {
            Some(modifier) if modifier >= 0 && row.modifier_out == oids::NONE => {
                format!("{text}({modifier})")
            }
            _ => text,
        }
    }
}

/// The standard's name of a type. `is_exact` says that the type is known to have no modifier.
fn standard_name(oid: Oid, is_exact: bool) -> Option<&'static str> {
    Some(match oid {
        oids::BIT if is_exact => "\"bit\"",
        oids::BPCHAR if is_exact => "bpchar",
        oids::BIT => "bit",
        oids::BPCHAR => "character",
        oids::BOOL => "boolean",
        oids::FLOAT4 => "real",
        oids::FLOAT8 => "double precision",
        oids::INT2 => "smallint",
        oids::INT4 => "integer",
        oids::INT8 => "bigint",
        oids::NUMERIC => "numeric",
        oids::INTERVAL => "interval",
        oids::TIME => "time without time zone",
        oids::TIMETZ => "time with time zone",
        oids::TIMESTAMP => "timestamp without time zone",
        oids::TIMESTAMPTZ => "timestamp with time zone",
        oids::VARBIT => "bit varying",
        oids::VARCHAR => "character varying",
        oids::JSON => "json",
        _ => return None,
    })
}
