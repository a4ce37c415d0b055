//! **Visibility**: whether the name of an object alone stands for that object.
//!
//! An object is visible if its schema is in the search path, and no schema that is searched earlier has
//! an object of the same name. `public.pg_class` is not visible, because `pg_catalog` comes first.
//! Functions and operators only hide others with the same argument types.

use trunkline_format::Oid;

use super::namespace::{Namespace, ObjectName};
use super::search_path::SearchPath;
use super::sql_catalog::SqlCatalog;
use crate::error::SqlError;

impl SqlCatalog {
    /// Whether another schema of the search path has functions with this name, too.
    pub fn has_rival(&self, name: &[u8], schema: Oid, path: &SearchPath) -> bool {
        let mut named = self.procedures_named(name);
        named.any(|row| row.schema != schema && path.searched().contains(&row.schema))
    }
}

impl Namespace<'_> {
    /// Whether no object in these schemas, which have the same name, precedes the one in `schema`.
    fn is_first(&self, schema: Oid, rivals: impl Iterator<Item = Oid>) -> bool {
        let Some(own) = self.place(None, schema) else { return false };
        rivals.filter_map(|rival| self.place(None, rival)).all(|place| own <= place)
    }

    /// `pg_table_is_visible`, for relations of all kinds. `None` if there is no such relation; the
    /// same holds for the other classes.
    pub fn is_relation_visible(&self, oid: Oid) -> Option<bool> {
        let database = self.catalog().database();
        let relation = database.relation(oid)?;
        let schemas = self.path().searched().iter();
        let rivals = schemas.filter(|&&schema| {
            let schema = database.schema(schema);
            schema.is_some_and(|schema| database.find(schema, &relation.name).is_some())
        });
        Some(self.is_first(relation.schema, rivals.copied()))
    }

    /// `pg_function_is_visible`.
    pub fn is_function_visible(&self, oid: Oid) -> Option<bool> {
        let found = self.catalog().procedure(oid)?;
        let rivals = self.catalog().procedures_named(&found.name);
        let rivals = rivals.filter(|rival| rival.arguments == found.arguments);
        Some(self.is_first(found.schema, rivals.map(|rival| rival.schema)))
    }

    /// `pg_operator_is_visible`.
    pub fn is_operator_visible(&self, oid: Oid) -> Option<bool> {
        let found = self.catalog().operator(oid)?;
        let rivals = self.catalog().operators_named(&found.name);
        let rivals = rivals.filter(|rival| (rival.left, rival.right) == (found.left, found.right));
        Some(self.is_first(found.schema, rivals.map(|rival| rival.schema)))
    }

    /// `pg_collation_is_visible`. A collation for another encoding is never found by its name.
    pub fn is_collation_visible(&self, oid: Oid) -> Result<Option<bool>, SqlError> {
        let Some(found) = self.catalog().collation(oid) else { return Ok(None) };
        if self.place(None, found.schema).is_none() {
            return Ok(Some(false));
        }
        let name = self.catalog().encoding().decode(&found.name);
        let named = self.collation_named(ObjectName::unqualified(&name));
        Ok(Some(named.is_ok_and(|named| named.oid == oid)))
    }

    /// `pg_opclass_is_visible`.
    pub fn is_operator_class_visible(&self, oid: Oid) -> Option<bool> {
        let all = || self.catalog().database().operator_classes();
        let found = all().find(|row| row.oid == oid)?;
        let rivals = all().filter(|row| row.method == found.method && row.name == found.name);
        Some(self.is_first(found.schema, rivals.map(|rival| rival.schema)))
    }

    /// `pg_opfamily_is_visible`.
    pub fn is_operator_family_visible(&self, oid: Oid) -> Option<bool> {
        let all = self.catalog().families();
        let found = all.iter().find(|row| row.oid == oid)?;
        let rivals = all.iter();
        let rivals = rivals.filter(|row| row.method == found.method && row.name == found.name);
        Some(self.is_first(found.schema, rivals.map(|rival| rival.schema)))
    }

    /// Whether one of these objects is visible, given as OID, schema and name.
    pub fn is_object_visible<'r>(
        &self,
        oid: Oid,
        all: impl Iterator<Item = (Oid, Oid, &'r [u8])> + Clone,
    ) -> Option<bool> {
        let (_, schema, name) = all.clone().find(|(other, ..)| *other == oid)?;
        let rivals = all.filter(|(_, _, other)| *other == name);
        Some(self.is_first(schema, rivals.map(|(_, schema, _)| schema)))
    }
}
