//! Catalog look-ups for printing values: types, columns, enum labels, object names.
//!
//! Our output functions use these look-ups instead of PostgreSQL's syscache. The look-ups must not
//! do any I/O, because we hold a share lock on a page while we print its rows. A caller that wants
//! to print types such as `regproc` must therefore call [`Database::load_names`] first. Otherwise
//! we print their values as numbers.

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::hash::Set;
use trunkline_format::Oid;
use trunkline_format::catalog::{ObjectRow, TypeRow};
use trunkline_format::text_output::{Base, ColumnRow, ObjectClass, Type, TypeCatalog};

use super::cluster::OnDamage;
use super::database::Database;
use super::error::CatalogError;
use super::objects::{Objects, catalog_of, classes_of};
use super::reader::{Faults, Reader};
use crate::pool::Backend;

impl Database {
    /// Loads the catalogs needed to print values of these types (for example, `pg_proc` for
    /// `regproc`), unless they're already loaded. This includes the component types of arrays,
    /// composites, ranges and domains. If two sessions load the same catalog concurrently, the
    /// second one replaces the first one's result, which is OK because both results are identical.
    ///
    /// # Errors
    /// [`CatalogError`]: a catalog is damaged, or cannot be read.
    pub fn load_names(
        &self,
        backend: &mut Backend,
        types: impl IntoIterator<Item = Oid>,
    ) -> Result<(), CatalogError> {
        for class in self.classes_needed(types) {
            let Some(table) = catalog_of(class) else { continue };
            if self.objects.lock().contains_key(&class) {
                continue;
            }
            self.check_layout(table)?;
            let locator = self.catalog(table)?;
            // Damage in these catalogs affects only callers that print these types. We therefore
            // always return it as an error, even if other damage is being collected.
            let mut faults = Faults::new(OnDamage::Fail);
            let mut reader = Reader { backend, cluster: &self.cluster, faults: &mut faults };
            let mut rows = Vec::new();
            reader.scan(locator, |tuple| {
                rows.push(ObjectRow::decode(tuple)?);
                Ok(())
            })?;
            self.objects.lock().insert(class, Arc::new(Objects::new(rows)));
        }
        Ok(())
    }

    /// Returns true if any column of any relation has a type for which the `test` closure returns
    /// true, or a type with such a component.
    pub fn has_type(&self, test: &dyn Fn(Base) -> bool) -> bool {
        let columns = self.columns.iter().filter(|column| !column.dropped);
        let types: Set<Oid> = columns.map(|column| column.type_oid).collect();
        types.into_iter().any(|oid| Type::resolve(oid, self).is_ok_and(|ty| ty.contains(test)))
    }

    /// The on-demand object classes that values of these types can refer to.
    fn classes_needed(&self, types: impl IntoIterator<Item = Oid>) -> Vec<ObjectClass> {
        // Types can be nested to any depth, and damaged rows may even form a cycle, so we must keep
        // track of the types we have already seen.
        let mut seen = Set::default();
        let mut to_see: Vec<Oid> = types.into_iter().collect();
        let mut classes = Vec::new();
        while let Some(oid) = to_see.pop() {
            if oid == Oid(0) || !seen.insert(oid) {
                continue;
            }
            for class in classes_of(oid) {
                if !classes.contains(class) {
                    classes.push(*class);
                }
            }
            let Some(row) = self.types.get(&oid) else { continue };
            to_see.extend([row.element, row.base]);
            to_see.extend(self.printed_as(oid));
            to_see.extend(self.range_subtype(oid));
            to_see.extend(self.multirange_range(oid));
            let columns = self.relation(row.relation).and_then(|found| self.columns(found).ok());
            to_see.extend(columns.into_iter().flatten().map(|column| column.type_oid));
        }
        classes
    }

    /// A class's objects. `None` if its catalog is loaded on demand and hasn't been loaded.
    fn objects(&self, class: ObjectClass) -> Option<Arc<Objects>> {
        let mut all = self.objects.lock();
        if let Some(found) = all.get(&class) {
            return Some(Arc::clone(found));
        }
        // Sorting a catalog by name takes a while, so we do it only once, on first use. Other
        // sessions have to wait for the lock in the meantime, but they never wait for I/O, because
        // sorting doesn't do any.
        let made = Arc::new(Objects::new(self.loaded_objects(class)?));
        all.insert(class, Arc::clone(&made));
        Some(made)
    }

    /// The objects of a class that the snapshot contains.
    fn loaded_objects(&self, class: ObjectClass) -> Option<Vec<ObjectRow>> {
        let object = |oid, schema, name: &[u8]| ObjectRow {
            oid,
            schema,
            name: name.into(),
            arguments: Vec::new(),
        };
        Some(match class {
            ObjectClass::Relation => {
                let rows = self.relations.iter();
                rows.map(|row| object(row.oid, row.schema, &row.name)).collect()
            }
            ObjectClass::Type => {
                self.types.values().map(|row| object(row.oid, row.schema, &row.name)).collect()
            }
            ObjectClass::Schema => {
                self.schemas.iter().map(|row| object(row.oid, Oid(0), &row.name)).collect()
            }
            ObjectClass::Database => {
                let rows = self.cluster.databases.iter();
                rows.map(|row| object(row.oid, Oid(0), &row.name)).collect()
            }
            _ => return None,
        })
    }
}

impl TypeCatalog for Database {
    fn type_row(&self, oid: Oid) -> Option<TypeRow> {
        self.types.get(&oid).cloned()
    }

    fn columns(&self, relation: Oid) -> Option<Vec<ColumnRow>> {
        let columns = Self::columns(self, self.relation(relation)?).ok()?;
        let row = |column: &super::ColumnInfo| ColumnRow {
            type_oid: column.type_oid,
            modifier: column.modifier,
            attribute: column.attribute,
            dropped: column.dropped,
        };
        Some(columns.iter().map(row).collect())
    }

    fn enum_labels(&self, enum_type: Oid) -> Vec<(Oid, Vec<u8>)> {
        self.labels.get(&enum_type).cloned().unwrap_or_default()
    }

    fn range_subtype(&self, range: Oid) -> Option<Oid> {
        self.ranges.iter().find(|row| row.range == range).map(|row| row.subtype)
    }

    fn multirange_range(&self, multirange: Oid) -> Option<Oid> {
        self.ranges.iter().find(|row| row.multirange == multirange).map(|row| row.range)
    }

    fn printed_as(&self, base_type: Oid) -> Option<Oid> {
        self.printed_as.get(&base_type).copied()
    }

    fn object(&self, class: ObjectClass, oid: Oid) -> Option<ObjectRow> {
        self.objects(class)?.find(oid).cloned()
    }

    fn objects_named(&self, class: ObjectClass, name: &[u8]) -> Vec<ObjectRow> {
        self.objects(class).map_or_else(Vec::new, |objects| objects.named(name).to_vec())
    }
}
