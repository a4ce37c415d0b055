//! Prepared statements of SQL: PREPARE and EXECUTE.
//!
//! They share their names with those of the extended protocol. The values of EXECUTE are computed by a
//! query of one row, whose columns have the types of the parameters.

use std::sync::Arc;

use tokio::sync::OnceCell;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_sql::bind::{Bound, bind_execute, declared_types};
use trunkline_sql::bound::with_stack_for;
use trunkline_sql::syntax::{Expression, Name, RawStatement, Statement, TypeName};
use trunkline_sql::values::PayloadReader;
use trunkline_sql::{SqlError, SqlState};

use super::outcome::Outcome;
use super::prepared::Prepared;
use super::refusal::refused;
use super::session::{Session, Started};
use crate::environment::ParameterValue;
use crate::statement::{ResultColumn, Rows};

impl Session {
    /// PREPARE.
    pub(super) fn prepare_sql(
        &mut self,
        name: &Name,
        types: &[TypeName],
        statement: &Statement,
    ) -> Result<Outcome, SqlError> {
        let types = declared_types(types, self.bind_options(None))?;
        let bound = match statement {
            Statement::Select(select) => Some(self.bind(select, Some(&types))?),
            _ => None,
        };
        self.check_new_statement(&name.text)?;
        let nesting = self.nesting;
        let statement = with_stack_for(nesting, || statement.clone());
        let prepared = Prepared {
            text: self.source.clone(),
            raw: Some(RawStatement::new(statement, name.span, nesting)),
            bound,
            from_sql: true,
            prepared_at: self.settings.statement_start,
            point: OnceCell::new(),
            columns: OnceCell::new(),
            encoders: Mutex::new(None),
            plans: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
        };
        Arc::make_mut(&mut self.prepared).insert(name.text.clone(), Arc::new(prepared));
        Ok(Outcome::Command("PREPARE".to_owned()))
    }

    /// Fails if there is a prepared statement of this name.
    pub(super) fn check_new_statement(&self, name: &str) -> Result<(), SqlError> {
        if !name.is_empty() && self.prepared.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message));
        }
        Ok(())
    }

    /// EXECUTE.
    pub(super) async fn execute_sql(
        &mut self,
        name: &Name,
        values: &[Expression],
        started: Started,
    ) -> Result<Outcome, SqlError> {
        let prepared = Arc::clone(self.prepared(&name.text)?);
        let types = prepared.bound.as_ref().map_or(&[][..], |bound| &*bound.parameters);
        let parameters = if types.is_empty() && values.is_empty() {
            Arc::default()
        } else {
            let statement = bind_execute(&name.text, values, types, self.bind_options(None))?;
            let bound = Bound { statement, parameters: Vec::new() };
            one_row(&mut self.rows(&bound, Arc::default(), &started).await?).await?
        };
        match (&prepared.bound, &prepared.raw) {
            (Some(bound), Some(raw)) => match &raw.statement {
                Statement::Select(_) => {
                    self.run_prepared(&prepared, bound, parameters, started).await
                }
                Statement::Explain { options, .. } => {
                    prepared.plans.fetch_add(1, Ordering::Relaxed);
                    self.explain(options, bound, parameters, started).await
                }
                other => Err(refused(other)),
            },
            (None, Some(raw)) => match &raw.statement {
                Statement::VariableShow(name) => self.show(name.as_ref()),
                other => Err(refused(other)),
            },
            (_, None) => Ok(Outcome::Empty),
        }
    }

    /// The columns of a prepared statement, for EXECUTE.
    pub(super) fn columns_of_execute(
        &self,
        name: &str,
    ) -> Result<Option<Arc<[ResultColumn]>>, SqlError> {
        let prepared = self.prepared(name)?;
        self.columns(prepared)
    }
}

/// The values of the only row, as payloads.
async fn one_row(rows: &mut Rows) -> Result<Arc<[ParameterValue]>, SqlError> {
    let mut values: Vec<ParameterValue> = Vec::new();
    while let Some(batch) = rows.next().await? {
        if batch.num_rows() == 0 {
            continue;
        }
        for (column, array) in rows.columns().iter().zip(batch.columns()) {
            let mut reader = PayloadReader::new(column.carrier, array)?;
            values.push(reader.get(0).map(Box::from));
        }
    }
    Ok(values.into())
}
