//! From rows of the catalogs to a snapshot: one scan for each catalog, values copied out.
//!
//! What becomes of a row that makes no sense is the [`Reader`]'s matter.

use trunkline_aio::sync::hash::Map;
use trunkline_format::Oid;
use trunkline_format::catalog::{
    AccessMethodRow, AttributeRow, CatalogTable, ClassRow, DatabaseRow, EnumRow, IndexRow,
    InheritsRow, NamedRow, NamespaceRow, OperatorClassRow, PG_AM, PG_ATTRIBUTE, PG_AUTHID,
    PG_CLASS, PG_DATABASE, PG_ENUM, PG_INDEX, PG_INHERITS, PG_NAMESPACE, PG_OPCLASS, PG_RANGE,
    PG_TABLESPACE, PG_TYPE, RangeRow, RoleRow, RowError, TablespaceRow, TypeRow,
};
use trunkline_format::deform::{Attribute, missing_value};
use trunkline_format::relmap::RelationMap;
use trunkline_format::text_output::ObjectRow;
use trunkline_format::varlena::Varlena;

use super::error::CatalogError;
use super::reader::Reader;
use super::relation::{ColumnInfo, DatabaseInfo, RelationInfo, SchemaInfo, TablespaceInfo};
use crate::storage::{GLOBAL_TABLESPACE, RelationLocator};

/// The labels of each enum by its OID: what values hold, and what they are.
pub(super) type Labels = Map<Oid, Vec<(Oid, Vec<u8>)>>;

/// A column and the relation that it is of.
pub(super) struct OwnedColumn {
    pub(super) relation: Oid,
    pub(super) column: ColumnInfo,
}

/// What a row of `pg_class` needs beside itself to say where its files are.
pub(super) struct Places<'r> {
    pub(super) database: Oid,
    pub(super) tablespace: Oid,
    pub(super) map: &'r RelationMap,
    pub(super) shared_map: &'r RelationMap,
}

impl Places<'_> {
    /// Where the files of a relation are.
    pub(super) fn locate(&self, row: &ClassRow<'_>) -> Option<RelationLocator> {
        use trunkline_format::catalog::Persistence;
        if !row.kind.has_storage() || row.persistence == Persistence::Temporary {
            return None;
        }
        let map = if row.shared { self.shared_map } else { self.map };
        let file = if row.file == 0 { map.file_of(row.oid)? } else { row.file };
        Some(self.locator(row.shared, row.tablespace, file))
    }

    /// Where a catalog is that is in a map.
    pub(super) fn mapped(&self, table: &CatalogTable) -> Option<RelationLocator> {
        let map = if table.shared { self.shared_map } else { self.map };
        map.file_of(table.oid).map(|file| self.locator(table.shared, Oid(0), file))
    }

    fn locator(&self, shared: bool, tablespace: Oid, relfilenode: u32) -> RelationLocator {
        match tablespace {
            _ if shared => {
                RelationLocator { tablespace: GLOBAL_TABLESPACE, database: Oid(0), relfilenode }
            }
            Oid(0) => RelationLocator {
                tablespace: self.tablespace,
                database: self.database,
                relfilenode,
            },
            tablespace => RelationLocator { tablespace, database: self.database, relfilenode },
        }
    }
}

impl Reader<'_> {
    /// The databases, by name.
    pub(super) fn databases(
        &mut self,
        map: &RelationMap,
    ) -> Result<Vec<DatabaseInfo>, CatalogError> {
        let mut databases = Vec::new();
        self.scan(&PG_DATABASE, shared_catalog(&PG_DATABASE, map)?, |fields| {
            let row = DatabaseRow::read(fields)?;
            databases.push(DatabaseInfo {
                oid: row.oid,
                name: row.name.into(),
                encoding: row.encoding,
                is_template: row.is_template,
                allows_connections: row.allows_connections,
                is_invalid: row.connection_limit == -2,
                tablespace: row.tablespace,
                sorts_by_bytes: row.sorts_by_bytes(),
            });
            Ok(())
        })?;
        databases.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(databases)
    }

    /// The tablespaces, by OID.
    pub(super) fn tablespaces(
        &mut self,
        map: &RelationMap,
    ) -> Result<Vec<TablespaceInfo>, CatalogError> {
        let mut tablespaces = Vec::new();
        self.scan(&PG_TABLESPACE, shared_catalog(&PG_TABLESPACE, map)?, |fields| {
            let row = TablespaceRow::read(fields)?;
            tablespaces.push(TablespaceInfo { oid: row.oid, name: row.name.into() });
            Ok(())
        })?;
        tablespaces.sort_by_key(|tablespace| tablespace.oid);
        Ok(tablespaces)
    }

    /// The relations, by OID; without their columns.
    pub(super) fn relations(
        &mut self,
        places: &Places<'_>,
        locator: RelationLocator,
    ) -> Result<Vec<RelationInfo>, CatalogError> {
        let mut relations = Vec::new();
        self.scan(&PG_CLASS, locator, |fields| {
            let row = ClassRow::read(fields)?;
            relations.push(RelationInfo {
                oid: row.oid,
                schema: row.schema,
                name: row.name.into(),
                kind: row.kind,
                persistence: row.persistence,
                access_method: row.access_method,
                locator: places.locate(&row),
                pages: row.pages,
                rows: (row.rows >= 0.0).then_some(row.rows),
                toast: row.toast,
                row_type: row.row_type,
                shared: row.shared,
                populated: row.populated,
                is_partition: row.is_partition,
                frozen_xid: row.frozen_xid,
                min_multi: row.min_multi,
                column_count: row.columns,
                columns: 0..0,
            });
            Ok(())
        })?;
        relations.sort_by_key(|relation| relation.oid);
        Ok(relations)
    }

    /// The columns of all relations, by relation and number.
    pub(super) fn columns(
        &mut self,
        locator: RelationLocator,
    ) -> Result<Vec<OwnedColumn>, CatalogError> {
        let mut columns = Vec::new();
        self.scan(&PG_ATTRIBUTE, locator, |fields| {
            let row = AttributeRow::read(fields)?;
            // System columns are the same in all tables.
            if let Ok(number @ 1..) = u16::try_from(row.number) {
                let column = column(&row, number)?;
                columns.push(OwnedColumn { relation: row.relation, column });
            }
            Ok(())
        })?;
        columns.sort_by_key(|owned| (owned.relation, owned.column.number));
        Ok(columns)
    }

    /// The schemas, by OID.
    pub(super) fn schemas(
        &mut self,
        locator: RelationLocator,
    ) -> Result<Vec<SchemaInfo>, CatalogError> {
        let mut schemas = Vec::new();
        self.scan(&PG_NAMESPACE, locator, |fields| {
            let row = NamespaceRow::read(fields)?;
            schemas.push(SchemaInfo { oid: row.oid, name: row.name.into() });
            Ok(())
        })?;
        schemas.sort_by_key(|schema| schema.oid);
        Ok(schemas)
    }

    /// The types.
    pub(super) fn types(
        &mut self,
        locator: RelationLocator,
    ) -> Result<Map<Oid, trunkline_format::text_output::TypeRow>, CatalogError> {
        let mut types = Map::default();
        self.scan(&PG_TYPE, locator, |fields| {
            let row = TypeRow::read(fields)?;
            let known = trunkline_format::text_output::TypeRow {
                oid: row.oid,
                name: row.name.to_vec(),
                schema: row.schema,
                len: row.len,
                align: row.align,
                kind: row.kind,
                delimiter: row.delimiter,
                relation: row.relation,
                element: row.element,
                output: row.output,
                base: row.base,
            };
            types.insert(row.oid, known);
            Ok(())
        })?;
        Ok(types)
    }

    /// The children of each parent, by OID; partitions that are on their way out are left out.
    pub(super) fn children(
        &mut self,
        locator: RelationLocator,
    ) -> Result<Map<Oid, Vec<Oid>>, CatalogError> {
        let mut children: Map<Oid, Vec<Oid>> = Map::default();
        self.scan(&PG_INHERITS, locator, |fields| {
            let row = InheritsRow::read(fields)?;
            if !row.detaching {
                children.entry(row.parent).or_default().push(row.child);
            }
            Ok(())
        })?;
        children.values_mut().for_each(|children| children.sort_unstable());
        Ok(children)
    }

    /// The indexes, by table and their own OID.
    pub(super) fn indexes(
        &mut self,
        locator: RelationLocator,
    ) -> Result<Vec<IndexRow>, CatalogError> {
        let mut indexes = Vec::new();
        self.scan(&PG_INDEX, locator, |fields| {
            indexes.push(IndexRow::read(fields)?);
            Ok(())
        })?;
        indexes.sort_by_key(|row| (row.table, row.index));
        Ok(indexes)
    }

    /// The labels of each enum.
    pub(super) fn labels(&mut self, locator: RelationLocator) -> Result<Labels, CatalogError> {
        let mut labels = Labels::default();
        self.scan(&PG_ENUM, locator, |fields| {
            let row = EnumRow::read(fields)?;
            labels.entry(row.enum_type).or_default().push((row.oid, row.label.to_vec()));
            Ok(())
        })?;
        Ok(labels)
    }

    /// The ranges.
    pub(super) fn ranges(
        &mut self,
        locator: RelationLocator,
    ) -> Result<Vec<RangeRow>, CatalogError> {
        let mut ranges = Vec::new();
        self.scan(&PG_RANGE, locator, |fields| {
            ranges.push(RangeRow::read(fields)?);
            Ok(())
        })?;
        Ok(ranges)
    }

    /// The names of access methods.
    pub(super) fn access_methods(
        &mut self,
        locator: RelationLocator,
    ) -> Result<Map<Oid, Box<[u8]>>, CatalogError> {
        let mut methods = Map::default();
        self.scan(&PG_AM, locator, |fields| {
            let row = AccessMethodRow::read(fields)?;
            methods.insert(row.oid, row.name.into());
            Ok(())
        })?;
        Ok(methods)
    }

    /// Of each operator class, its family and the type that it is for.
    pub(super) fn operator_classes(
        &mut self,
        locator: RelationLocator,
    ) -> Result<Map<Oid, (Oid, Oid)>, CatalogError> {
        let mut classes = Map::default();
        self.scan(&PG_OPCLASS, locator, |fields| {
            let row = OperatorClassRow::read(fields)?;
            classes.insert(row.oid, (row.family, row.input_type));
            Ok(())
        })?;
        Ok(classes)
    }

    /// The objects in a catalog of objects with names.
    pub(super) fn objects(
        &mut self,
        table: &'static CatalogTable,
        locator: RelationLocator,
    ) -> Result<Vec<ObjectRow>, CatalogError> {
        let mut objects = Vec::new();
        self.scan(table, locator, |fields| {
            objects.push(if table.oid == PG_AUTHID.oid {
                let row = RoleRow::read(fields)?;
                let (oid, name) = (row.oid, row.name.to_vec());
                ObjectRow { oid, schema: Oid(0), name, arguments: Vec::new() }
            } else {
                let row = NamedRow::read(fields)?;
                let (name, arguments) = (row.name.to_vec(), row.arguments);
                ObjectRow { oid: row.oid, schema: row.schema, name, arguments }
            });
            Ok(())
        })?;
        Ok(objects)
    }
}

/// Where a catalog is that all databases share.
pub(super) fn shared_catalog(
    table: &'static CatalogTable,
    map: &RelationMap,
) -> Result<RelationLocator, CatalogError> {
    let none = RelationMap::default();
    let (database, tablespace) = (Oid(0), GLOBAL_TABLESPACE);
    let places = Places { database, tablespace, map: &none, shared_map: map };
    places
        .mapped(table)
        .ok_or_else(|| CatalogError::NoCatalog { table: table.name, database: "global".to_owned() })
}

fn column(row: &AttributeRow<'_>, number: u16) -> Result<ColumnInfo, RowError> {
    let attribute = Attribute { len: row.len, align: row.align };
    let mut room = Vec::new();
    let missing = row.missing.map(|stored| {
        let array = Varlena::parse(stored).and_then(|array| array.payload(&mut room)).ok();
        let value = array.and_then(|array| missing_value(array, attribute));
        value.map(Box::from).ok_or(RowError::Value {
            table: PG_ATTRIBUTE.name,
            column: "attmissingval",
            found: i64::from(stored.first().copied().unwrap_or_default()),
        })
    });
    Ok(ColumnInfo {
        name: row.name.into(),
        number,
        type_oid: row.type_oid,
        modifier: row.modifier,
        attribute,
        collation: row.collation,
        not_null: row.not_null,
        dropped: row.dropped,
        generated: row.generated,
        missing: missing.transpose()?,
    })
}
