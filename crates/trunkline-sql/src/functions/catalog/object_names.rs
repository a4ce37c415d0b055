//! Names in definitions: columns, relations, collations and operator classes.
//!
//! A schema is shown if the name alone doesn't stand for the object, and an operator class or a
//! collation is shown if it isn't the default.

use trunkline_format::Oid;

use super::deparse::Deparser;
use super::node_fields::damaged;
use crate::error::SqlError;

impl Deparser<'_> {
    /// The names of columns by their numbers.
    pub(super) fn columns(&self, table: Oid, numbers: &[i16]) -> Result<String, SqlError> {
        let database = self.names.catalog().database();
        let relation = database.relation(table).ok_or_else(|| damaged("table"))?;
        let columns = database.columns(relation).map_err(|_| damaged("columns"))?;
        let names = numbers.iter().map(|number| {
            let at = usize::try_from(number - 1).map_err(|_| damaged("column"))?;
            let column = columns.get(at).ok_or_else(|| damaged("column"))?;
            Ok(self.quoted(&column.name))
        });
        Ok(names.collect::<Result<Vec<String>, SqlError>>()?.join(", "))
    }

    /// The name of a relation, with its schema if it isn't visible or if `qualified`.
    pub(super) fn relation_name(&self, oid: Oid, qualified: bool) -> Result<String, SqlError> {
        let database = self.names.catalog().database();
        let relation = database.relation(oid).ok_or_else(|| damaged("relation"))?;
        let name = self.quoted(&relation.name);
        if !qualified && self.names.is_relation_visible(oid) == Some(true) {
            return Ok(name);
        }
        let schema = database.schema(relation.schema).ok_or_else(|| damaged("schema"))?;
        Ok(format!("{}.{name}", self.quoted(&schema.name)))
    }

    /// `COLLATE` with the collation of a key, unless it is that of the column.
    pub(super) fn collation(&self, key: Option<&Oid>, own: Oid) -> Result<String, SqlError> {
        match key {
            Some(&found) if found != Oid(0) && found != own => {
                let catalog = self.names.catalog();
                let row = catalog.collation(found).ok_or_else(|| damaged("collation"))?;
                let name = self.quoted(&row.name);
                if self.names.is_collation_visible(found)? == Some(true) {
                    return Ok(format!(" COLLATE {name}"));
                }
                let schema = catalog.database().schema(row.schema);
                let schema = schema.ok_or_else(|| damaged("schema"))?;
                Ok(format!(" COLLATE {}.{name}", self.quoted(&schema.name)))
            }
            _ => Ok(String::new()),
        }
    }

    /// The operator class of a key, unless it is the default of the type.
    pub(super) fn operator_class(&self, class: Option<&Oid>, ty: Oid) -> Result<String, SqlError> {
        let catalog = self.names.catalog();
        let database = catalog.database();
        let row = class.and_then(|&oid| database.operator_classes().find(|row| row.oid == oid));
        let row = row.ok_or_else(|| damaged("operator class"))?;
        if catalog.default_operator_class(ty, row.method) == Some(row.oid) {
            return Ok(String::new());
        }
        let name = self.quoted(&row.name);
        if self.names.is_operator_class_visible(row.oid) == Some(true) {
            return Ok(format!(" {name}"));
        }
        let schema = database.schema(row.schema).ok_or_else(|| damaged("schema"))?;
        Ok(format!(" {}.{name}", self.quoted(&schema.name)))
    }
}
