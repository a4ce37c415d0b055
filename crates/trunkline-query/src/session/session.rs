//! The session itself: binding, execution, prepared statements and portals.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use trunkline_aio::clock;
use trunkline_engine::time_zone;
use trunkline_format::Oid;
use trunkline_format::text_input::InputOptions;
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, Utc};
use trunkline_sql::bind::{BindOptions, Bound, bind};
use trunkline_sql::catalog::{Namespace, SearchPath, SessionCatalog};
use trunkline_sql::functions::CallSettings;
use trunkline_sql::syntax::{
    CopySource, CopyTarget, CopyTo, RawStatement, SelectStatement, Statement, parse,
};
use trunkline_sql::{SqlError, SqlState};

use super::copy::table_query;
use super::outcome::{Notice, Outcome, Severity, StatementDescription, TransactionStatus};
use super::running::{Running, SessionCanceller};
use super::startup::Startup;
use super::transaction::Transaction;
use crate::encode::CopyOptions;
use crate::environment::{Environment, ParameterValue};
use crate::extension::create_extension;
use crate::file_sizes::FileSizes;
use crate::instance::{Activity, ActivityEntry, ActivityState, Instance, OpenedDatabase};
use crate::scan::Cancellation;
use crate::statement::{
    ResultColumn, Rows, StatementContext, StatementOptions, execute, result_columns,
};

/// Seconds from 1970 to 2000, in microseconds.
const EPOCH_US: i64 = 946_684_800_000_000;

/// A prepared statement.
struct Prepared {
    text: String,
    /// `None`: the text contains no statement.
    raw: Option<RawStatement>,
    /// The binding, if it is a query.
    bound: Option<Bound>,
}

/// A prepared statement with its parameters.
struct Portal {
    statement: Arc<Prepared>,
    parameters: Arc<[ParameterValue]>,
    /// The rows that are left, after a suspension.
    rows: Option<Rows>,
}

/// One connection.
pub struct Session {
    instance: Arc<Instance>,
    database: Arc<OpenedDatabase>,
    user: String,
    path: SearchPath,
    settings: Arc<CallSettings>,
    notices: Vec<Notice>,
    changed: Vec<(String, String)>,
    prepared: BTreeMap<String, Arc<Prepared>>,
    portals: BTreeMap<String, Portal>,
    transaction: Transaction,
    canceller: SessionCanceller,
    activity: Arc<ActivityEntry>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("database", &self.database.name()).finish_non_exhaustive()
    }
}

/// The current time, in microseconds since 2000.
fn now_us() -> i64 {
    clock::unix_micros().saturating_sub(EPOCH_US)
}

impl Session {
    /// Opens a session. Opening a database for the first time reads its catalogs.
    ///
    /// # Errors
    /// 3D000: the database doesn't exist. Otherwise, its catalogs can't be read, or a setting is
    /// wrong.
    pub async fn open(instance: &Arc<Instance>, startup: Startup) -> Result<Self, SqlError> {
        let (shared, name) = (Arc::clone(instance), startup.database.clone());
        let opening = tokio::task::spawn_blocking(move || shared.database(&name));
        let database = opening.await.map_err(|error| SqlError::internal(error.to_string()))??;
        let path = SearchPath::new(database.catalog(), &["$user", "public"], Some(&startup.user));
        let now = now_us();
        let major = instance.cluster().dir().control().version.major();
        let zone = time_zone::zone("GMT").unwrap_or_else(|| Arc::new(Utc));
        let settings = Arc::new(CallSettings {
            major,
            catalog: Arc::clone(database.database()) as _,
            // Every statement sets it, because the search path can change.
            session: None,
            collations: Arc::clone(database.collations()),
            zone,
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            interval_style: IntervalStyle::Postgres,
            transaction_start: now,
            statement_start: now,
            server: None,
        });
        let activity = instance.add_activity(|pid| Activity {
            pid,
            database: startup.database.clone(),
            user: startup.user.clone(),
            application_name: startup.application_name.clone(),
            client_address: startup.client_address,
            backend_start: now,
            transaction_start: None,
            query_start: None,
            state_change: now,
            state: ActivityState::Idle,
            query: String::new(),
        });
        let parameter = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Ok(Self {
            instance: Arc::clone(instance),
            database,
            path,
            settings,
            notices: Vec::new(),
            changed: vec![
                parameter("server_version", &format!("{major}.0")),
                parameter("server_encoding", "UTF8"),
                parameter("client_encoding", "UTF8"),
                parameter("DateStyle", "ISO, MDY"),
                parameter("IntervalStyle", "postgres"),
                parameter("TimeZone", "GMT"),
                parameter("integer_datetimes", "on"),
                parameter("standard_conforming_strings", "on"),
                parameter("application_name", &startup.application_name),
            ],
            user: startup.user,
            prepared: BTreeMap::new(),
            portals: BTreeMap::new(),
            transaction: Transaction::default(),
            canceller: SessionCanceller::default(),
            activity: Arc::new(activity),
        })
    }

    /// The instance.
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// The database.
    pub fn database(&self) -> &Arc<OpenedDatabase> {
        &self.database
    }

    /// The user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The session's number, which clients know as the process ID of its backend.
    pub fn pid(&self) -> i32 {
        self.activity.pid()
    }

    /// The settings that values are printed and computed with.
    pub fn call_settings(&self) -> &Arc<CallSettings> {
        &self.settings
    }

    /// Whether the session is in a transaction block.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.transaction.status()
    }

    /// The notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The parameters that have changed since the last call and that clients are informed of; at
    /// first, all of them.
    pub fn take_changed_parameters(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.changed)
    }

    /// Cancels statements of this session from any thread.
    pub fn canceller(&self) -> SessionCanceller {
        self.canceller.clone()
    }

    /// Executes one statement of a text, as in the simple protocol.
    ///
    /// # Errors
    /// Those of the statement. Positions are offsets in the whole text.
    pub async fn execute(
        &mut self,
        text: &str,
        statement: &RawStatement,
    ) -> Result<Outcome, SqlError> {
        let result = self.execute_statement(text, &statement.statement).await;
        if result.is_err() {
            self.fail();
        }
        result
    }

    async fn execute_statement(
        &mut self,
        text: &str,
        statement: &Statement,
    ) -> Result<Outcome, SqlError> {
        let running = self.start(text);
        running.cancellation.check()?;
        if let Statement::Transaction(command) = statement {
            let now = self.settings.statement_start;
            let tag = self.transaction.execute(command, now, &mut self.notices)?;
            if self.transaction.start().is_none() {
                self.portals.clear();
            }
            return Ok(Outcome::Command(tag.to_owned()));
        }
        self.transaction.check()?;
        match statement {
            Statement::CreateExtension { name, .. } => {
                let text = create_extension(&name.text)?;
                let fields = SqlError::new(SqlState::SUCCESSFUL_COMPLETION, text);
                self.notices.push(Notice { severity: Severity::Notice, fields });
                Ok(Outcome::Command("CREATE EXTENSION".to_owned()))
            }
            Statement::Select(select) => {
                let bound = self.bind(select, None)?;
                self.run(&bound, Arc::default(), running).await
            }
            Statement::CopyTo(copy) => self.copy(copy, running).await,
            other => Err(refused(other)),
        }
    }

    /// `COPY … TO STDOUT`.
    async fn copy(&mut self, copy: &CopyTo, started: Started) -> Result<Outcome, SqlError> {
        if copy.target != CopyTarget::Stdout {
            return Err(SqlError::unsupported("COPY TO a file is not supported by trunkline")
                .with_hint("Use COPY TO STDOUT, or psql's \\copy."));
        }
        let options = CopyOptions::read(&copy.options, self.settings.major)?;
        let outcome = match &copy.source {
            CopySource::Query(select) => {
                let bound = self.bind(select, None)?;
                self.run(&bound, Arc::default(), started).await?
            }
            CopySource::Relation(name, columns) => {
                let names = Namespace::new(self.database.catalog(), &self.path);
                let query = table_query(names, name, columns, self.settings.major)?;
                let statements = parse(&query)?;
                let Some(Statement::Select(select)) =
                    statements.first().map(|statement| &statement.statement)
                else {
                    return Err(SqlError::internal("COPY of a table is a query"));
                };
                // A position would be one of the text made above.
                let bound = self.bind(select, None).map_err(|error| without_position(&error))?;
                self.run(&bound, Arc::default(), started).await?
            }
        };
        match outcome {
            Outcome::Rows { rows, .. } => Ok(Outcome::CopyOut { rows, options }),
            other => Ok(other),
        }
    }

    /// Marks the transaction block as failed, if there is one. The sender of rows must call this if
    /// [`Rows::next`] fails, because the session no longer has the rows.
    pub fn fail(&mut self) {
        self.transaction.fail();
    }

    /// Prepares a statement. The empty name stands for the unnamed statement, which may be replaced.
    ///
    /// # Errors
    /// 42P05: the name is taken. Otherwise, those of the statement.
    pub fn prepare(&mut self, name: &str, text: &str, types: &[Oid]) -> Result<(), SqlError> {
        if !name.is_empty() && self.prepared.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message));
        }
        let mut statements = parse(text)?;
        let raw = statements.pop();
        if !statements.is_empty() {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let bound = match raw.as_ref().map(|raw| &raw.statement) {
            None => None,
            Some(Statement::Select(select)) => Some(self.bind(select, Some(types))?),
            Some(_) => None,
        };
        let prepared = Arc::new(Prepared { text: text.to_owned(), raw, bound });
        self.prepared.insert(name.to_owned(), prepared);
        Ok(())
    }

    /// What a prepared statement takes and returns.
    ///
    /// # Errors
    /// 26000: it doesn't exist.
    pub fn describe_statement(&self, name: &str) -> Result<StatementDescription, SqlError> {
        let prepared = self.prepared(name)?;
        let parameters = prepared.bound.as_ref().map_or(Vec::new(), |b| b.parameters.clone());
        Ok(StatementDescription { parameters, columns: self.columns(&prepared)? })
    }

    /// Binds a prepared statement to parameters, which are stored values of the described types.
    ///
    /// # Errors
    /// 26000: the statement doesn't exist. 42P03: the portal exists. 08P01: the number of parameters
    /// is wrong.
    pub fn bind_portal(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: Vec<ParameterValue>,
    ) -> Result<(), SqlError> {
        let prepared = self.prepared(statement)?;
        let needed = prepared.bound.as_ref().map_or(0, |bound| bound.parameters.len());
        if parameters.len() != needed {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" \
                 requires {needed}",
                parameters.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        if !portal.is_empty() && self.portals.contains_key(portal) {
            let message = format!("cursor \"{portal}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, message));
        }
        let portal_state =
            Portal { statement: prepared, parameters: parameters.into(), rows: None };
        self.portals.insert(portal.to_owned(), portal_state);
        Ok(())
    }

    /// The columns of a portal's rows; `None` if it returns none.
    ///
    /// # Errors
    /// 34000: it doesn't exist.
    pub fn describe_portal(&self, name: &str) -> Result<Option<Vec<ResultColumn>>, SqlError> {
        self.columns(&self.portal(name)?.statement)
    }

    /// Executes a portal, or continues with the rows that [`Session::put_back_portal`] has returned.
    ///
    /// # Errors
    /// 34000: it doesn't exist. Otherwise, those of the statement.
    pub async fn execute_portal(&mut self, name: &str) -> Result<Outcome, SqlError> {
        let result = self.run_portal(name).await;
        if result.is_err() {
            self.fail();
        }
        result
    }

    async fn run_portal(&mut self, name: &str) -> Result<Outcome, SqlError> {
        let missing = || no_portal(name);
        let portal = self.portals.get_mut(name).ok_or_else(missing)?;
        let (statement, rows) = (Arc::clone(&portal.statement), portal.rows.take());
        let parameters = Arc::clone(&portal.parameters);
        let running = self.start(&statement.text);
        if let Some(mut rows) = rows {
            self.resume(&mut rows, running);
            return Ok(Outcome::Rows { rows, tag: "SELECT" });
        }
        match (&statement.raw, &statement.bound) {
            (None, _) => Ok(Outcome::Empty),
            (Some(_), Some(bound)) => {
                self.transaction.check()?;
                self.run(bound, parameters, running).await
            }
            (Some(raw), None) => {
                drop(running);
                self.execute_statement(&statement.text, &raw.statement).await
            }
        }
    }

    /// Returns the rows of a suspended portal, which the next [`Session::execute_portal`] continues
    /// with.
    pub fn put_back_portal(&mut self, name: &str, mut rows: Rows) {
        rows.set_guard(None);
        rows.release_ahead();
        if let Some(portal) = self.portals.get_mut(name) {
            portal.rows = Some(rows);
        }
    }

    /// Forgets a prepared statement, if it exists.
    pub fn close_statement(&mut self, name: &str) {
        self.prepared.remove(name);
    }

    /// Forgets a portal, if it exists.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Ends a series of messages of the extended protocol. Outside of a transaction block, this ends
    /// the transaction, and its portals with it.
    pub fn sync(&mut self) {
        if self.transaction_status() == TransactionStatus::Idle {
            self.portals.clear();
        }
    }

    fn prepared(&self, name: &str) -> Result<Arc<Prepared>, SqlError> {
        self.prepared.get(name).map(Arc::clone).ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    fn portal(&self, name: &str) -> Result<&Portal, SqlError> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    fn columns(&self, prepared: &Prepared) -> Result<Option<Vec<ResultColumn>>, SqlError> {
        let environment = self.environment(Arc::default());
        let columns = prepared.bound.as_ref();
        columns.map(|bound| result_columns(&bound.statement, &environment)).transpose()
    }

    fn bind(&self, select: &SelectStatement, types: Option<&[Oid]>) -> Result<Bound, SqlError> {
        let settings = &self.settings;
        let input = InputOptions {
            zone: &*settings.zone,
            interval_style: settings.interval_style,
            ..InputOptions::new(
                settings.major,
                &**self.database.database(),
                settings.transaction_start,
            )
        };
        let names = Namespace::new(self.database.catalog(), &self.path);
        bind(select, BindOptions { names, input, parameters: types })
    }

    fn environment(&self, parameters: Arc<[ParameterValue]>) -> Environment {
        let catalog = self.database.catalog().clone();
        Environment { catalog, settings: Arc::clone(&self.settings), parameters }
    }

    /// Marks the start of a statement.
    fn start(&mut self, text: &str) -> Started {
        let now = now_us();
        let begun = self.transaction.start().unwrap_or(now);
        let session = SessionCatalog {
            catalog: self.database.catalog().clone(),
            path: self.path.clone(),
            sizes: Arc::new(FileSizes::new(self.database.database())),
        };
        let settings = CallSettings {
            session: Some(Arc::new(session)),
            transaction_start: begun,
            statement_start: now,
            ..(*self.settings).clone()
        };
        self.settings = Arc::new(settings);
        self.activity.change(|activity| {
            activity.state = ActivityState::Active;
            activity.state_change = now;
            activity.query_start = Some(now);
            activity.query = text.to_owned();
        });
        let cancellation = Cancellation::default();
        let running = self.canceller.start(&cancellation, None);
        Started { cancellation, _running: running, activity: Arc::clone(&self.activity) }
    }

    /// Continues rows, which then end with their own cancellation.
    fn resume(&self, rows: &mut Rows, started: Started) {
        if let Some(cancellation) = rows.cancellation().cloned() {
            let activity = Arc::clone(&self.activity);
            drop(started);
            activity.change(|activity| activity.state = ActivityState::Active);
            let running = self.canceller.start(&cancellation, None);
            rows.set_guard(Some(Box::new(Started { cancellation, _running: running, activity })));
        }
    }

    async fn run(
        &self,
        bound: &Bound,
        parameters: Arc<[ParameterValue]>,
        started: Started,
    ) -> Result<Outcome, SqlError> {
        let context = StatementContext {
            engine: self.instance.engine().clone(),
            database: Arc::clone(self.database.database()),
            environment: self.environment(parameters),
            cancellation: started.cancellation.clone(),
            options: StatementOptions {
                temporary_directory: self.instance.options().temporary_directory.clone(),
                ..StatementOptions::default()
            },
        };
        let mut rows = execute(&bound.statement, &context).await?;
        rows.set_guard(Some(Box::new(started)));
        Ok(Outcome::Rows { rows, tag: "SELECT" })
    }
}

/// A statement that runs, as clients and other sessions see it.
struct Started {
    cancellation: Cancellation,
    _running: Running,
    activity: Arc<ActivityEntry>,
}

impl Drop for Started {
    fn drop(&mut self) {
        let now = now_us();
        self.activity.change(|activity| {
            activity.state = ActivityState::Idle;
            activity.state_change = now;
        });
    }
}

/// The same error without a position.
fn without_position(error: &SqlError) -> SqlError {
    let mut copy = SqlError::new(error.code(), error.message());
    if let Some(detail) = error.detail() {
        copy = copy.with_detail(detail);
    }
    match error.hint() {
        Some(hint) => copy.with_hint(hint),
        None => copy,
    }
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}

fn refused(statement: &Statement) -> SqlError {
    if let Statement::Write { command } = statement {
        let message = format!("cannot execute {command} in a read-only transaction");
        return SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message);
    }
    SqlError::unsupported("this command is not supported by trunkline")
}
