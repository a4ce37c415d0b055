//! Whether two expressions with subqueries compute the same.
//!
//! ```text
//!   select (select max(b) from u where u.a = t.a) from t group by (select max(b) from u where u.a = t.a)
//!           u.a is #3, max is #5                                    u.a is #8, max is #10
//! ```
//!
//! Each subquery is bound on its own, so its columns have ids of their own. Two subqueries are the same
//! if their trees are, after the columns of one have been replaced by those of the other. The names of
//! columns and tables in them must be the same, too. This is what `equal()` says of two query trees in
//! PostgreSQL, where columns are numbered in each query.

use trunkline_aio::facade::hash::Map;

use super::column::{ColumnId, Columns};
use super::expression::{Expr, ExprKind, QueryId, SortKey};
use super::query::Subqueries;
use super::relation::{
    Aggregate, Cte, FrameBound, Relation, RowSource, TableScan, Window, WindowFrame,
};
use super::stack::with_stack;

impl Expr {
    /// Whether two expressions of the same query compute the same, also if they have subqueries.
    pub fn is_same(&self, other: &Self, columns: &Columns, subqueries: &Subqueries) -> bool {
        if self == other {
            return true;
        }
        let has_subquery =
            |expr: &Self| expr.any(&mut |part| matches!(part.kind, ExprKind::Subquery(_)));
        if !has_subquery(self) || !has_subquery(other) {
            return false;
        }
        let (own, ctes) = (Map::default(), Map::default());
        Matching { columns, subqueries, own, ctes }.expr(self, other)
    }
}

/// Two subqueries that are being compared.
struct Matching<'a> {
    columns: &'a Columns,
    subqueries: &'a Subqueries,
    /// For each column of the second subquery, that of the first one.
    own: Map<ColumnId, ColumnId>,
    /// The same for the numbers of `WITH` queries.
    ctes: Map<u32, u32>,
}

/// The subqueries of an expression, in order, not those inside them.
fn subqueries_of(expr: &Expr) -> Vec<QueryId> {
    let mut found = Vec::new();
    expr.any(&mut |part| {
        if let ExprKind::Subquery(subquery) = &part.kind {
            found.push(subquery.query);
        }
        false
    });
    found
}

impl Matching<'_> {
    fn expr(&mut self, one: &Expr, other: &Expr) -> bool {
        with_stack(|| {
            let (ones, others) = (subqueries_of(one), subqueries_of(other));
            let same = ones.len() == others.len()
                && ones.iter().zip(&others).all(|(&one, &other)| self.query(one, other));
            if !same {
                return false;
            }
            let mut other = other.clone();
            self.replace(&mut other, &mut ones.into_iter());
            *one == other
        })
    }

    /// Replaces the columns and the subqueries of an expression, the latter in order.
    fn replace(&self, expr: &mut Expr, subqueries: &mut impl Iterator<Item = QueryId>) {
        with_stack(|| {
            match &mut expr.kind {
                ExprKind::Column(id) => *id = self.own.get(id).copied().unwrap_or(*id),
                ExprKind::Subquery(subquery) => {
                    subquery.query = subqueries.next().unwrap_or(subquery.query);
                }
                _ => {}
            }
            expr.children_mut(|child| self.replace(child, subqueries));
        });
    }

    /// Two columns that are produced at the same place.
    fn produced(&mut self, one: ColumnId, other: ColumnId) -> bool {
        self.own.insert(other, one);
        self.columns.get(one) == self.columns.get(other)
    }

    fn all_produced<'c>(
        &mut self,
        one: impl IntoIterator<Item = &'c ColumnId>,
        other: impl IntoIterator<Item = &'c ColumnId>,
    ) -> bool {
        self.each(one, other, |matching, one, other| matching.produced(*one, *other))
    }

    /// Columns that are used.
    fn all_used(&self, one: &[ColumnId], other: &[ColumnId]) -> bool {
        let other = other.iter().map(|id| self.own.get(id).unwrap_or(id));
        one.iter().eq(other)
    }

    /// Compares the items of two lists in order.
    fn each<T>(
        &mut self,
        one: impl IntoIterator<Item = T>,
        other: impl IntoIterator<Item = T>,
        mut compare: impl FnMut(&mut Self, T, T) -> bool,
    ) -> bool {
        let (mut one, mut other) = (one.into_iter(), other.into_iter());
        loop {
            match (one.next(), other.next()) {
                (Some(one), Some(other)) => {
                    if !compare(self, one, other) {
                        return false;
                    }
                }
                (None, None) => return true,
                _ => return false,
            }
        }
    }

    fn exprs(&mut self, one: &[Expr], other: &[Expr]) -> bool {
        self.each(one, other, Self::expr)
    }

    fn optional(&mut self, one: Option<&Expr>, other: Option<&Expr>) -> bool {
        self.each(one, other, Self::expr)
    }

    fn query(&mut self, one: QueryId, other: QueryId) -> bool {
        let subqueries = self.subqueries;
        let (one, other) = (subqueries.get(one), subqueries.get(other));
        let outputs = |query: &super::query::Query| -> Vec<ColumnId> {
            query.output.iter().map(|output| output.id).collect()
        };
        self.relation(&one.relation, &other.relation)
            && self.all_used(&outputs(one), &outputs(other))
    }

    fn sort_keys(&mut self, one: &[SortKey], other: &[SortKey]) -> bool {
        self.each(one, other, |matching, one, other| {
            let order = |key: &SortKey| (key.descending, key.nulls_first);
            order(one) == order(other) && matching.expr(&one.expr, &other.expr)
        })
    }

    fn calls(&mut self, one: &[(ColumnId, Aggregate)], other: &[(ColumnId, Aggregate)]) -> bool {
        self.each(one, other, |matching, (one_id, one), (other_id, other)| {
            let shape = |call: &Aggregate| (call.function, call.distinct, call.ty, call.collation);
            shape(one) == shape(other)
                && matching.exprs(&one.arguments, &other.arguments)
                && matching.exprs(&one.direct, &other.direct)
                && matching.sort_keys(&one.order_by, &other.order_by)
                && matching.optional(one.filter.as_ref(), other.filter.as_ref())
                && matching.produced(*one_id, *other_id)
        })
    }

    fn sources(&mut self, one: &[RowSource], other: &[RowSource]) -> bool {
        self.each(one, other, |matching, one, other| {
            one.returns_set == other.returns_set
                && one.is_single == other.is_single
                && one.row_type == other.row_type
                && one.defined == other.defined
                && matching.expr(&one.call, &other.call)
                && matching.all_produced(&one.columns, &other.columns)
        })
    }

    fn tables(&mut self, one: &TableScan, other: &TableScan) -> bool {
        (one.table, one.inherit) == (other.table, other.inherit)
            && self.each(&one.columns, &other.columns, |matching, one, other| {
                one.number == other.number && matching.produced(one.id, other.id)
            })
    }

    fn bounds(&mut self, one: &FrameBound, other: &FrameBound) -> bool {
        use FrameBound::{Following, Preceding};
        match (one, other) {
            (Preceding(one), Preceding(other)) | (Following(one), Following(other)) => {
                self.expr(one, other)
            }
            (one, other) => one == other,
        }
    }

    fn windows(&mut self, one: &Window, other: &Window) -> bool {
        let shape = |frame: &WindowFrame| (frame.unit, frame.exclude);
        shape(&one.frame) == shape(&other.frame)
            && self.exprs(&one.partition_by, &other.partition_by)
            && self.sort_keys(&one.order_by, &other.order_by)
            && self.bounds(&one.frame.start, &other.frame.start)
            && self.bounds(&one.frame.end, &other.frame.end)
    }

    fn with(&mut self, one: &[Cte], other: &[Cte]) -> bool {
        self.each(one, other, |matching, one, other| {
            matching.ctes.insert(other.number, one.number);
            one.materialized == other.materialized
                && matching.relation(&one.relation, &other.relation)
                && matching.all_used(&one.columns, &other.columns)
        })
    }

    /// A relation is compared after its inputs, so that their columns are known.
    fn relation(&mut self, one: &Relation, other: &Relation) -> bool {
        with_stack(|| self.inputs(one, other) && self.node(one, other))
    }

    fn inputs(&mut self, one: &Relation, other: &Relation) -> bool {
        if let (Relation::With { ctes: ones, .. }, Relation::With { ctes: others, .. }) =
            (one, other)
            && !self.with(ones, others)
        {
            return false;
        }
        if let (
            Relation::Recursive { number: one, left: one_left, work: ones, .. },
            Relation::Recursive { number: other, left: other_left, work: others, .. },
        ) = (one, other)
        {
            self.ctes.insert(*other, *one);
            return self.relation(&one_left.0, &other_left.0) && self.all_produced(ones, others);
        }
        let (mut ones, mut others) = (Vec::new(), Vec::new());
        one.direct(&mut ones);
        other.direct(&mut others);
        self.each(ones, others, Self::relation)
    }

    /// Compares two relations whose inputs are the same.
    fn node(&mut self, one: &Relation, other: &Relation) -> bool {
        use Relation as R;
        match (one, other) {
            (R::Unit, R::Unit) => true,
            (R::Table(one), R::Table(other)) => self.tables(one, other),
            (
                R::Values { columns: ones, rows: one },
                R::Values { columns: others, rows: other },
            ) => {
                self.each(one, other, |matching, one, other| matching.exprs(one, other))
                    && self.all_produced(ones, others)
            }
            (
                R::Functions { functions: one, ordinality: ones },
                R::Functions { functions: other, ordinality: others },
            ) => self.sources(one, other) && self.all_produced(ones, others),
            (R::ProjectSet { functions: one, .. }, R::ProjectSet { functions: other, .. }) => {
                self.sources(one, other)
            }
            (R::Project { columns: one, .. }, R::Project { columns: other, .. }) => {
                self.each(one, other, |matching, (one_id, one), (other_id, other)| {
                    matching.expr(one, other) && matching.produced(*one_id, *other_id)
                })
            }
            (R::Filter { condition: one, .. }, R::Filter { condition: other, .. }) => {
                self.expr(one, other)
            }
            (
                R::Join { kind: one_kind, condition: one, .. },
                R::Join { kind: other_kind, condition: other, .. },
            ) => one_kind == other_kind && self.optional(one.as_ref(), other.as_ref()),
            (
                R::Aggregate {
                    groups: one_groups,
                    sets: one_sets,
                    groupings: one_places,
                    aggregates: one,
                    ..
                },
                R::Aggregate {
                    groups: other_groups,
                    sets: other_sets,
                    groupings: other_places,
                    aggregates: other,
                    ..
                },
            ) => {
                one_sets == other_sets
                    && self.each(one_groups, other_groups, |matching, one, other| {
                        matching.expr(&one.1, &other.1) && matching.produced(one.0, other.0)
                    })
                    && self.each(one_places, other_places, |matching, one, other| {
                        one.1 == other.1 && matching.produced(one.0, other.0)
                    })
                    && self.calls(one, other)
            }
            (
                R::Window { window: one, functions: ones, .. },
                R::Window { window: other, functions: others, .. },
            ) => self.windows(one, other) && self.calls(ones, others),
            (R::Distinct { on: one, .. }, R::Distinct { on: other, .. }) => {
                self.each(one, other, |matching, one, other| matching.exprs(one, other))
            }
            (R::Sort { keys: one, .. }, R::Sort { keys: other, .. }) => self.sort_keys(one, other),
            (
                R::Limit { limit: one, offset: one_offset, ties: ones, .. },
                R::Limit { limit: other, offset: other_offset, ties: others, .. },
            ) => {
                self.optional(one.as_ref(), other.as_ref())
                    && self.optional(one_offset.as_ref(), other_offset.as_ref())
                    && self
                        .each(ones, others, |matching, one, other| matching.sort_keys(one, other))
            }
            _ => self.set_node(one, other),
        }
    }

    /// Compares two set operations or uses of `WITH` queries whose inputs are the same.
    fn set_node(&mut self, one: &Relation, other: &Relation) -> bool {
        use Relation as R;
        match (one, other) {
            (
                R::SetOperation { operator: one, all, left, right, columns },
                R::SetOperation {
                    operator: other,
                    all: other_all,
                    left: other_left,
                    right: other_right,
                    columns: others,
                },
            ) => {
                (one, all) == (other, other_all)
                    && self.all_used(&left.1, &other_left.1)
                    && self.all_used(&right.1, &other_right.1)
                    && self.all_produced(columns, others)
            }
            (
                R::Recursive { all, left, right, columns, .. },
                R::Recursive {
                    all: other_all,
                    left: other_left,
                    right: other_right,
                    columns: others,
                    ..
                },
            ) => {
                all == other_all
                    && self.relation(&right.0, &other_right.0)
                    && self.all_used(&left.1, &other_left.1)
                    && self.all_used(&right.1, &other_right.1)
                    && self.all_produced(columns, others)
            }
            (R::With { .. }, R::With { .. }) => true,
            (
                R::CteScan { cte: one, columns: ones },
                R::CteScan { cte: other, columns: others },
            ) => {
                *one == self.ctes.get(other).copied().unwrap_or(*other)
                    && self.each(ones, others, |matching, one, other| {
                        matching.all_used(&[one.0], &[other.0]) && matching.produced(one.1, other.1)
                    })
            }
            _ => false,
        }
    }
}

impl Relation {
    /// The inputs, without the queries of `WITH`.
    fn direct<'r>(&'r self, found: &mut Vec<&'r Self>) {
        match self {
            Self::Unit
            | Self::Table(_)
            | Self::Values { .. }
            | Self::Functions { .. }
            | Self::CteScan { .. }
            | Self::Recursive { .. } => {}
            Self::ProjectSet { input, .. }
            | Self::Project { input, .. }
            | Self::Filter { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Window { input, .. }
            | Self::Distinct { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::With { input, .. } => found.push(input),
            Self::Join { left, right, .. } => found.extend([&**left, &**right]),
            Self::SetOperation { left, right, .. } => found.extend([&*left.0, &*right.0]),
        }
    }
}
