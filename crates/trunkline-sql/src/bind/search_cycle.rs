//! `SEARCH` and `CYCLE`: columns that a recursive query gets besides its own (`rewriteSearchAndCycle`).
//!
//! ```text
//!   search depth first by a set s      s is ARRAY[ROW(a)], then s || ARRAY[ROW(a)]
//!   search breadth first by a set s    s is ROW(0, a), then ROW(depth of s + 1, a)
//!   cycle a set m using p              p is ARRAY[ROW(a)], then p || ARRAY[ROW(a)]
//!                                      m is ROW(a) = ANY(p of the row before)
//!                                      a row whose m is true has no rows after it
//! ```
//!
//! The recursive term sees these columns of the rows before, which `*` doesn't show.

use super::binder::{Binder, Context, Place};
use super::expression::BOOL;
use super::level::Level;
use super::scope::Scope;
use crate::bound::{
    CallForm, ColumnId, Expr, ExprKind, OutputColumn, Quantifier, Query, Relation, SqlType,
};
use crate::catalog::{ObjectName, oids};
use crate::error::{SqlError, SqlState};
use crate::syntax::{CommonTableExpression, Name, SelectBody, SelectStatement};

/// `record[]`.
const RECORDS: SqlType = SqlType::new(trunkline_format::Oid(2287));
const RECORD: SqlType = SqlType::new(oids::RECORD);

/// A column of the query: its name, and the column by which the recursive term refers to it.
type WorkColumn = (Box<str>, ColumnId, SqlType);

/// The columns that a query gets.
pub(super) struct Trace {
    search: Option<Search>,
    cycle: Option<Cycle>,
}

struct Search {
    breadth: bool,
    /// The places of the columns by which rows are ordered.
    places: Vec<usize>,
    sequence: WorkColumn,
}

struct Cycle {
    /// The places of the columns that are the same in a cycle.
    places: Vec<usize>,
    mark: WorkColumn,
    path: WorkColumn,
    value: Expr,
    default: Expr,
}

impl Trace {
    /// The columns, in the order in which the query has them.
    pub(super) fn columns(&self) -> Vec<WorkColumn> {
        let search = self.search.iter().map(|search| search.sequence.clone());
        let cycle = self.cycle.iter().flat_map(|cycle| [cycle.mark.clone(), cycle.path.clone()]);
        search.chain(cycle).collect()
    }
}

/// Both sides of the `UNION` must be a `SELECT`.
pub(super) fn check_selects(sides: (&SelectStatement, &SelectStatement)) -> Result<(), SqlError> {
    let is_set = |side: &SelectStatement| matches!(side.body, SelectBody::SetOperation { .. });
    if is_set(sides.0) {
        let message = "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT";
        return Err(SqlError::unsupported(message));
    }
    if is_set(sides.1) {
        let message = "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    Ok(())
}

/// The places of columns in a query.
fn places(
    names: &[Name],
    columns: &[WorkColumn],
    clause: &str,
    at: u32,
) -> Result<Vec<usize>, SqlError> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let text = name.text.as_str();
        let place = columns.iter().position(|(column, ..)| &**column == text);
        let place = place.ok_or_else(|| {
            let message = format!("{clause} column \"{text}\" not in WITH query column list");
            SqlError::new(SqlState::SYNTAX_ERROR, message).at(at)
        })?;
        if found.contains(&place) {
            let message = format!("{clause} column \"{text}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message).at(at));
        }
        found.push(place);
    }
    Ok(found)
}

/// A column that is added must have a name of its own.
fn check_new(name: &Name, columns: &[WorkColumn], what: &str, at: u32) -> Result<(), SqlError> {
    let text = name.text.as_str();
    if columns.iter().all(|(column, ..)| &**column != text) {
        return Ok(());
    }
    let message = format!("{what} column name \"{text}\" already used in WITH query column list");
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at))
}

fn check_different(one: &Name, other: &Name, what: [&str; 2], at: u32) -> Result<(), SqlError> {
    if one.text != other.text {
        return Ok(());
    }
    let [one, other] = what;
    let message = format!("{one} column name and {other} column name are the same");
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at))
}

impl Binder<'_> {
    /// What `SEARCH` and `CYCLE` add to a query with these columns; `None` without them.
    pub(super) fn trace(
        &mut self,
        cte: &CommonTableExpression,
        columns: &[WorkColumn],
        scope: &Scope<'_>,
    ) -> Result<Option<Trace>, SqlError> {
        let mut trace = Trace { search: None, cycle: None };
        if let Some(clause) = &cte.search {
            let at = clause.span.start;
            let places = places(&clause.columns, columns, "search", at)?;
            check_new(&clause.sequence, columns, "search sequence", at)?;
            let ty = if clause.breadth { RECORD } else { RECORDS };
            let sequence = self.work_column(&clause.sequence, ty);
            trace.search = Some(Search { breadth: clause.breadth, places, sequence });
        }
        if let Some(clause) = &cte.cycle {
            let at = clause.span.start;
            let places = places(&clause.columns, columns, "cycle", at)?;
            let (value, default, ty) = match &clause.values {
                None => (boolean(true), boolean(false), BOOL),
                Some((value, default)) => {
                    let mut level = Level::default();
                    let mut context = Context::new(scope, Place::Values, &mut level);
                    let value = self.expression(value, &mut context)?;
                    let default = self.expression(default, &mut context)?;
                    let (ty, mut both) = self.common_type("CYCLE", vec![value, default], at)?;
                    let (Some(default), Some(value)) = (both.pop(), both.pop()) else {
                        return Err(SqlError::internal("two values of a mark"));
                    };
                    (value, default, ty)
                }
            };
            if self.catalog().type_operators(ty.oid).equal.is_none() {
                let name = self.names.type_name(ty.oid);
                let message = format!("could not identify an equality operator for type {name}");
                return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
            }
            check_new(&clause.mark, columns, "cycle mark", at)?;
            check_new(&clause.path, columns, "cycle path", at)?;
            check_different(&clause.mark, &clause.path, ["cycle mark", "cycle path"], at)?;
            if let Some(search) = &cte.search {
                let (at, sequence) = (search.span.start, &search.sequence);
                let what = "search sequence";
                check_different(sequence, &clause.mark, [what, "cycle mark"], at)?;
                check_different(sequence, &clause.path, [what, "cycle path"], at)?;
            }
            let mark = self.work_column(&clause.mark, SqlType { modifier: -1, ..ty });
            let path = self.work_column(&clause.path, RECORDS);
            trace.cycle = Some(Cycle { places, mark, path, value, default });
        }
        Ok((trace.search.is_some() || trace.cycle.is_some()).then_some(trace))
    }

    fn work_column(&mut self, name: &Name, ty: SqlType) -> WorkColumn {
        (name.text.as_str().into(), self.column(&name.text, ty), ty)
    }

    /// Adds the columns to the non-recursive term.
    pub(super) fn trace_first(
        &mut self,
        trace: &Trace,
        query: &mut Query,
        types: &[SqlType],
    ) -> Result<(), SqlError> {
        let values = self.outputs(query, types)?;
        let mut added = Vec::new();
        if let Some(search) = &trace.search {
            added.push(match search.breadth {
                true => row([constant(oids::INT8, &0_i64.to_le_bytes())], &values, &search.places),
                false => array(row([], &values, &search.places)),
            });
        }
        if let Some(cycle) = &trace.cycle {
            added.push(cycle.default.clone());
            added.push(array(row([], &values, &cycle.places)));
        }
        self.add_outputs(query, trace, added);
        Ok(())
    }

    /// Adds the columns to the recursive term, computed from those of the rows before.
    pub(super) fn trace_second(
        &mut self,
        trace: &Trace,
        query: &mut Query,
        types: &[SqlType],
        name: &str,
        number: u32,
    ) -> Result<(), SqlError> {
        let unknown = || {
            let message = format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" \
                 must be at the top level of its right-hand SELECT"
            );
            SqlError::unsupported(message)
        };
        let before = self.pass_through(&mut query.relation, trace, number).ok_or_else(unknown)?;
        if let Some(cycle) = &trace.cycle {
            let mark = column_of(&before, cycle.mark.1)?;
            let differs = ObjectName::built_in("<>");
            let condition = self.apply_operator(differs, Some(mark), cycle.value.clone(), 0)?;
            let input = Box::new(std::mem::replace(&mut query.relation, Relation::Unit));
            query.relation = Relation::Filter { input, condition };
        }
        let values = self.outputs(query, types)?;
        let mut added = Vec::new();
        if let Some(search) = &trace.search {
            let sequence = column_of(&before, search.sequence.1)?;
            added.push(match search.breadth {
                true => {
                    let depth = ExprKind::Field { row: Box::new(sequence), number: 1 };
                    let depth = Expr::new(depth, SqlType::new(oids::INT8));
                    let one = constant(oids::INT8, &1_i64.to_le_bytes());
                    let plus = ObjectName::built_in("+");
                    let depth = self.apply_operator(plus, Some(depth), one, 0)?;
                    row([depth], &values, &search.places)
                }
                false => self.appended(sequence, row([], &values, &search.places))?,
            });
        }
        if let Some(cycle) = &trace.cycle {
            let path = column_of(&before, cycle.path.1)?;
            let own = row([], &values, &cycle.places);
            let equals = ObjectName::built_in("=");
            let any = Quantifier::Any;
            let is_cycle = self.scalar_array(equals, any, own.clone(), path.clone(), 0)?;
            let ty = cycle.mark.2;
            let kind = ExprKind::Case {
                operand: None,
                arms: vec![(is_cycle, cycle.value.clone())],
                otherwise: Box::new(cycle.default.clone()),
            };
            added.push(Expr::new(kind, ty));
            added.push(self.appended(path, own)?);
        }
        self.add_outputs(query, trace, added);
        Ok(())
    }

    /// Makes the select list of the recursive term return the columns of the rows before, too. Returns
    /// them; `None` if the reference isn't in the term's own `FROM`.
    fn pass_through(
        &mut self,
        relation: &mut Relation,
        trace: &Trace,
        number: u32,
    ) -> Option<Vec<(ColumnId, Expr)>> {
        let Relation::Project { input, columns } = relation else { return None };
        let found = reference(input, number)?.to_vec();
        let mut before = Vec::new();
        for (name, source, ty) in trace.columns() {
            let (_, own) = found.iter().find(|(known, _)| *known == source)?;
            let id = self.column(&name, ty);
            columns.push((id, Expr::new(ExprKind::Column(*own), ty)));
            before.push((source, Expr::new(ExprKind::Column(id), ty)));
        }
        Some(before)
    }

    /// The values of a query's columns, with these types.
    fn outputs(&mut self, query: &Query, types: &[SqlType]) -> Result<Vec<Expr>, SqlError> {
        let values = query.output.iter().zip(types).map(|(output, ty)| {
            let value = Expr::new(ExprKind::Column(output.id), self.columns.get(output.id).ty);
            self.coerce_implicit(value, SqlType { modifier: -1, ..*ty })
        });
        values.collect()
    }

    /// Adds columns with these values to those of a query.
    fn add_outputs(&mut self, query: &mut Query, trace: &Trace, values: Vec<Expr>) {
        let mut columns: Vec<(ColumnId, Expr)> = (query.output.iter())
            .map(|output| {
                let ty = self.columns.get(output.id).ty;
                (output.id, Expr::new(ExprKind::Column(output.id), ty))
            })
            .collect();
        for ((name, _, ty), value) in trace.columns().into_iter().zip(values) {
            let id = self.column(&name, ty);
            columns.push((id, value));
            query.output.push(OutputColumn { id, name });
        }
        let input = Box::new(std::mem::replace(&mut query.relation, Relation::Unit));
        query.relation = Relation::Project { input, columns };
    }

    /// `rows || ARRAY[row]`.
    fn appended(&mut self, rows: Expr, row: Expr) -> Result<Expr, SqlError> {
        let kind = ExprKind::Call {
            function: ARRAY_CAT,
            arguments: vec![rows, array(row)],
            collation: oids::NONE,
            form: CallForm::Function,
        };
        Ok(Expr::new(kind, RECORDS))
    }
}

/// `array_cat`.
const ARRAY_CAT: trunkline_format::Oid = trunkline_format::Oid(383);

/// The columns of the reference to a recursive query in a `FROM`, but not in its subqueries.
fn reference(relation: &Relation, number: u32) -> Option<&[(ColumnId, ColumnId)]> {
    match relation {
        Relation::CteScan { cte, columns } if *cte == number => Some(columns),
        Relation::Join { left, right, .. } => {
            reference(left, number).or_else(|| reference(right, number))
        }
        Relation::Filter { input, .. }
        | Relation::Sort { input, .. }
        | Relation::Window { input, .. } => reference(input, number),
        _ => None,
    }
}

fn column_of(before: &[(ColumnId, Expr)], source: ColumnId) -> Result<Expr, SqlError> {
    let found = before.iter().find(|(known, _)| *known == source);
    found.map(|(_, value)| value.clone()).ok_or_else(|| SqlError::internal("a column of a trace"))
}

fn constant(oid: trunkline_format::Oid, payload: &[u8]) -> Expr {
    Expr::new(ExprKind::Constant(Some(payload.into())), SqlType::new(oid))
}

fn boolean(value: bool) -> Expr {
    constant(oids::BOOL, &[u8::from(value)])
}

/// The row of these values and of those at some places.
fn row<const N: usize>(first: [Expr; N], values: &[Expr], places: &[usize]) -> Expr {
    let others = places.iter().filter_map(|&place| values.get(place).cloned());
    let fields: Vec<Expr> = first.into_iter().chain(others).collect();
    let names = (1..=fields.len()).map(|number| format!("f{number}").into()).collect();
    Expr::new(ExprKind::Row { fields, names }, RECORD)
}

fn array(row: Expr) -> Expr {
    Expr::new(ExprKind::Array { elements: vec![row], nested: false }, RECORDS)
}
