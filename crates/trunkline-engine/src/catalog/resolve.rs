//! Relations by name, with a suggestion in the error if there is no such relation.
//!
//! If a name has no schema, we look for it in `pg_catalog` first and then in `public`, as
//! PostgreSQL does with the default `search_path`. There is no session user, so we skip the
//! `"$user"` entry of that default. If only another schema has a relation with that name, the error
//! message suggests it.

use trunkline_format::catalog::NamespaceRow;

use super::database::Database;
use super::error::CatalogError;
use super::name::{QualifiedName, nearest, quoted};
use super::relation::RelationInfo;

/// The schemas in which names without a schema are searched.
const SEARCH_PATH: [&[u8]; 2] = [b"pg_catalog", b"public"];

/// The most names that an error suggests.
const SUGGESTIONS_MAX: usize = 3;

impl Database {
    /// Looks up a relation by name, written as in SQL: `public.accounts`, `"My table"`, or
    /// `mydb.public.accounts`, where `mydb` must be this database.
    ///
    /// # Errors
    /// [`CatalogError`]: the text is not a name, or there is no such relation.
    pub fn resolve(&self, text: &[u8]) -> Result<&RelationInfo, CatalogError> {
        let name = QualifiedName::parse(text).map_err(|problem| CatalogError::Name {
            name: String::from_utf8_lossy(text).into_owned(),
            problem,
        })?;
        self.resolve_name(&name)
    }

    /// Looks up a relation by a parsed name. The name of the database in it, if any, must be this
    /// database's.
    ///
    /// # Errors
    /// [`CatalogError`]: there is no such relation.
    pub fn resolve_name(&self, name: &QualifiedName) -> Result<&RelationInfo, CatalogError> {
        if name.database.as_ref().is_some_and(|database| **database != *self.info.name) {
            let database = self.display_name();
            return Err(CatalogError::OtherDatabase { name: name.to_string(), database });
        }
        let found = match &name.schema {
            Some(schema) => self.find(self.schema_named(schema)?, &name.relation),
            None => SEARCH_PATH
                .iter()
                .find_map(|schema| self.find(self.schema_named(schema).ok()?, &name.relation)),
        };
        found.ok_or_else(|| CatalogError::NoRelation {
            near: self.similar(name),
            name: name.to_string(),
            database: self.display_name(),
        })
    }

    /// The schema with exactly this name.
    ///
    /// # Errors
    /// [`CatalogError::NoSchema`].
    pub fn schema_named(&self, name: &[u8]) -> Result<&NamespaceRow, CatalogError> {
        let found = self.schemas.iter().find(|schema| *schema.name == *name);
        found.ok_or_else(|| CatalogError::NoSchema {
            name: String::from_utf8_lossy(name).into_owned(),
            database: self.display_name(),
            near: nearest(name, self.schemas.iter().map(|schema| &*schema.name)).map(quoted),
        })
    }

    /// The relation of this name in a schema.
    pub fn find(&self, schema: &NamespaceRow, name: &[u8]) -> Option<&RelationInfo> {
        let at = self.by_name.binary_search_by(|&place| match self.relations.get(place as usize) {
            Some(relation) => (relation.schema, &*relation.name).cmp(&(schema.oid, name)),
            None => std::cmp::Ordering::Greater,
        });
        self.relations.get(*self.by_name.get(at.ok()?)? as usize)
    }

    /// The indexes of all relations, sorted by schema and name.
    pub(super) fn places_by_name(&self) -> Vec<u32> {
        let mut places: Vec<u32> = (0..).take(self.relations.len()).collect();
        places.sort_by_key(|&place| {
            self.relations.get(place as usize).map(|relation| (relation.schema, &*relation.name))
        });
        places
    }

    /// Suggestions for a name that doesn't exist. If other schemas have a relation with exactly
    /// that name, we suggest those. Otherwise we suggest similar names in the schemas we searched.
    fn similar(&self, name: &QualifiedName) -> Vec<String> {
        let elsewhere = self.relations.iter().filter(|relation| *relation.name == *name.relation);
        let elsewhere: Vec<String> =
            elsewhere.map(|found| self.qualified_name(found)).take(SUGGESTIONS_MAX).collect();
        if !elsewhere.is_empty() {
            return elsewhere;
        }
        let searched = || {
            self.relations.iter().filter(|relation| {
                let schema = self.schema_name(relation);
                match &name.schema {
                    Some(wanted) => schema == *wanted,
                    // A misspelt name was rarely meant to be that of a catalog or a TOAST table.
                    None => !schema.starts_with(b"pg_"),
                }
            })
        };
        let near = nearest(&name.relation, searched().map(|relation| &*relation.name));
        let found = near.and_then(|near| searched().find(|relation| *relation.name == *near));
        found.map(|found| self.qualified_name(found)).into_iter().collect()
    }
}
