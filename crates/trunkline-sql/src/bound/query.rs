//! A complete query: its rows, and the columns that the client sees.

use super::column::{ColumnId, Columns};
use super::expression::QueryId;
use super::relation::Relation;
use super::stack::with_stack_for;

/// A query, whether it is a whole statement or a subquery.
#[derive(Debug, Clone)]
pub struct Query {
    /// What produces the rows.
    pub relation: Relation,
    /// The output columns, in order. Other columns of `relation` are only used for sorting.
    pub output: Vec<OutputColumn>,
}

/// A column of a query's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputColumn {
    /// The column.
    pub id: ColumnId,
    /// Its name. Names need not be unique.
    pub name: Box<str>,
}

/// All subqueries of a statement that are used as expressions.
#[derive(Debug, Clone, Default)]
pub struct Subqueries(Vec<Query>);

impl Subqueries {
    /// Adds a query.
    ///
    /// # Panics
    /// If there are more than 2³² queries.
    pub fn add(&mut self, query: Query) -> QueryId {
        let number = u32::try_from(self.0.len());
        self.0.push(query);
        assert!(number.is_ok(), "a statement has fewer than 2^32 subqueries");
        QueryId(number.unwrap_or_default())
    }

    /// The ids of all queries.
    pub fn ids(&self) -> Vec<QueryId> {
        (0..).take(self.0.len()).map(QueryId).collect()
    }

    /// The query with this id.
    ///
    /// # Panics
    /// If the id belongs to another statement.
    #[expect(clippy::indexing_slicing, reason = "ids are made by add(), which never removes")]
    pub fn get(&self, id: QueryId) -> &Query {
        &self.0[id.0 as usize]
    }

    /// The query with this id, to be changed.
    ///
    /// # Panics
    /// If the id belongs to another statement.
    #[expect(clippy::indexing_slicing, reason = "ids are made by add(), which never removes")]
    pub fn get_mut(&mut self, id: QueryId) -> &mut Query {
        &mut self.0[id.0 as usize]
    }

    /// Takes out the query with this id, to be changed while others are looked at. The caller must
    /// put it back.
    ///
    /// # Panics
    /// If the id belongs to another statement.
    pub fn take(&mut self, id: QueryId) -> Query {
        let (relation, output) = (Relation::Unit, Vec::new());
        std::mem::replace(self.get_mut(id), Query { relation, output })
    }

    /// Puts a query back.
    ///
    /// # Panics
    /// If the id belongs to another statement.
    pub fn put(&mut self, id: QueryId, query: Query) {
        *self.get_mut(id) = query;
    }
}

/// A bound statement that returns rows.
#[derive(Debug, Clone)]
pub struct BoundStatement {
    /// All columns, of subqueries too.
    pub columns: Columns,
    /// The subqueries that are used as expressions.
    pub subqueries: Subqueries,
    /// The statement's own query.
    pub query: Query,
    /// How deep the trees may nest. Code that recurses over them needs a stack in proportion
    /// ([`with_stack_for`]).
    pub nesting: usize,
}

impl Drop for BoundStatement {
    fn drop(&mut self) {
        let (subqueries, relation) = (
            std::mem::take(&mut self.subqueries),
            std::mem::replace(&mut self.query.relation, Relation::Unit),
        );
        with_stack_for(self.nesting, || drop((subqueries, relation)));
    }
}
