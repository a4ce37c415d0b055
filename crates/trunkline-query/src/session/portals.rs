//! Prepared statements and portals, as the extended protocol uses them.
//!
//! ```text
//!   prepare ──▶ Prepared: text, syntax, binding
//!                  │ bind_portal: parameters
//!                  ▼
//!               Portal ── execute_portal ──▶ Rows ── put_back_portal ──▶ Portal, with the rows left
//! ```

use std::sync::Arc;

use tokio::sync::OnceCell;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_format::Oid;
use trunkline_sql::syntax::{RawStatement, Statement, parse};
use trunkline_sql::{SqlError, SqlState};

use super::explain::columns_of_explain;
use super::outcome::{Outcome, StatementDescription};
use super::prepared::{Portal, Prepared, Progress};
use super::refusal::explained;
use super::session::Session;
use crate::encode::ValueFormat;
use crate::environment::ParameterValue;
use crate::scan::Cancellation;
use crate::statement::{ResultColumn, Rows, result_columns};

impl Session {
    /// Prepares a statement. The empty name stands for the unnamed statement, which may be replaced.
    ///
    /// # Errors
    /// 42P05: the name is taken. Otherwise, those of the statement.
    pub fn prepare(&mut self, name: &str, text: &str, types: &[Oid]) -> Result<(), SqlError> {
        self.check_new_statement(name)?;
        if name.is_empty() {
            self.close_statement("");
        }
        let mut statements = parse(text)?;
        let raw = statements.pop();
        if !statements.is_empty() {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        self.check_block(raw.as_ref())?;
        self.refresh();
        self.nesting = raw.as_ref().map_or(0, RawStatement::nesting);
        let bound = match raw.as_ref().map(|raw| &raw.statement) {
            None => None,
            Some(Statement::Select(select)) => Some(self.bind(select, Some(types))?),
            Some(Statement::Explain { statement, .. }) => {
                Some(self.bind(explained(statement)?, Some(types))?)
            }
            Some(Statement::DeclareCursor(cursor)) => Some(self.bind(&cursor.query, Some(types))?),
            Some(_) => None,
        };
        let prepared = Prepared {
            text: text.to_owned(),
            raw,
            bound,
            from_sql: false,
            prepared_at: self.settings.statement_start,
            point: OnceCell::new(),
            columns: OnceCell::new(),
            encoders: Mutex::new(None),
            plans: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
        };
        Arc::make_mut(&mut self.prepared).insert(name.to_owned(), Arc::new(prepared));
        Ok(())
    }

    /// What a prepared statement takes and returns.
    ///
    /// # Errors
    /// 26000: it doesn't exist. 25P02: it returns rows, and the block has failed.
    pub fn describe_statement(&self, name: &str) -> Result<StatementDescription, SqlError> {
        let prepared = self.prepared(name)?;
        let parameters = prepared.bound.as_ref().map_or(Vec::new(), |b| b.parameters.clone());
        let columns = self.columns(prepared)?;
        if columns.is_some() {
            self.transaction.check()?;
        }
        Ok(StatementDescription { parameters, columns })
    }

    /// The types of a prepared statement's parameters, to which values are to be bound.
    ///
    /// # Errors
    /// 26000: it doesn't exist. 25P02: the block has failed, and the statement can't end it.
    pub fn parameter_types(&self, name: &str) -> Result<&[Oid], SqlError> {
        let prepared = self.prepared(name)?;
        self.check_block(prepared.raw.as_ref())?;
        Ok(prepared.bound.as_ref().map_or(&[], |bound| &*bound.parameters))
    }

    /// Binds a prepared statement to parameters, which are stored values of the described types.
    /// `result_formats` are kept for the sender of the rows ([`Session::result_formats`]).
    ///
    /// # Errors
    /// 26000: the statement doesn't exist. 42P03: the portal exists. 08P01: the number of parameters
    /// is wrong.
    pub fn bind_portal(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: Vec<ParameterValue>,
        result_formats: Vec<ValueFormat>,
    ) -> Result<(), SqlError> {
        let prepared = Arc::clone(self.prepared(statement)?);
        self.check_block(prepared.raw.as_ref())?;
        let needed = prepared.bound.as_ref().map_or(0, |bound| bound.parameters.len());
        if parameters.len() != needed {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" \
                 requires {needed}",
                parameters.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        if !portal.is_empty() {
            self.check_new_cursor(portal)?;
        }
        let portal_state = Portal {
            statement: prepared,
            parameters: parameters.into(),
            result_formats: result_formats.into(),
            progress: Progress::New,
            savepoints: self.transaction.savepoints(),
        };
        match self.portals.get_mut(portal) {
            Some(replaced) => *replaced = portal_state,
            None => drop(self.portals.insert(portal.to_owned(), portal_state)),
        }
        Ok(())
    }

    /// The columns of a portal's rows; `None` if it returns none.
    ///
    /// # Errors
    /// 34000: it doesn't exist. 25P02: it returns rows, and the block has failed.
    pub fn describe_portal(&self, name: &str) -> Result<Option<Arc<[ResultColumn]>>, SqlError> {
        let columns = match self.cursors.get(name) {
            Some(cursor) => Some(cursor.rows.columns().into()),
            None => self.columns(&self.portal(name)?.statement)?,
        };
        if columns.is_some() {
            self.transaction.check()?;
        }
        Ok(columns)
    }

    /// The formats that a portal was bound with; none if it doesn't exist.
    pub fn result_formats(&self, portal: &str) -> Arc<[ValueFormat]> {
        self.portals
            .get(portal)
            .map(|portal| Arc::clone(&portal.result_formats))
            .unwrap_or_default()
    }

    /// Executes a portal, or continues with the rows that [`Session::put_back_portal`] has returned.
    ///
    /// # Errors
    /// 34000: it doesn't exist. 55000: it has failed, or it returns no rows and was executed before.
    /// Otherwise, those of the statement.
    pub async fn execute_portal(&mut self, name: &str) -> Result<Outcome, SqlError> {
        let portal = self.portals.get(name);
        let is_of_transaction = portal.and_then(|portal| portal.statement.raw.as_ref());
        let is_of_transaction =
            is_of_transaction.is_some_and(|raw| matches!(raw.statement, Statement::Transaction(_)));
        let result = self.run_portal(name).await;
        if result.is_ok() && !is_of_transaction {
            self.follow_portal();
        }
        if let Some(portal) = self.portals.get_mut(name)
            && let Progress::Active(tag) = &mut portal.progress
        {
            match &result {
                Ok(Outcome::Rows { tag: of_rows, .. }) => *tag = Some(of_rows),
                Ok(Outcome::CopyOut { .. }) => {}
                Ok(_) => portal.progress = Progress::Done(None),
                Err(_) => portal.progress = Progress::Failed,
            }
        }
        self.finish(&result);
        result
    }

    /// All rows of a portal were sent.
    pub fn complete_portal(&mut self, name: &str) {
        if let Some(portal) = self.portals.get_mut(name)
            && let Progress::Active(tag) = portal.progress
        {
            portal.progress = Progress::Done(tag);
        }
    }

    async fn run_portal(&mut self, name: &str) -> Result<Outcome, SqlError> {
        let portal = self.portal(name)?;
        let (statement, parameters) =
            (Arc::clone(&portal.statement), Arc::clone(&portal.parameters));
        self.check_block(statement.raw.as_ref())?;
        let Some(raw) = &statement.raw else { return Ok(Outcome::Empty) };
        let portal = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        let progress = std::mem::replace(&mut portal.progress, Progress::Active(None));
        if let Progress::Active(tag) | Progress::Done(tag) = progress {
            portal.progress = Progress::Done(tag);
            return match tag {
                Some(tag) if Outcome::is_counted(tag) => Ok(Outcome::Command(format!("{tag} 0"))),
                Some(tag) => Ok(Outcome::Command(tag.to_owned())),
                None => Err(cannot_be_run(name)),
            };
        }
        self.source.clone_from(&statement.text);
        self.begin_pipelined();
        match (progress, &statement.bound) {
            (Progress::Suspended(mut rows, tag), _) => {
                // A cancel request stops the rows by the cancellation that they began with.
                let cancellation = rows.cancellation().cloned().unwrap_or_default();
                let started = self.start(&statement.text, cancellation);
                rows.set_guard(Some(Box::new(started)));
                Ok(Outcome::Rows { rows, tag })
            }
            (Progress::New, Some(bound)) => {
                let started = self.start(&statement.text, Cancellation::default());
                match &raw.statement {
                    Statement::Explain { options, .. } => {
                        statement.plans.fetch_add(1, Ordering::Relaxed);
                        self.explain(options, bound, parameters, started).await
                    }
                    Statement::DeclareCursor(cursor) => {
                        statement.plans.fetch_add(1, Ordering::Relaxed);
                        self.declare_cursor(cursor, bound, parameters, started).await
                    }
                    _ => self.run_prepared(&statement, bound, parameters, started).await,
                }
            }
            (Progress::New, None) => {
                let started = self.start(&statement.text, Cancellation::default());
                self.nesting = raw.nesting();
                self.execute_statement(started, &raw.statement).await
            }
            (Progress::Active(_) | Progress::Done(_) | Progress::Failed, _) => {
                Err(cannot_be_run(name))
            }
        }
    }

    /// Fails in a block that has failed, unless the statement may end it.
    fn check_block(&self, raw: Option<&RawStatement>) -> Result<(), SqlError> {
        match raw.map(|raw| &raw.statement) {
            None | Some(Statement::Transaction(_)) => Ok(()),
            Some(_) => self.transaction.check(),
        }
    }

    /// Returns the rows of a suspended portal with their command tag. The next
    /// [`Session::execute_portal`] continues with them.
    pub fn put_back_portal(&mut self, name: &str, mut rows: Rows, tag: &'static str) {
        rows.set_guard(None);
        rows.release_ahead();
        if let Some(portal) = self.portals.get_mut(name) {
            portal.progress = Progress::Suspended(rows, tag);
        }
    }

    /// Forgets a prepared statement, if it exists.
    pub fn close_statement(&mut self, name: &str) {
        if self.prepared.contains_key(name) {
            Arc::make_mut(&mut self.prepared).remove(name);
        }
    }

    /// Forgets a portal, if it exists.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
        self.cursors.remove(name);
    }

    pub(super) fn prepared(&self, name: &str) -> Result<&Arc<Prepared>, SqlError> {
        self.prepared.get(name).ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    pub(super) fn portal(&self, name: &str) -> Result<&Portal, SqlError> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    pub(super) fn columns(
        &self,
        prepared: &Prepared,
    ) -> Result<Option<Arc<[ResultColumn]>>, SqlError> {
        match prepared.raw.as_ref().map(|raw| &raw.statement) {
            Some(Statement::VariableShow(name)) => {
                return self.show_columns(name.as_ref()).map(|columns| Some(columns.into()));
            }
            // What the statement names may not exist yet, which is an error of its execution only.
            Some(Statement::Execute { name, .. }) => {
                return self.columns_of_execute(&name.text).or(Ok(None));
            }
            Some(Statement::Fetch(fetch)) => {
                let cursor = self.cursor(&fetch.cursor.text).ok().filter(|_| !fetch.is_move);
                return Ok(cursor.map(|cursor| cursor.rows.columns().into()));
            }
            Some(Statement::DeclareCursor(_)) => return Ok(None),
            _ => {}
        }
        if let Some(raw) = &prepared.raw
            && let Some(columns) = columns_of_explain(&raw.statement)?
        {
            return Ok(Some(columns.into()));
        }
        let Some(bound) = &prepared.bound else { return Ok(None) };
        if let Some(columns) = prepared.columns.get() {
            return Ok(Some(Arc::clone(columns)));
        }
        let environment = self.environment(Arc::default());
        let columns: Arc<[_]> = result_columns(&bound.statement, &environment)?.into();
        // Another caller may have set the same ones.
        let _set = prepared.columns.set(Arc::clone(&columns));
        Ok(Some(columns))
    }
}

fn cannot_be_run(name: &str) -> SqlError {
    let message = format!("portal \"{name}\" cannot be run");
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}
