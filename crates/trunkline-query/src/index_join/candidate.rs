//! Finds the index joins that could replace a hash join, and decides whether one of them should.
//!
//! The values of an equality are computed below the join. Types that Arrow doesn't compare as PostgreSQL
//! does are compared by keys that are made of the values (`expression/keys.rs`). An index is searched for
//! the values themselves, so they are computed beside the keys then:
//!
//! ```text
//!   HashJoinExec key(o.x) = key(t.k)         IndexJoinExec t_k (k = o.x)
//!     ProjectionExec key(o.x)           ──▶    ProjectionExec key(o.x), o.x
//!       o                                        o
//!     ProjectionExec key(t.k)
//!       ScanExec t
//! ```

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, NullEquality, Result, exec_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::build_join_schema;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use trunkline_sql::bound::Expr;
use trunkline_sql::values::Carrier;

use super::cost::{Wanted, estimated_rows, hash_join, nested_loop};
use super::definition::{Definition, InnerSide, JoinKind};
use super::exec::IndexJoinExec;
use crate::access_path::{AccessPath, Cost, IndexSearch, KeyColumn, KeyType, PathKind};
use crate::expression::ProgramFunction;
use crate::hidden_constants::HideConstants;
use crate::pass_through::PassThroughExec;
use crate::scan::ScanExec;

/// The most keys that are looked up together.
const KEYS_MAX: usize = 8192;

/// The bytes of a key while it is looked up: its ranges, and the place in the index that it has got to.
const KEY_BYTES: f64 = 1024.0;

/// The bytes of a row that was found for a key and has not been read yet.
const ENTRY_BYTES: f64 = 48.0;

/// The index join that is cheaper than this hash join, if there is one. `limit` is how many rows are
/// wanted.
pub(super) fn cheaper(
    join: &HashJoinExec,
    limit: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if join.null_aware || join.null_equality() != NullEquality::NullEqualsNothing {
        return Ok(None);
    }
    let limit = match (limit, join.fetch()) {
        // The join would have to stop by itself.
        (_, Some(_)) => return Ok(None),
        (limit, None) => limit,
    };
    let mut best: Option<(Cost, Arc<dyn ExecutionPlan>)> = None;
    for outer_side in [JoinSide::Left, JoinSide::Right] {
        let Some((plan, cost)) = Candidate::new(join, outer_side)
            .map(|candidate| candidate.compared(limit))
            .transpose()?
            .flatten()
        else {
            continue;
        };
        if best.as_ref().is_none_or(|(known, _)| cost.is_below(known)) {
            best = Some((cost, plan));
        }
    }
    Ok(best.map(|(_, plan)| plan))
}

/// A hash join of which one side could be searched.
struct Candidate<'j> {
    join: &'j HashJoinExec,
    kind: JoinKind,
    outer_side: JoinSide,
    outer: &'j Arc<dyn ExecutionPlan>,
    inner: &'j Arc<dyn ExecutionPlan>,
    scan: &'j ScanExec,
    /// The columns of the inner side in terms of those of the scan; `None` if they are the same.
    projection: Option<Vec<Arc<dyn PhysicalExpr>>>,
}

/// An outer value that an index can be searched for.
struct Key {
    column: KeyColumn,
    value: Arc<dyn PhysicalExpr>,
    /// The place of its equality.
    equality: usize,
}

impl<'j> Candidate<'j> {
    fn new(join: &'j HashJoinExec, outer_side: JoinSide) -> Option<Self> {
        let kind = JoinKind::of(*join.join_type(), outer_side)?;
        let (outer, inner) = match outer_side {
            JoinSide::Left => (join.left(), join.right()),
            _ => (join.right(), join.left()),
        };
        let (scan, projection) = projected_scan(inner)?;
        // A limit of the scan applies to all of its rows.
        let candidate = Self { join, kind, outer_side, outer, inner, scan, projection };
        scan.fetch().is_none().then_some(candidate)
    }

    /// The equalities, outer values first.
    fn on(&self) -> Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)> {
        let ordered = |(left, right): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
            let (left, right) = (Arc::clone(left), Arc::clone(right));
            if self.outer_side == JoinSide::Left { (left, right) } else { (right, left) }
        };
        self.join.on().iter().map(ordered).collect()
    }

    /// The index join with its cost, if it is cheaper than the hash join.
    fn compared(&self, limit: Option<usize>) -> Result<Option<(Arc<dyn ExecutionPlan>, Cost)>> {
        let Some(outer_rows) = estimated_rows(self.outer) else { return Ok(None) };
        let mut values = OuterValues::new(self.outer);
        let mut keys = Vec::new();
        for (equality, (outer, inner)) in self.on().iter().enumerate() {
            if let Some(key) = self.key(equality, outer, inner, &mut values)? {
                keys.push(key);
            }
        }
        let columns: Vec<KeyColumn> = keys.iter().map(|key| key.column).collect();
        let Some(found) = self.scan.keyed_path(&columns, outer_rows) else { return Ok(None) };
        // Equalities that no index can be searched for select rows, too.
        let matches = found.rows;
        let Cost { disabled, startup, total } = found.cost;
        let inner = Cost { disabled, startup: startup * outer_rows, total: total * outer_rows };
        let path = Arc::new(IndexSearch {
            index: Arc::clone(&found.search.index),
            conditions: found.search.conditions.clone(),
            ranges: None,
            order: None,
            entries: found.entries,
        });
        let path_of_keys = AccessPath {
            kind: PathKind::Index(Arc::clone(&path)),
            cost: found.cost,
            rows: Some(matches.round().max(1.0)),
            covered: found.covered,
            unused: Vec::new(),
            rejected: Vec::new(),
        };
        let scan = self.scan.with_path(path_of_keys, None);
        let work_mem = scan.access().work_mem() as f64;
        let keys_max = (work_mem / (KEY_BYTES + ENTRY_BYTES * found.entries)) as usize;
        let (left, right) = (self.join.left().schema(), self.join.right().schema());
        let (schema, mut columns) = build_join_schema(&left, &right, self.join.join_type());
        let join_schema = Arc::new(schema);
        let projection = self.join.projection.as_ref().map(|projection| projection.to_vec());
        if let Some(projection) = &projection {
            columns = projection.iter().filter_map(|&at| columns.get(at).cloned()).collect();
        }
        let on = self.on();
        let definition = Definition {
            kind: self.kind,
            join_type: *self.join.join_type(),
            outer_side: self.outer_side,
            on,
            filter: self.join.filter().cloned(),
            equalities: keys.iter().map(|key| key.equality).collect(),
            keys: keys.into_iter().map(|key| (key.value, key.column.column.carrier)).collect(),
            inner: InnerSide {
                plan: Arc::clone(self.inner),
                scan,
                search: found.search,
                path,
                projection: self.projection.clone(),
            },
            outer_schema: self.outer.schema(),
            join_schema,
            projection,
            columns,
            schema: self.join.schema(),
            matches,
            keys_max: keys_max.clamp(1, KEYS_MAX),
            cost: inner,
        };
        let settings = self.scan.access().planner();
        let wanted = Wanted::new(definition.rows(outer_rows), limit);
        let cost = nested_loop(settings, self.outer, inner, &wanted);
        let inner_rows = self.scan.estimated_rows();
        let rows = match self.outer_side {
            JoinSide::Left => (outer_rows, inner_rows),
            _ => (inner_rows, outer_rows),
        };
        if !cost.is_below(&hash_join(settings, self.join, rows, &wanted)) {
            return Ok(None);
        }
        let plan = IndexJoinExec::new(values.plan()?, Arc::new(definition))?;
        Ok(Some((Arc::new(plan), cost)))
    }

    /// The key of an equality, if an index could be searched for it.
    fn key(
        &self,
        equality: usize,
        outer: &Arc<dyn PhysicalExpr>,
        inner: &Arc<dyn PhysicalExpr>,
        values: &mut OuterValues<'_>,
    ) -> Result<Option<Key>> {
        let schema = self.outer.schema();
        let inner = match (&self.projection, inner.downcast_ref::<Column>()) {
            (None, _) => inner,
            (Some(columns), Some(column)) => match columns.get(column.index()) {
                Some(column) => column,
                None => return Ok(None),
            },
            // The planner computes the values of equalities in projections.
            (Some(_), None) => return Ok(None),
        };
        let Some(searched) = self.searched(inner) else { return Ok(None) };
        let (column, value) = match searched {
            Searched::Column(column) => (column, Arc::clone(outer)),
            Searched::Key { column, of } => {
                let Some(value) = values.keyed(outer, of, self.scan)? else { return Ok(None) };
                (column, value)
            }
        };
        let ty = match values.data_type(&value) {
            Some(ty) => ty,
            None => value.data_type(&schema)?,
        };
        Ok(column.accepts(&ty).then_some(Key { column, value, equality }))
    }

    /// What an inner value of an equality is, in terms of the scan.
    fn searched<'e>(&self, value: &'e Arc<dyn PhysicalExpr>) -> Option<Searched<'e>> {
        let column = |value: &Arc<dyn PhysicalExpr>| {
            self.scan.filter_column(value.downcast_ref::<Column>()?.index())
        };
        if let Some(column) = column(value) {
            return Some(Searched::Column(KeyColumn { column, compared: KeyType::Native }));
        }
        if let Some(cast) = value.downcast_ref::<CastExpr>() {
            let column = column(cast.expr())?;
            let widens = matches!(
                (column.carrier, cast.cast_type()),
                (Carrier::Int16, DataType::Int32 | DataType::Int64)
                    | (Carrier::Int32, DataType::Int64)
            );
            let found = KeyColumn { column, compared: KeyType::Native };
            return widens.then_some(Searched::Column(found));
        }
        let (function, arguments) = key_function(value)?;
        let [argument] = arguments else { return None };
        let of = function.shown();
        let compared = KeyType::Keyed(of.ty.oid);
        Some(Searched::Key { column: KeyColumn { column: column(argument)?, compared }, of })
    }
}

/// An inner value.
enum Searched<'e> {
    /// A column, or one whose integers are widened.
    Column(KeyColumn),
    /// The key of a column, as which expression of the statement.
    Key { column: KeyColumn, of: &'e Expr },
}

/// The function that makes keys, and its arguments.
fn key_function(
    value: &Arc<dyn PhysicalExpr>,
) -> Option<(&ProgramFunction, &[Arc<dyn PhysicalExpr>])> {
    let call = value.downcast_ref::<ScalarFunctionExpr>()?;
    let function = call.fun().inner().downcast_ref::<ProgramFunction>()?;
    function.is_key().then(|| (function, call.args()))
}

/// A scan that may be below projections, and the columns of all of them together in terms of the scan's.
/// `None` if a column is volatile: each reference to it would become a call of its own, which a loop makes
/// again for each outer row.
#[expect(clippy::type_complexity, reason = "a plan and its columns")]
fn projected_scan(
    plan: &Arc<dyn ExecutionPlan>,
) -> Option<(&ScanExec, Option<Vec<Arc<dyn PhysicalExpr>>>)> {
    let (mut plan, mut columns) = (plan, None);
    loop {
        plan = without_hiding(plan);
        let Some(projection) = plan.downcast_ref::<ProjectionExec>() else {
            return Some((plan.downcast_ref::<ScanExec>()?, columns));
        };
        let below: Vec<_> =
            projection.expr().iter().map(|column| Arc::clone(&column.expr)).collect();
        if below.iter().any(is_volatile) {
            return None;
        }
        columns = Some(match columns {
            None => below,
            Some(above) => {
                above.into_iter().map(|expr| over(expr, &below)).collect::<Option<_>>()?
            }
        });
        plan = projection.input();
    }
}

/// An expression over columns that are these expressions.
fn over(
    expr: Arc<dyn PhysicalExpr>,
    columns: &[Arc<dyn PhysicalExpr>],
) -> Option<Arc<dyn PhysicalExpr>> {
    let replaced = expr.transform_up(|part| match part.downcast_ref::<Column>() {
        None => Ok(Transformed::no(part)),
        Some(column) => match columns.get(column.index()) {
            Some(below) => Ok(Transformed::yes(Arc::clone(below))),
            None => exec_err!("a projection has no such column"),
        },
    });
    replaced.data().ok()
}

/// The node below one that only hides what the planner knows.
fn without_hiding(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    match *plan.children() {
        [below] if plan.is::<PassThroughExec<HideConstants>>() => below,
        _ => plan,
    }
}

/// Values of the outer side that are computed in addition to its columns.
struct OuterValues<'j> {
    outer: &'j Arc<dyn ExecutionPlan>,
    added: Vec<ProjectionExpr>,
}

impl<'j> OuterValues<'j> {
    fn new(outer: &'j Arc<dyn ExecutionPlan>) -> Self {
        Self { outer, added: Vec::new() }
    }

    /// The value that a key is made of, if it is made in the outer side's projection, as `of` is.
    fn keyed(
        &mut self,
        key: &Arc<dyn PhysicalExpr>,
        of: &Expr,
        scan: &ScanExec,
    ) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let Some(projection) = self.outer.downcast_ref::<ProjectionExec>() else { return Ok(None) };
        let column = key.downcast_ref::<Column>();
        let column = column.and_then(|column| projection.expr().get(column.index()));
        let Some((function, arguments)) = column.and_then(|column| key_function(&column.expr))
        else {
            return Ok(None);
        };
        let Some(environment) = scan.environment() else { return Ok(None) };
        if function.shown().ty.oid != of.ty.oid {
            return Ok(None);
        }
        // What can't be compiled has no key either.
        let Ok(Some(value)) = function.keyed_value(environment) else { return Ok(None) };
        let input = projection.input().schema();
        let value = ScalarFunctionExpr::try_new(
            Arc::new(ScalarUDF::from(value)),
            arguments.to_vec(),
            &input,
            Arc::default(),
        )?;
        let place = projection.expr().len() + self.added.len();
        let name = format!("value {place}");
        self.added.push(ProjectionExpr { expr: Arc::new(value), alias: name.clone() });
        Ok(Some(Arc::new(Column::new(&name, place))))
    }

    /// The type of an added value.
    fn data_type(&self, value: &Arc<dyn PhysicalExpr>) -> Option<DataType> {
        let column = value.downcast_ref::<Column>()?;
        let own = self.outer.schema().fields().len();
        let added = self.added.get(column.index().checked_sub(own)?)?;
        let projection = self.outer.downcast_ref::<ProjectionExec>()?;
        added.expr.data_type(&projection.input().schema()).ok()
    }

    /// The outer side with these values.
    fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        match self.outer.downcast_ref::<ProjectionExec>() {
            Some(projection) if !self.added.is_empty() => {
                let columns = projection.expr().iter().chain(&self.added).cloned();
                let columns = columns.collect::<Vec<_>>();
                let input = Arc::clone(projection.input());
                Ok(Arc::new(ProjectionExec::try_new(columns, input)?))
            }
            _ => Ok(Arc::clone(self.outer)),
        }
    }
}
