//! `GROUP BY`, and what it does to the expressions of its query.
//!
//! ```text
//!   select a % 10, count(*) from t group by a % 10 having max(b) > 5
//!
//!   Filter      #7 > 5
//!     Aggregate   #5 = a % 10;  #6 = count(*), #7 = max(b)
//!       Table t
//! ```
//!
//! Behind the aggregation there are only groups and results of aggregates. So every part of an
//! expression that equals a group's expression is replaced by the group's column, and a column of
//! `FROM` that is left over is an error.

use trunkline_aio::facade::hash::Set;

use super::binder::{Binder, Context, Place};
use super::level::{Level, Target};
use super::scope::Scope;
use super::sorting::named_target;
use crate::bound::{ColumnId, Expr, ExprKind, Origin, Relation, with_stack};
use crate::error::{SqlError, SqlState};
use crate::syntax::{Expression, ExpressionKind, GroupingElement, SelectCore};

/// `GROUP BY` of a query.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    /// The expressions to group by.
    expressions: Vec<Expr>,
    /// The grouping sets, as places in `expressions`. `None`: one set of all.
    sets: Option<Vec<Vec<usize>>>,
    /// Whether rows are grouped at all.
    is_grouped: bool,
}

/// The number of grouping sets that `CUBE` and `ROLLUP` can make.
const SETS_MAX: usize = 4096;

impl Binder<'_> {
    /// Binds `GROUP BY`.
    pub(super) fn grouping(
        &mut self,
        core: &SelectCore,
        targets: &[Target],
        scope: &Scope<'_>,
        level: &mut Level,
    ) -> Result<Grouping, SqlError> {
        let mut grouping = Grouping::default();
        let plain =
            core.group_by.iter().all(|element| matches!(element, GroupingElement::Expression(_)));
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for element in &core.group_by {
            let sets = self.grouping_sets(element, targets, scope, level, &mut grouping)?;
            all = combined(&all, &sets)?;
        }
        if core.group_distinct {
            let mut seen = Vec::new();
            all.retain(|set| {
                let is_new = !seen.contains(set);
                seen.push(set.clone());
                is_new
            });
        }
        if !plain {
            grouping.sets = Some(all);
        }
        grouping.is_grouped =
            !core.group_by.is_empty() || core.having.is_some() || level.has_aggregates();
        Ok(grouping)
    }

    /// The grouping sets that one element of `GROUP BY` stands for.
    fn grouping_sets(
        &mut self,
        element: &GroupingElement,
        targets: &[Target],
        scope: &Scope<'_>,
        level: &mut Level,
        grouping: &mut Grouping,
    ) -> Result<Vec<Vec<usize>>, SqlError> {
        let mut places = |binder: &mut Self, expression: &Expression| {
            binder.group_places(expression, targets, scope, level, grouping)
        };
        match element {
            GroupingElement::Expression(expression) => Ok(vec![places(self, expression)?]),
            GroupingElement::Empty(_) => Ok(vec![Vec::new()]),
            GroupingElement::Rollup(expressions, _) => {
                let parts: Vec<Vec<usize>> = expressions
                    .iter()
                    .map(|expression| places(self, expression))
                    .collect::<Result<_, _>>()?;
                let prefix = |length: usize| parts.iter().take(length).flatten().copied().collect();
                Ok((0..=parts.len()).rev().map(prefix).collect())
            }
            GroupingElement::Cube(expressions, span) => {
                let parts: Vec<Vec<usize>> = expressions
                    .iter()
                    .map(|expression| places(self, expression))
                    .collect::<Result<_, _>>()?;
                if parts.len() > 12 {
                    let message = "CUBE is limited to 12 elements";
                    let code = SqlState::TOO_MANY_COLUMNS;
                    return Err(SqlError::new(code, message).at(span.start));
                }
                let last = (1_usize << parts.len()) - 1;
                let subset = |mask: usize| {
                    let chosen = parts.iter().enumerate();
                    let chosen = chosen.filter(|(at, _)| mask >> (parts.len() - 1 - at) & 1 == 1);
                    chosen.flat_map(|(_, part)| part).copied().collect()
                };
                Ok((0..=last).rev().map(subset).collect())
            }
            GroupingElement::Sets(elements, _) => {
                let mut sets = Vec::new();
                for element in elements {
                    sets.extend(self.grouping_sets(element, targets, scope, level, grouping)?);
                }
                Ok(sets)
            }
        }
    }

    /// The places of a group's expressions. A row without the word `ROW` stands for its fields.
    fn group_places(
        &mut self,
        expression: &Expression,
        targets: &[Target],
        scope: &Scope<'_>,
        level: &mut Level,
        grouping: &mut Grouping,
    ) -> Result<Vec<usize>, SqlError> {
        if let ExpressionKind::Row { explicit: false, fields } = &expression.kind {
            let mut places = Vec::new();
            for field in fields {
                places.extend(self.group_places(field, targets, scope, level, grouping)?);
            }
            return Ok(places);
        }
        let mut expr = match named_target(expression, Place::GroupBy, targets, scope)? {
            Some(found) => {
                let target = targets.get(found).map(|target| target.expr.clone());
                target.ok_or_else(|| SqlError::internal("a group refers to a target"))?
            }
            None => {
                let mut context = Context::new(scope, Place::GroupBy, level);
                self.expression(expression, &mut context)?
            }
        };
        self.resolve_unknown(&mut expr)?;
        let at = expression.span.start;
        let what = if expr.any(&mut |part| uses(part, |id| level.is_aggregate(id))) {
            Some("aggregate functions are not allowed in GROUP BY")
        } else if expr.any(&mut |part| uses(part, |id| level.is_window_column(id))) {
            Some("window functions are not allowed in GROUP BY")
        } else {
            None
        };
        if let Some(message) = what {
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message).at(at));
        }
        if expr.any(&mut |part| uses(part, |id| level.is_set_column(id))) {
            let message = "set-returning functions in GROUP BY are not supported by trunkline";
            return Err(SqlError::unsupported(message).at(at));
        }
        self.check_comparable(expr.ty.oid, at)?;
        let mut expressions = grouping.expressions.iter();
        let place = expressions.position(|found| self.is_same(found, &expr));
        Ok(vec![place.unwrap_or_else(|| {
            grouping.expressions.push(expr);
            grouping.expressions.len() - 1
        })])
    }

    /// Adds the aggregation, if the query has one, and makes the expressions above it refer to groups.
    pub(super) fn grouped(
        &mut self,
        input: Relation,
        grouping: Grouping,
        scope: &Scope<'_>,
        level: &mut Level,
        targets: &mut [Target],
        having: &mut Option<Expr>,
    ) -> Result<Relation, SqlError> {
        if !grouping.is_grouped {
            return Ok(input);
        }
        let dependent = match grouping.sets {
            Some(_) => Set::default(),
            None => self.dependent_columns(&grouping.expressions, scope),
        };
        let groupings = std::mem::take(&mut level.groupings);
        let groupings = groupings.into_iter().map(|(id, arguments)| {
            Ok((id, self.grouping_places(&arguments, &grouping.expressions)?))
        });
        let groupings = groupings.collect::<Result<Vec<_>, SqlError>>()?;
        let mut groups = Vec::new();
        for expr in grouping.expressions {
            let id = match expr.kind {
                ExprKind::Column(id) => self.columns.copy(id),
                _ => self.column("?column?", expr.ty),
            };
            groups.push((id, expr));
        }
        let mut own = Set::default();
        for column in scope.tables.iter().flat_map(|table| table.columns.iter()) {
            column.value.columns(&self.subqueries, &mut |id| {
                own.insert(id);
            });
        }
        let (dependent, inside) = (&dependent, false);
        let mut regroup = Regroup { groups, own: &own, dependent, binder: self, inside };
        for target in targets {
            regroup.replace_target(&mut target.expr)?;
        }
        if let Some(having) = having {
            regroup.replace(having)?;
        }
        let mut result = Ok(());
        let mut replace = |expr: &mut Expr| {
            if result.is_ok() {
                result = regroup.replace(expr);
            }
        };
        for (window, functions) in &mut level.windows {
            window.expressions_mut(&mut replace);
            functions.iter_mut().for_each(|(_, call)| call.expressions_mut(&mut replace));
        }
        for source in level.sets.iter_mut().flatten() {
            replace(&mut source.call);
        }
        result?;
        let groups = regroup.groups;
        let aggregates = std::mem::take(&mut level.aggregates);
        let (input, sets) = (Box::new(input), grouping.sets);
        Ok(Relation::Aggregate { input, groups, sets, groupings, aggregates })
    }

    /// If all columns of a table's primary key are groups, its other columns are the same in all rows
    /// of a group, so they can be used too. Returns the columns of such tables.
    fn dependent_columns(&self, groups: &[Expr], scope: &Scope<'_>) -> Set<ColumnId> {
        let mut dependent = Set::default();
        for table in &scope.tables {
            let origins: Vec<(ColumnId, Origin)> = (table.columns.iter())
                .filter_map(|column| match column.value.kind {
                    ExprKind::Column(id) => Some((id, self.columns.get(id).origin?)),
                    _ => None,
                })
                .collect();
            let Some(&(_, Origin { table: oid, .. })) = origins.first() else { continue };
            if origins.iter().any(|(_, origin)| origin.table != oid) {
                continue;
            }
            let Some(key) = self.primary_key(oid) else { continue };
            let is_group = |number: &i16| {
                let column = origins.iter().find(|(_, origin)| origin.number == *number);
                column.is_some_and(|(id, _)| {
                    groups.iter().any(|group| group.kind == ExprKind::Column(*id))
                })
            };
            if key.iter().all(is_group) {
                dependent.extend(origins.iter().map(|(id, _)| *id));
            }
        }
        dependent
    }

    /// Refuses a column that depends on a primary key that doesn't hold for all rows: that of a table
    /// with children. The server shows the value of any row of the group.
    fn check_key_holds(&self, id: ColumnId, at: u32) -> Result<(), SqlError> {
        let Some(origin) = self.columns.get(id).origin else { return Ok(()) };
        let database = self.catalog().database();
        let table = database.relation(origin.table);
        match table {
            Some(table) if !table.is_partitioned() && database.inheritors(table).len() > 1 => {
                let message = "GROUP BY of a primary key of a table with children is not supported by \
                               trunkline";
                Err(SqlError::unsupported(message).at(at))
            }
            _ => Ok(()),
        }
    }

    /// The columns of a table's primary key.
    fn primary_key(&self, table: trunkline_format::Oid) -> Option<Vec<i16>> {
        let indexes = self.catalog().database().indexes_of(table);
        let primary = indexes.iter().find(|index| index.primary && index.valid)?;
        let keys = primary.columns.iter().take(usize::from(primary.key_count));
        Some(keys.copied().collect())
    }
}

/// All combinations of the sets of two elements.
fn combined(one: &[Vec<usize>], other: &[Vec<usize>]) -> Result<Vec<Vec<usize>>, SqlError> {
    if one.len().saturating_mul(other.len()) > SETS_MAX {
        let message = format!("too many grouping sets present (maximum {SETS_MAX})");
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    let mut sets = Vec::new();
    for left in one {
        for right in other {
            let mut set = left.clone();
            set.extend(right.iter().filter(|place| !left.contains(place)));
            sets.push(set);
        }
    }
    Ok(sets)
}

/// Whether an expression is a column for which `test` is true.
fn uses(part: &Expr, test: impl Fn(ColumnId) -> bool) -> bool {
    matches!(part.kind, ExprKind::Column(id) if test(id))
}

/// Replaces expressions by the groups that they equal.
struct Regroup<'r, 'b> {
    /// Groups are added for columns that depend on those that there are.
    groups: Vec<(ColumnId, Expr)>,
    /// The columns of `FROM`.
    own: &'r Set<ColumnId>,
    /// Those that are the same in all rows of a group.
    dependent: &'r Set<ColumnId>,
    binder: &'r mut Binder<'b>,
    /// The expression is in a subquery.
    inside: bool,
}

impl Regroup<'_, '_> {
    /// A whole target can be a group even if it is a constant, which grouping sets make null.
    fn replace_target(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        match self.groups.iter().find(|(_, group)| self.binder.is_same(group, expr)) {
            Some((id, _)) => {
                expr.kind = ExprKind::Column(*id);
                Ok(())
            }
            None => self.replace(expr),
        }
    }

    /// # Errors
    /// 42803: the expression uses a column that is not grouped.
    fn replace(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        with_stack(|| {
            // Inside an expression, a constant stays one.
            let is_constant = matches!(expr.kind, ExprKind::Constant(_) | ExprKind::Parameter(_));
            let mut groups = self.groups.iter();
            let group = groups.find(|(_, group)| !is_constant && self.binder.is_same(group, expr));
            if let Some((id, _)) = group {
                expr.kind = ExprKind::Column(*id);
                return Ok(());
            }
            match &expr.kind {
                ExprKind::Column(id) if self.dependent.contains(id) => {
                    let at = expr.location.0.unwrap_or_default();
                    self.binder.check_comparable(expr.ty.oid, at)?;
                    self.binder.check_key_holds(*id, at)?;
                    let group = self.binder.columns.copy(*id);
                    self.groups.push((group, expr.clone()));
                    expr.kind = ExprKind::Column(group);
                    return Ok(());
                }
                ExprKind::Column(id) if self.own.contains(id) => {
                    return Err(self.ungrouped(*id, expr));
                }
                ExprKind::Subquery(subquery) => {
                    let id = subquery.query;
                    let mut query = self.binder.subqueries.take(id);
                    let was_inside = std::mem::replace(&mut self.inside, true);
                    let replaced = self.replace_in(&mut query.relation);
                    self.inside = was_inside;
                    self.binder.subqueries.put(id, query);
                    replaced?;
                }
                _ => {}
            }
            let mut result = Ok(());
            expr.children_mut(|child| {
                if result.is_ok() {
                    result = self.replace(child);
                }
            });
            result
        })
    }

    /// Replaces in all expressions of a subquery.
    fn replace_in(&mut self, relation: &mut Relation) -> Result<(), SqlError> {
        with_stack(|| {
            let mut result = Ok(());
            relation.expressions_mut(|expr| {
                if result.is_ok() {
                    result = self.replace(expr);
                }
            });
            relation.inputs_mut(|input| {
                if result.is_ok() {
                    result = self.replace_in(input);
                }
            });
            result
        })
    }

    fn ungrouped(&self, id: ColumnId, expr: &Expr) -> SqlError {
        let column = self.binder.columns.get(id);
        let name = match &column.relation {
            Some(relation) => format!("{relation}.{}", column.name),
            None => column.name.to_string(),
        };
        let message = match self.inside {
            true => format!("subquery uses ungrouped column \"{name}\" from outer query"),
            false => format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate \
                 function"
            ),
        };
        SqlError::new(SqlState::GROUPING_ERROR, message).at(expr.location.0.unwrap_or_default())
    }
}
