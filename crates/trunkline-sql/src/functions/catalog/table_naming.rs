//! Names for the tables and columns of a stored query, in PostgreSQL's way (`set_rtable_names`).

use trunkline_format::Oid;
use trunkline_format::node_tree::Node;

use super::deparse::Deparser;
use super::node_fields::{damaged, oid};
use super::query_names::{QueryNames, TableKind, TableNames, kind_of, strings};
use crate::error::SqlError;

impl<'a> Deparser<'a> {
    /// Names the tables of a query inside those that are being printed.
    pub(super) fn query_names(&self, query: &'a Node) -> Result<QueryNames<'a>, SqlError> {
        let mut made = QueryNames { outer: self.query, query, tables: Vec::new() };
        for entry in query.nodes("rtable") {
            let kind = kind_of(entry);
            let name = made.unique(self.own_name(entry, kind)?);
            let mut table =
                TableNames { entry, kind, name, columns: Vec::new(), lists_columns: false };
            self.name_columns(&mut table)?;
            made.tables.push(table);
        }
        Ok(made)
    }

    fn decoded(&self, name: &[u8]) -> String {
        self.names.catalog().encoding().decode(name)
    }

    /// The alias of a table, or its own name.
    fn own_name(&self, entry: &Node, kind: TableKind) -> Result<Option<String>, SqlError> {
        let alias = entry.child("alias").and_then(|alias| alias.text("aliasname"));
        if let Some(alias) = alias {
            return Ok(Some(self.decoded(alias)));
        }
        match kind {
            TableKind::Relation => {
                let database = self.names.catalog().database();
                let relation = database.relation(oid(entry, "relid")?);
                Ok(Some(self.decoded(&relation.ok_or_else(|| damaged("relation"))?.name)))
            }
            TableKind::Join | TableKind::Group => Ok(None),
            _ => {
                let name = entry.child("eref").and_then(|alias| alias.text("aliasname"));
                Ok(name.map(|name| self.decoded(name)))
            }
        }
    }

    /// Names the columns of a table (`set_relation_column_names`).
    fn name_columns(&self, table: &mut TableNames<'_>) -> Result<(), SqlError> {
        let eref = table.entry.child("eref").map_or(&[][..], |alias| alias.list("colnames"));
        let names: Vec<Option<String>> = match table.kind {
            TableKind::Relation => self.column_names(oid(table.entry, "relid")?)?,
            _ => strings(eref).map(|name| (!name.is_empty()).then(|| self.decoded(name))).collect(),
        };
        if self.binding {
            // Rows of the table have the names of its columns as keys in JSON.
            let count = |name: &str| names.iter().flatten().filter(|other| *other == name).count();
            let unique = |(at, name): (usize, &Option<String>)| {
                let name = name.as_ref()?;
                if count(name) == 1 {
                    return Some(name.clone());
                }
                let mut number = format!("c{}", at + 1);
                while count(&number) > 0 {
                    number.push('_');
                }
                Some(number)
            };
            table.columns = match table.kind {
                TableKind::Relation => names,
                _ => names.iter().enumerate().map(unique).collect(),
            };
            table.lists_columns = table.kind != TableKind::Relation;
            return Ok(());
        }
        let aliases = table.entry.child("alias").map_or(&[][..], |alias| alias.list("colnames"));
        let mut given = strings(aliases);
        let mut columns: Vec<Option<String>> = Vec::with_capacity(names.len());
        for name in &names {
            // A dropped column has an alias too, an empty one.
            let alias = given.next().map(|alias| self.decoded(alias));
            columns.push(name.as_ref().map(|name| {
                let wanted = alias.filter(|_| table.kind != TableKind::Join);
                let wanted = wanted.unwrap_or_else(|| name.clone());
                let is_taken = |name: &str| columns.iter().flatten().any(|other| other == name);
                match is_taken(&wanted) && table.kind != TableKind::Join {
                    false => wanted,
                    true => {
                        let mut numbered = (1..).map(|number| format!("{wanted}_{number}"));
                        numbered.find(|name| !is_taken(name)).unwrap_or_default()
                    }
                }
            }));
        }
        table.lists_columns = match table.kind {
            TableKind::Function => true,
            TableKind::XmlTable => false,
            TableKind::Relation => columns != names,
            _ => columns != names || !aliases.is_empty(),
        };
        table.columns = columns;
        Ok(())
    }

    /// The names of a relation's columns. A dropped column has none.
    pub(super) fn column_names(&self, relation: Oid) -> Result<Vec<Option<String>>, SqlError> {
        let database = self.names.catalog().database();
        let relation = database.relation(relation).ok_or_else(|| damaged("relation"))?;
        let columns = database.columns(relation).map_err(|_| damaged("columns"))?.iter();
        Ok(columns.map(|column| (!column.dropped).then(|| self.decoded(&column.name))).collect())
    }
}
