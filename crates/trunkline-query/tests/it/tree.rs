//! Bound trees, made by hand.

use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_format::Oid;
use trunkline_format::catalog::Generated;
use trunkline_query::StatementContext;
use trunkline_sql::bound::{
    BoundStatement, CallForm, Column, ColumnId, Columns, Expr, ExprKind, OutputColumn, Query,
    Relation, SortKey, SqlType, Subqueries, TableColumn, TableScan,
};

pub(crate) const BOOL: SqlType = SqlType::new(Oid(16));
pub(crate) const INT4: SqlType = SqlType::new(Oid(23));
pub(crate) const INT8: SqlType = SqlType::new(Oid(20));

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

    /// A reference to a column.
    pub(crate) fn reference(&self, id: ColumnId) -> Expr {
        Expr::new(ExprKind::Column(id), self.columns.get(id).ty)
    }

    /// The finished statement.
    pub(crate) fn statement(self, relation: Relation, output: &[ColumnId]) -> BoundStatement {
        let output = output.iter().map(|&id| {
            let name = self.columns.get(id).name.clone();
            OutputColumn { id, name }
        });
        let query = Query { relation, output: output.collect() };
        BoundStatement { columns: self.columns, subqueries: self.subqueries, query, nesting: 0 }
    }
}

/// A constant.
pub(crate) fn int4(value: i32) -> Expr {
    Expr::new(ExprKind::Constant(Some(value.to_le_bytes().into())), INT4)
}

/// A constant.
pub(crate) fn int8(value: i64) -> Expr {
    Expr::new(ExprKind::Constant(Some(value.to_le_bytes().into())), INT8)
}

/// A call of the function with this name in C.
pub(crate) fn call(
    context: &StatementContext,
    source: &str,
    arguments: Vec<Expr>,
    ty: SqlType,
) -> Expr {
    let catalog = &context.environment.catalog;
    let found = (1..10_000)
        .map(Oid)
        .find(|&oid| catalog.procedure(oid).is_some_and(|row| row.source() == source.as_bytes()));
    let function = found.unwrap_or_else(|| panic!("no function {source}"));
    let collation = arguments.first().map_or(Oid(0), |argument| argument.ty.collation);
    Expr::new(ExprKind::Call { function, arguments, collation, form: CallForm::Function }, ty)
}

/// Rows in ascending order.
pub(crate) fn sorted(input: Relation, keys: Vec<Expr>) -> Relation {
    let keys = keys.into_iter();
    let keys = keys.map(|expr| SortKey { expr, descending: false, nulls_first: false });
    Relation::Sort { input: Box::new(input), keys: keys.collect() }
}

/// A filter.
pub(crate) fn filtered(input: Relation, condition: Expr) -> Relation {
    Relation::Filter { input: Box::new(input), condition }
}
