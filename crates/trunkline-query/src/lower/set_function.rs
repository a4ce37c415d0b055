//! Set-returning functions, in `FROM` and in select lists.
//!
//! A function in `FROM` is called once for each row of what is to its left, if its arguments refer to
//! that. So `FROM t, unnest(t.a)` is not a join but the rows of `t`, repeated for each element.

use std::sync::Arc;

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use trunkline_format::Oid;
use trunkline_format::text_output::{RECORD, Record, RecordColumn};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{ColumnId, Expr, ExprKind, Relation, RowSource};
use trunkline_sql::functions::{DefinedRow, gives_row_values, set_function};

use super::join::contains_subquery;
use super::planner::{Lowering, planned};
use super::visible::outer_columns;
use crate::expression::{Division, Program, column_name, expression_text};
use crate::operator::{ProjectSet, SetCall};
use crate::scan::PageCounter;

impl Lowering<'_> {
    /// Functions in `FROM` whose arguments don't refer to other relations.
    pub(super) fn functions(
        &mut self,
        functions: &[RowSource],
        ordinality: Option<ColumnId>,
    ) -> Result<LogicalPlan, SqlError> {
        let plan = planned(LogicalPlanBuilder::empty(true).build())?;
        self.project_set(plan, functions, ordinality, false)
    }

    /// Calls functions for each row of a plan. With `keeps_empty`, a row for which they return nothing
    /// is kept, with nulls.
    pub(super) fn project_set(
        &mut self,
        mut plan: LogicalPlan,
        functions: &[RowSource],
        ordinality: Option<ColumnId>,
        keeps_empty: bool,
    ) -> Result<LogicalPlan, SqlError> {
        let mut calls = Vec::with_capacity(functions.len());
        for source in functions {
            let (next, call) = self.without_subqueries(plan, &source.call)?;
            plan = next;
            calls.push(self.set_call(source, &call)?);
        }
        let (mut settings, pages) = ((*self.environment.settings).clone(), PageCounter::default());
        settings.server = Some(Arc::new(self.tables.server.counting(pages.clone())));
        let (settings, ordinality) = (Arc::new(settings), ordinality.map(column_name));
        let operator = ProjectSet { calls, ordinality, keeps_empty, settings, pages };
        self.operator(plan, Arc::new(Arc::new(operator)))
    }

    fn set_call(&self, source: &RowSource, call: &Expr) -> Result<SetCall, SqlError> {
        let text = expression_text(self.environment, call);
        let columns = source.columns.iter().map(|&id| {
            let carrier = self.environment.carrier(self.columns.get(id).ty.oid)?;
            Ok((column_name(id), carrier.data_type()))
        });
        let columns = columns.collect::<Result<Vec<_>, SqlError>>()?;
        let compile = |expr: &Expr| Program::compile(self.environment, expr);
        let ExprKind::Call { function, arguments, collation, .. } = &call.kind else {
            return self.single_row(source, call, columns, text);
        };
        if !source.returns_set {
            return self.single_row(source, call, columns, text);
        }
        let info = self.environment.function(*function)?;
        let refused = || {
            let name = &info.name;
            SqlError::unsupported(format!("function {name} is not supported by trunkline"))
        };
        // The elements of an array of rows are rows, not columns.
        let division = match gives_row_values(&info.source) {
            true => self.division(source, call.ty.oid)?,
            false => None,
        };
        Ok(SetCall {
            function: Some(set_function(&info.source).ok_or_else(refused)?),
            arguments: arguments.iter().map(compile).collect::<Result<_, _>>()?,
            argument_types: arguments.iter().map(|argument| argument.ty.oid).collect(),
            result_type: call.ty.oid,
            collation: *collation,
            row: self.defined_row(source)?,
            is_single: source.is_single,
            division,
            columns,
            call: call.clone(),
            text,
        })
    }

    /// An expression, which gives one row.
    fn single_row(
        &self,
        source: &RowSource,
        call: &Expr,
        columns: Vec<(String, arrow_schema::DataType)>,
        text: String,
    ) -> Result<SetCall, SqlError> {
        if source.returns_set || (source.row_type.is_none() && columns.len() != 1) {
            return Err(SqlError::internal("a value with several columns"));
        }
        let division = self.division(source, call.ty.oid)?;
        let arguments = vec![Program::compile(self.environment, call)?];
        let (argument_types, result_type) = (vec![call.ty.oid], call.ty.oid);
        let (function, collation) = (None, Oid(0));
        Ok(SetCall {
            function,
            arguments,
            argument_types,
            result_type,
            collation,
            row: None,
            is_single: false,
            division,
            columns,
            call: call.clone(),
            text,
        })
    }

    /// How rows that are values of this type are divided into columns; `None` for scalars.
    fn division(&self, source: &RowSource, oid: Oid) -> Result<Option<Division>, SqlError> {
        let Some(types) = &source.row_type else { return Ok(None) };
        let carriers = types.iter().map(|ty| self.environment.carrier(ty.oid));
        let carriers = carriers.collect::<Result<Vec<_>, SqlError>>()?;
        let types = types.iter().map(|ty| ty.oid).collect();
        Ok(Some(Division::new(carriers, types, oid == RECORD)))
    }

    /// The rows that a column definition list describes.
    fn defined_row(&self, source: &RowSource) -> Result<Option<DefinedRow>, SqlError> {
        let Some(types) = source.row_type.as_ref().filter(|_| !source.defined.is_empty()) else {
            return Ok(None);
        };
        let columns = types.iter().zip(&source.defined).map(|(ty, name)| RecordColumn {
            oid: ty.oid,
            collation: ty.collation,
            name: name.as_bytes().to_vec(),
        });
        let columns: Vec<RecordColumn> = columns.collect();
        let record = Record::anonymous(&columns, &*self.environment.settings.catalog);
        let record = record.map_err(|error| SqlError::unsupported(error.to_string()))?;
        let record = Arc::new(record.with_modifiers(types.iter().map(|ty| ty.modifier)));
        Ok(Some(DefinedRow { record, columns }))
    }

    /// The rows of `right` for each row of `left`, to whose columns it refers; `None` if `right` is of
    /// a kind for which there is no such plan. With `keeps_empty`, rows without results are kept.
    pub(super) fn lateral(
        &mut self,
        left: LogicalPlan,
        right: &Relation,
        keeps_empty: bool,
    ) -> Result<Option<LogicalPlan>, SqlError> {
        if let Relation::Functions { functions, ordinality } = right {
            return self.project_set(left, functions, *ordinality, keeps_empty).map(Some);
        }
        if keeps_empty {
            return Ok(None);
        }
        Ok(match right {
            Relation::Unit => Some(left),
            _ if outer_columns(right, self.subqueries).is_empty() => {
                let right = self.relation(right)?;
                let kind = datafusion::logical_expr::JoinType::Inner;
                Some(self.joined(left, right, kind, Vec::new())?)
            }
            Relation::ProjectSet { input, functions } => match self.lateral(left, input, false)? {
                Some(plan) => Some(self.project_set(plan, functions, None, false)?),
                None => None,
            },
            Relation::Filter { input, condition } if !contains_subquery(condition) => {
                match self.lateral(left, input, false)? {
                    Some(plan) => Some(self.filtered(plan, condition)?),
                    None => None,
                }
            }
            Relation::Project { input, columns } => {
                let Some(mut plan) = self.lateral(left, input, false)? else { return Ok(None) };
                let mut values = Vec::with_capacity(columns.len());
                for (id, expr) in columns {
                    let (next, expr) = self.without_subqueries(plan, expr)?;
                    plan = next;
                    values.push((column_name(*id), self.expressions().value(&expr)?));
                }
                Some(super::planner::with_columns(plan, values)?)
            }
            _ => None,
        })
    }
}
