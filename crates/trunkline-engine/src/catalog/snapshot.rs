//! Loads a database's catalogs into a [`Database`], the snapshot.
//!
//! We read `pg_class` and `pg_attribute` first. `pg_class` contains the file numbers of the other
//! catalogs. We decode the catalogs using built-in layouts for each server version. We can't
//! compare those layouts with `pg_attribute` until the end, because we must first decode
//! `pg_attribute` itself.

use trunkline_aio::facade::hash::{Map, Set};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::Oid;
use trunkline_format::catalog::{
    AccessMethodRow, AttributeRow, CatalogRow, CatalogTable, ClassRow, DatabaseRow, Described,
    EnumRow, IndexRow, InheritsRow, InternalFunction, NamespaceRow, OperatorClassRow, PG_AM,
    PG_ATTRIBUTE, PG_CLASS, PG_DATABASE, PG_ENUM, PG_INDEX, PG_INHERITS, PG_NAMESPACE, PG_OPCLASS,
    PG_PROC, PG_RANGE, PG_TABLESPACE, PG_TYPE, TypeRow,
};
use trunkline_format::text_output::{Base, FIRST_USER_OID};

use super::cluster::{CatalogLocator, Cluster, OnDamage, RelationMaps};
use super::database::Database;
use super::error::CatalogError;
use super::reader::{Faults, Reader};
use super::relation::{ColumnInfo, RelationInfo, catalog_in};
use crate::pool::Backend;

/// The catalogs in a snapshot.
static CATALOGS: [&CatalogTable; 12] = [
    &PG_CLASS,
    &PG_ATTRIBUTE,
    &PG_DATABASE,
    &PG_TABLESPACE,
    &PG_NAMESPACE,
    &PG_TYPE,
    &PG_ENUM,
    &PG_RANGE,
    &PG_INHERITS,
    &PG_INDEX,
    &PG_AM,
    &PG_OPCLASS,
];

impl Database {
    /// Loads the catalogs of a database.
    pub(super) fn load(
        cluster: &Arc<Cluster>,
        backend: &mut Backend,
        info: &DatabaseRow,
    ) -> Result<Self, CatalogError> {
        let maps = RelationMaps::read(cluster, info)?;
        let mut faults = Faults::new(cluster.on_damage);
        let mut reader = Reader { backend, cluster, faults: &mut faults };
        let unknown = |table: &'static CatalogTable| CatalogError::NoCatalog {
            table: table.name,
            database: String::from_utf8_lossy(&info.name).into_owned(),
        };
        let mapped = |table| maps.mapped(table).ok_or_else(|| unknown(table));
        let rows = reader.rows::<ClassRow>(mapped(&PG_CLASS)?)?;
        if rows.is_empty() {
            // The catalogs themselves have rows in pg_class, so it can't be empty. All of its pages
            // must be missing or damaged.
            return Err(reader.faults.take_first().unwrap_or_else(|| unknown(&PG_CLASS)));
        }
        let mut relations: Vec<RelationInfo> = rows
            .into_iter()
            .map(|row| {
                let locator = maps.locate(&row);
                RelationInfo::new(row, locator)
            })
            .collect();
        relations.sort_by_key(|relation| relation.oid);
        let columns = load_columns(&mut reader, mapped(&PG_ATTRIBUTE)?, &mut relations)?;
        // Locates a catalog by its row in pg_class, unless it's mapped. A mapped catalog doesn't
        // need that row or the one of its index, either of which may be missing.
        let find = |table: &'static CatalogTable| {
            let found = maps.mapped(table).or_else(|| catalog_in(&relations, table));
            found.ok_or_else(|| unknown(table))
        };
        let mut schemas = reader.rows_at::<NamespaceRow>(find(&PG_NAMESPACE))?;
        schemas.sort_by_key(|schema| schema.oid);
        let types = reader.rows_at::<TypeRow>(find(&PG_TYPE))?;
        let mut labels: Map<Oid, Vec<(Oid, Vec<u8>)>> = Map::default();
        let (faults_before, enums) = (reader.faults.count(), find(&PG_ENUM));
        // Without its index, nothing shows whether the catalog has lost pages.
        let has_index = enums.as_ref().is_ok_and(|locator| locator.index.is_some());
        let mut enum_rows = reader.rows_at::<EnumRow>(enums)?;
        let has_all_labels = has_index && reader.faults.count() == faults_before;
        enum_rows.sort_by(|one, other| one.order.total_cmp(&other.order));
        for row in enum_rows {
            labels.entry(row.enum_type).or_default().push((row.oid, row.label.into()));
        }
        let ranges = reader.rows_at(find(&PG_RANGE))?;
        let mut children: Map<Oid, Vec<Oid>> = Map::default();
        for row in reader.rows_at::<InheritsRow>(find(&PG_INHERITS))? {
            // As in a query, a partition with a pending DETACH is no longer included.
            if !row.detaching {
                children.entry(row.parent).or_default().push(row.child);
            }
        }
        children.values_mut().for_each(|children| children.sort_unstable());
        let mut indexes = reader.rows_at::<IndexRow>(find(&PG_INDEX))?;
        indexes.sort_by_key(|row| (row.table, row.index));
        let access_methods = reader.rows_at::<AccessMethodRow>(find(&PG_AM))?;
        let operator_classes = reader.rows_at::<OperatorClassRow>(find(&PG_OPCLASS))?;
        let mut database = Self {
            cluster: Arc::clone(cluster),
            info: info.clone(),
            relations,
            by_name: Vec::new(),
            columns,
            schemas,
            types: types.into_iter().map(|row| (row.oid, row)).collect(),
            printed_as: Map::default(),
            output_fault: None,
            labels,
            has_all_labels,
            ranges,
            children,
            indexes,
            access_methods: access_methods.into_iter().map(|row| (row.oid, row.name)).collect(),
            operator_classes: operator_classes.into_iter().map(|row| (row.oid, row)).collect(),
            objects: Mutex::default(),
            expressions: Mutex::default(),
            rules: Mutex::default(),
            statistics: Mutex::default(),
            faults: Vec::new(),
        };
        // Check all layouts before anything can use the snapshot. Rows are decoded with bounds
        // checks, so if a layout is wrong, the worst that can have happened is that we got wrong
        // values.
        for table in CATALOGS {
            if let Err(error) = database.check_layout(table) {
                // If we skipped a damaged pg_attribute row, the layout can't match. In that case,
                // this error is just a consequence of damage that we have already recorded.
                faults.take_consequence(error)?;
            }
        }
        database.find_printed_as(backend, &mut faults)?;
        database.by_name = database.places_by_name();
        database.faults = faults.into_found();
        Ok(database)
    }

    /// Finds the base types of extensions whose output function is one of the server's own, and
    /// records for each of them a built-in type with the same output function. `pg_proc` is one of
    /// the largest catalogs, so we only read it if there are base types of extensions.
    ///
    /// If damage is not being collected, we ignore damaged rows and pages of `pg_proc`: if we can't
    /// find a type's function, we just refuse to print the type. But if we don't know whether a row
    /// is visible, because a file of the commit log is missing, we must remember that for the
    /// refusal, which would blame the type instead.
    fn find_printed_as(
        &mut self,
        backend: &mut Backend,
        faults: &mut Faults,
    ) -> Result<(), CatalogError> {
        let is_added = |row: &TypeRow| row.oid.0 >= FIRST_USER_OID;
        let bases = || self.types.values().filter(|row| row.kind == b'b' && !row.is_array());
        let locator = catalog_in(&self.relations, &PG_PROC);
        let Some(locator) = locator.filter(|_| bases().any(is_added)) else { return Ok(()) };
        if self.check_layout(&PG_PROC).is_err() {
            return Ok(());
        }
        let mut found = Faults::new(OnDamage::Rescue);
        let mut reader = Reader { backend, cluster: &self.cluster, faults: &mut found };
        let outputs: Set<Oid> = bases().map(|row| row.output).collect();
        let mut sources: Map<Oid, Box<[u8]>> = Map::default();
        reader.scan(locator, |tuple| {
            if let Some(function) = InternalFunction::decode(tuple)?
                && outputs.contains(&function.oid)
            {
                sources.insert(function.oid, function.source);
            }
            Ok(())
        })?;
        let mut output_fault = None;
        for error in found.into_found() {
            if self.cluster.on_damage != OnDamage::Fail || error.lost_pages() {
                faults.take(error)?;
            } else if error.file_fault().is_some() {
                output_fault.get_or_insert(Arc::new(error));
            }
        }
        // If several built-in types have the same function, it doesn't matter which of them we
        // choose. We sort them so that it is always the same one.
        let mut built_in: Vec<&TypeRow> =
            bases().filter(|row| Base::from_oid(row.oid).is_some()).collect();
        built_in.sort_by_key(|row| row.oid);
        let like = |row: &TypeRow| {
            let source = sources.get(&row.output)?;
            let same = |row: &&&TypeRow| sources.get(&row.output) == Some(source);
            Some((row.oid, built_in.iter().find(same)?.oid))
        };
        let printed_as = bases().filter(|row| is_added(row)).filter_map(like).collect();
        (self.printed_as, self.output_fault) = (printed_as, output_fault);
        Ok(())
    }

    /// Compares the columns that `pg_attribute` lists for a catalog with the layout that we used to
    /// decode it.
    pub(super) fn check_layout(&self, table: &'static CatalogTable) -> Result<(), CatalogError> {
        if self.faults.iter().any(CatalogError::lost_pages) {
            // Rows of pg_attribute may be missing. We have already reported that.
            return Ok(());
        }
        let found = self.relation(table.oid);
        let columns = found.and_then(|relation| self.columns.get(relation.columns()));
        let described = columns.unwrap_or_default().iter().map(|column| Described {
            name: &column.name,
            number: i16::try_from(column.number).unwrap_or_default(),
            attribute: column.attribute,
            dropped: column.dropped,
        });
        let agrees = table.layout(self.cluster.version).agrees(described);
        agrees.map_err(|source| CatalogError::Layout { database: self.display_name(), source })
    }
}

/// Reads the columns of all relations and sorts them by relation and column number. Also records in
/// each of the `relations`, which must be sorted by OID, which columns belong to it.
fn load_columns(
    reader: &mut Reader<'_>,
    locator: CatalogLocator,
    relations: &mut [RelationInfo],
) -> Result<Vec<ColumnInfo>, CatalogError> {
    let mut columns = Vec::new();
    reader.scan(locator, |tuple| {
        let row = AttributeRow::decode(tuple)?;
        let relation = row.relation;
        columns.extend(ColumnInfo::of_row(row)?.map(|column| (relation, column)));
        Ok(())
    })?;
    columns.sort_by_key(|(relation, column)| (*relation, column.number));
    for relation in relations {
        // Columns of a relation without a pg_class row remain unassigned. Only damage can leave
        // such columns.
        let first = columns.partition_point(|(owner, _)| *owner < relation.oid);
        let end = columns.partition_point(|(owner, _)| *owner <= relation.oid);
        relation.set_columns(first..end);
    }
    Ok(columns.into_iter().map(|(_, column)| column).collect())
}
