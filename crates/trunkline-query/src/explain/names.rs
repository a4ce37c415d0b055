//! The names of columns and relations, as the statement has them.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_sql::bound::{
    BoundStatement, Column, ColumnId, Columns, Expr, ExprKind, Relation, Subqueries,
};

/// What PostgreSQL calls a relation of `VALUES`.
const VALUES: &str = "*VALUES*";

/// The names of a statement.
#[derive(Debug)]
pub(super) struct Names<'a> {
    columns: &'a Columns,
    /// The relation of a column, as `EXPLAIN` names it: no two have the same name.
    relations: BTreeMap<ColumnId, String>,
    /// The names of columns of `VALUES`.
    values: BTreeMap<ColumnId, String>,
    /// Columns of functions in FROM.
    functions: BTreeSet<ColumnId>,
    has_several: bool,
}

/// Collects names.
struct Collector<'a> {
    subqueries: &'a Subqueries,
    names: Names<'a>,
    used: BTreeSet<String>,
    count: usize,
}

impl<'a> Names<'a> {
    /// The names of a statement.
    pub(super) fn of(statement: &'a BoundStatement) -> Self {
        let names = Self {
            columns: &statement.columns,
            relations: BTreeMap::new(),
            values: BTreeMap::new(),
            functions: BTreeSet::new(),
            has_several: false,
        };
        let subqueries = &statement.subqueries;
        let mut collector = Collector { subqueries, names, used: BTreeSet::new(), count: 0 };
        collector.relation(&statement.query.relation);
        let Collector { mut names, used, count, .. } = collector;
        // The columns of a subquery in FROM name it.
        let mut all = (0..).map_while(|number| statement.columns.find(number));
        let is_other = |id: ColumnId| {
            let name = statement.columns.get(id).relation.as_deref();
            name.is_some_and(|name| !used.contains(name) && name != VALUES)
        };
        names.has_several = count > 1 || all.any(is_other);
        names
    }

    /// Whether the statement has more than one relation, so that columns are printed with theirs.
    pub(super) fn has_several(&self) -> bool {
        self.has_several
    }

    /// The column that a field of a plan is; `None` for one that the statement doesn't have.
    pub(super) fn column_of(&self, field: &str) -> Option<ColumnId> {
        self.columns.find(field.strip_prefix('c')?.parse().ok()?)
    }

    /// What is known about a column; `None` for one that lowering has added.
    pub(super) fn column(&self, id: ColumnId) -> Option<&Column> {
        self.columns.find(id.number()).map(|id| self.columns.get(id))
    }

    /// The name of a column's relation, and its own.
    pub(super) fn name(&self, id: ColumnId) -> (Option<&str>, &str) {
        let Some(column) = self.column(id) else { return (None, "?column?") };
        let relation = self.relations.get(&id).map(String::as_str);
        let name = self.values.get(&id).map_or(&*column.name, String::as_str);
        (relation.or(column.relation.as_deref()), name)
    }

    /// The alias of a function in FROM of which this is a column.
    pub(super) fn function(&self, id: ColumnId) -> Option<&str> {
        self.functions.contains(&id).then(|| self.name(id).0.unwrap_or_default())
    }
}

impl Collector<'_> {
    fn relation(&mut self, relation: &Relation) {
        relation.inputs(|input| self.relation(input));
        match relation {
            Relation::Table(scan) => {
                let ids: Vec<ColumnId> = scan.columns.iter().map(|column| column.id).collect();
                self.add(&scan.alias, &ids);
            }
            Relation::Values { columns, .. } => {
                self.add(VALUES, columns);
                let named = columns.iter().zip(1..);
                let named = named.map(|(&id, number)| (id, format!("column{number}")));
                self.names.values.extend(named);
            }
            Relation::Functions { functions, ordinality } => {
                let columns = functions.iter().flat_map(|source| source.columns.iter());
                let ids: Vec<ColumnId> = columns.chain(ordinality).copied().collect();
                let first = ids.first().map(|&id| self.names.columns.get(id));
                let alias = first.and_then(|column| column.relation.clone()).unwrap_or_default();
                self.names.functions.extend(&ids);
                self.add(&alias, &ids);
            }
            Relation::CteScan { .. } => self.count += 1,
            _ => {}
        }
        relation.expressions(|expr| self.expression(expr));
    }

    fn expression(&mut self, expr: &Expr) {
        let subqueries = self.subqueries;
        let mut found = Vec::new();
        expr.any(&mut |part| {
            if let ExprKind::Subquery(subquery) = &part.kind {
                found.push(subquery.query);
            }
            false
        });
        found.into_iter().for_each(|query| self.relation(&subqueries.get(query).relation));
    }

    /// Adds a relation, whose name may be taken.
    fn add(&mut self, alias: &str, columns: &[ColumnId]) {
        self.count += 1;
        let numbered = (1..).map(|number| format!("{alias}_{number}"));
        let mut names = std::iter::once(alias.to_owned()).chain(numbered);
        let name = names.find(|name| !self.used.contains(name)).unwrap_or_default();
        self.names.relations.extend(columns.iter().map(|&id| (id, name.clone())));
        self.used.insert(name);
    }
}
