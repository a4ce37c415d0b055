//! Bound trees, made by hand.

use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_format::Oid;
use trunkline_format::catalog::Generated;
use trunkline_sql::bound::{
    BoundStatement, Column, ColumnId, Columns, OutputColumn, Query, Relation, SqlType, Subqueries,
    TableColumn, TableScan,
};

/// A statement under construction.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) columns: Columns,
    pub(crate) subqueries: Subqueries,
}

impl Tree {
    /// Adds a column.
    pub(crate) fn column(&mut self, name: &str, ty: SqlType) -> ColumnId {
        self.columns.add(Column { name: name.into(), relation: None, ty, origin: None })
    }

    /// A scan of all columns that a table stores, and of `ctid` if it is wanted.
    pub(crate) fn table(
        &mut self,
        database: &Database,
        name: &str,
        ctid: bool,
    ) -> (Relation, Vec<ColumnId>) {
        let relation = database.resolve(name.as_bytes()).expect("a table");
        self.scan(database, relation, ctid)
    }

    /// The same without the tables that inherit from it.
    pub(crate) fn only(&mut self, database: &Database, name: &str) -> (Relation, Vec<ColumnId>) {
        let (mut relation, columns) = self.table(database, name, true);
        if let Relation::Table(scan) = &mut relation {
            scan.inherit = false;
        }
        (relation, columns)
    }

    fn scan(
        &mut self,
        database: &Database,
        relation: &RelationInfo,
        ctid: bool,
    ) -> (Relation, Vec<ColumnId>) {
        let mut columns = Vec::new();
        if ctid {
            let id = self.column("ctid", SqlType::new(Oid(27)));
            columns.push(TableColumn { id, number: -1 });
        }
        for column in database.columns(relation).expect("columns") {
            if column.dropped || column.generated == Generated::Virtual {
                continue;
            }
            let (oid, modifier, collation) = (column.type_oid, column.modifier, column.collation);
            let name = String::from_utf8_lossy(&column.name).into_owned();
            let id = self.column(&name, SqlType { oid, modifier, collation });
            columns.push(TableColumn { id, number: i16::try_from(column.number).expect("small") });
        }
        let ids = columns.iter().map(|column| column.id).collect();
        let (table, alias) = (relation.oid, "t".into());
        (Relation::Table(TableScan { table, alias, inherit: true, columns }), ids)
    }

    /// The finished statement.
    pub(crate) fn statement(self, relation: Relation, output: &[ColumnId]) -> BoundStatement {
        let output = output.iter().map(|&id| {
            let name = self.columns.get(id).name.clone();
            OutputColumn { id, name }
        });
        let query = Query { relation, output: output.collect() };
        BoundStatement { columns: self.columns, subqueries: self.subqueries, query }
    }
}
