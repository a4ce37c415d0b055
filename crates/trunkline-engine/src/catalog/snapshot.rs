//! A database's catalogs, read into the snapshot that [`Database`] is.
//!
//! Everything is scanned once, relations and columns first: they say where the others are. Then it
//! is compared with what servers of the cluster's version have.

use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::Oid;
use trunkline_format::catalog::{
    AttributeRow, CatalogTable, PG_AM, PG_ATTRIBUTE, PG_CLASS, PG_DATABASE, PG_ENUM, PG_INDEX,
    PG_INHERITS, PG_NAMESPACE, PG_OPCLASS, PG_RANGE, PG_TABLESPACE, PG_TYPE,
};

use super::database::Database;
use super::error::CatalogError;
use super::load::{OwnedColumn, Places};
use super::reader::{Faults, Reader};
use super::relation::{ColumnInfo, DatabaseInfo, RelationInfo};
use super::{Cluster, database_place, read_map};
use crate::pool::Backend;

impl Database {
    /// Reads the catalogs of a database.
    pub(super) fn load(
        cluster: &Arc<Cluster>,
        backend: &mut Backend,
        info: &DatabaseInfo,
    ) -> Result<Self, CatalogError> {
        let place = database_place(info.oid, info.tablespace);
        let map = read_map(&cluster.storage, &place, cluster.version)?;
        let places = Places {
            database: info.oid,
            tablespace: info.tablespace,
            map: &map,
            shared_map: &cluster.map,
        };
        let mut faults = Faults::new(cluster.on_damage);
        let mut reader = Reader {
            backend,
            storage: &cluster.storage,
            transactions: &cluster.transactions,
            version: cluster.version,
            faults: &mut faults,
        };
        let nowhere = |table: &'static CatalogTable| CatalogError::NoCatalog {
            table: table.name,
            database: String::from_utf8_lossy(&info.name).into_owned(),
        };
        let mapped = |table| places.mapped(table).ok_or_else(|| nowhere(table));
        let mut relations = reader.relations(&places, mapped(&PG_CLASS)?)?;
        let columns = reader.columns(mapped(&PG_ATTRIBUTE)?)?;
        let columns = give_columns(&mut relations, columns);
        let find = |table: &'static CatalogTable| {
            let at = relations.binary_search_by_key(&table.oid, |relation| relation.oid).ok();
            let relation = at.and_then(|at| relations.get(at));
            let found = relation.and_then(|relation| relation.locator);
            // A mapped one needs no row.
            found.or_else(|| places.mapped(table)).ok_or_else(|| nowhere(table))
        };
        let mut database = Self {
            schemas: reader.found(find(&PG_NAMESPACE), Reader::schemas)?,
            types: reader.found(find(&PG_TYPE), Reader::types)?,
            labels: reader.found(find(&PG_ENUM), Reader::labels)?,
            ranges: reader.found(find(&PG_RANGE), Reader::ranges)?,
            children: reader.found(find(&PG_INHERITS), Reader::children)?,
            indexes: reader.found(find(&PG_INDEX), Reader::indexes)?,
            access_methods: reader.found(find(&PG_AM), Reader::access_methods)?,
            operator_classes: reader.found(find(&PG_OPCLASS), Reader::operator_classes)?,
            cluster: Arc::clone(cluster),
            info: info.clone(),
            relations,
            by_name: Vec::new(),
            columns,
            objects: Mutex::default(),
            faults: Vec::new(),
        };
        for table in [
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
        ] {
            if let Err(error) = database.check_layout(table) {
                // Where a row of it is missing, it cannot agree.
                faults.take_further(error)?;
            }
        }
        database.by_name = database.places_by_name();
        database.faults = faults.into_found();
        Ok(database)
    }

    /// Compares what the database says of a catalog with what we read it by.
    pub(super) fn check_layout(&self, table: &'static CatalogTable) -> Result<(), CatalogError> {
        let found = self.relation(table.oid);
        let columns = found.and_then(|relation| self.columns.get(relation.columns.clone()));
        let rows: Vec<AttributeRow<'_>> =
            columns.unwrap_or_default().iter().map(|column| row_of(table.oid, column)).collect();
        table
            .layout(self.cluster.version)
            .agrees(&rows)
            .map_err(|source| CatalogError::Layout { database: self.display_name(), source })
    }
}

/// Says of each relation which of the columns are its own.
fn give_columns(relations: &mut [RelationInfo], columns: Vec<OwnedColumn>) -> Vec<ColumnInfo> {
    let mut next = 0;
    for relation in relations {
        // Both are by OID; columns of a relation that is gone are passed over.
        while columns.get(next).is_some_and(|owned| owned.relation < relation.oid) {
            next += 1;
        }
        let first = next;
        while columns.get(next).is_some_and(|owned| owned.relation == relation.oid) {
            next += 1;
        }
        relation.columns = first..next;
    }
    columns.into_iter().map(|owned| owned.column).collect()
}

fn row_of(relation: Oid, column: &ColumnInfo) -> AttributeRow<'_> {
    AttributeRow {
        relation,
        name: &column.name,
        type_oid: column.type_oid,
        len: column.attribute.len,
        number: i16::try_from(column.number).unwrap_or_default(),
        modifier: column.modifier,
        align: column.attribute.align,
        storage: 0,
        not_null: column.not_null,
        has_missing: false,
        generated: column.generated,
        dropped: column.dropped,
        collation: column.collation,
        missing: None,
    }
}
