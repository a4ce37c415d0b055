//! The session itself: binding, execution, prepared statements and portals.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use trunkline_aio::clock;
use trunkline_aio::facade::Mutex;
use trunkline_format::Oid;
use trunkline_format::text_input::{DateOrder, InputOptions};
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, Utc};
use trunkline_sql::bind::{BindOptions, Bound, bind};
use trunkline_sql::catalog::{Namespace, SearchPath, SessionCatalog};
use trunkline_sql::functions::CallSettings;
use trunkline_sql::syntax::{
    CopySource, CopyTarget, CopyTo, RawStatement, SelectStatement, Statement, TransactionStatement,
    parse,
};
use trunkline_sql::{SqlError, SqlState};

use super::copy::table_query;
use super::effects::{apply_to_calls, search_path, statement_limit, statement_options};
use super::functions::SessionFunctions;
use super::outcome::{Notice, Outcome, Severity, StatementDescription, TransactionStatus};
use super::refusal::{check_modes, refused};
use super::running::{Running, SessionCanceller};
use super::startup::Startup;
use super::transaction::Transaction;
use crate::encode::{ClientEncoding, CopyOptions};
use crate::environment::{Environment, ParameterValue};
use crate::extension::create_extension;
use crate::file_sizes::FileSizes;
use crate::instance::{Activity, ActivityEntry, ActivityState, Instance, OpenedDatabase};
use crate::scan::Cancellation;
use crate::settings::SettingsStore;
use crate::statement::{
    ResultColumn, Rows, StatementContext, StatementOptions, execute, result_columns,
};

/// Seconds from 1970 to 2000, in microseconds.
const EPOCH_US: i64 = 946_684_800_000_000;

/// A prepared statement.
pub(super) struct Prepared {
    text: String,
    /// `None`: the text contains no statement.
    raw: Option<RawStatement>,
    /// The binding, if it is a query.
    bound: Option<Bound>,
}

/// A prepared statement with its parameters.
pub(super) struct Portal {
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
    pub(super) settings: Arc<CallSettings>,
    /// Shared with the functions of a statement, because `set_config` is one.
    pub(super) store: Arc<Mutex<SettingsStore>>,
    pub(super) notices: Vec<Notice>,
    pub(super) prepared: BTreeMap<String, Arc<Prepared>>,
    pub(super) portals: BTreeMap<String, Portal>,
    pub(super) transaction: Transaction,
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
        let (store, notices) = session_settings(instance, &database, &startup)?;
        let path = search_path(&store, database.catalog(), &startup.user);
        let now = now_us();
        let major = instance.cluster().dir().control().version.major();
        let mut settings = CallSettings {
            major,
            catalog: Arc::clone(database.database()) as _,
            // Every statement sets it, because the search path can change.
            session: None,
            collations: Arc::clone(database.collations()),
            zone: Arc::new(Utc),
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            transaction_start: now,
            statement_start: now,
            server: None,
        };
        apply_to_calls(&store, &mut settings);
        let activity = instance.add_activity(|pid| Activity {
            pid,
            database: startup.database.clone(),
            user: startup.user.clone(),
            application_name: store.value("application_name"),
            client_address: startup.client_address,
            backend_start: now,
            transaction_start: None,
            query_start: None,
            state_change: now,
            state: ActivityState::Idle,
            query: String::new(),
        });
        Ok(Self {
            instance: Arc::clone(instance),
            database,
            path,
            settings: Arc::new(settings),
            store: Arc::new(Mutex::new(store)),
            notices,
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

    /// The notices since the last call that `client_min_messages` lets through.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let notices = std::mem::take(&mut self.notices);
        // All others are warnings, and there is no value between them and errors.
        let only_errors = self.store.lock().value("client_min_messages") == "error";
        let is_shown = |notice: &Notice| notice.severity == Severity::Info || !only_errors;
        notices.into_iter().filter(is_shown).collect()
    }

    /// The parameters that have changed since the last call and that clients are informed of; at
    /// first, all of them.
    pub fn take_changed_parameters(&mut self) -> Vec<(String, String)> {
        self.store.lock().take_changed()
    }

    /// The value of a setting, as SHOW prints it.
    ///
    /// # Errors
    /// 42704: there is no such setting.
    pub fn setting(&self, name: &str) -> Result<String, SqlError> {
        Ok(self.store.lock().show(name)?.1)
    }

    /// How text is converted for the client (`client_encoding`).
    ///
    /// # Errors
    /// 0A000: we can't convert to it. SET has checked that.
    pub fn client_encoding(&self) -> Result<ClientEncoding, SqlError> {
        let client = ClientEncoding::by_name(&self.store.lock().value("client_encoding"));
        let database = self.database.database().info().encoding;
        ClientEncoding::new(database, client.unwrap_or(database))
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
            if let TransactionStatement::Begin(modes) | TransactionStatement::Start(modes) = command
            {
                self.transaction.check()?;
                check_modes(modes)?;
            }
            let tag = self.transaction.execute(command, now, &mut self.notices)?;
            self.follow_transaction(command, tag)?;
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
            Statement::VariableSet { local, action } => self.set_variable(*local, action),
            Statement::SetTransaction { session, modes } => self.set_transaction(*session, modes),
            Statement::VariableShow(name) => self.show(name.as_ref()),
            Statement::Discard(target) => self.discard(*target),
            Statement::Deallocate(name) => self.deallocate(name.as_ref()),
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

    pub(super) fn prepared(&self, name: &str) -> Result<Arc<Prepared>, SqlError> {
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
        if let Some(Statement::VariableShow(name)) = prepared.raw.as_ref().map(|raw| &raw.statement)
        {
            return self.show_columns(name.as_ref()).map(Some);
        }
        let environment = self.environment(Arc::default());
        let columns = prepared.bound.as_ref();
        columns.map(|bound| result_columns(&bound.statement, &environment)).transpose()
    }

    fn bind(&self, select: &SelectStatement, types: Option<&[Oid]>) -> Result<Bound, SqlError> {
        let settings = &self.settings;
        let input = InputOptions {
            zone: &*settings.zone,
            interval_style: settings.interval_style,
            date_order: settings.date_order,
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
        let store = self.store.lock();
        self.path = search_path(&store, self.database.catalog(), &self.user);
        let session = Arc::new(SessionCatalog {
            catalog: self.database.catalog().clone(),
            path: self.path.clone(),
            sizes: Arc::new(FileSizes::new(self.database.database())),
        });
        let functions = SessionFunctions {
            store: Arc::clone(&self.store),
            names: Arc::clone(&session),
            database: self.database.name().to_owned(),
            user: self.user.clone(),
            pid: self.activity.pid(),
            start_time: self.instance.start_time(),
        };
        let mut settings = CallSettings {
            session: Some(session),
            server: Some(Arc::new(functions)),
            transaction_start: begun,
            statement_start: now,
            ..(*self.settings).clone()
        };
        apply_to_calls(&store, &mut settings);
        let limit = statement_limit(&store);
        let application_name = store.value("application_name");
        drop(store);
        self.settings = Arc::new(settings);
        self.activity.change(|activity| {
            activity.state = ActivityState::Active;
            activity.state_change = now;
            activity.query_start = Some(now);
            activity.query = text.to_owned();
            activity.application_name = application_name;
        });
        let cancellation = Cancellation::default();
        let running = self.canceller.start(&cancellation, limit);
        Started { cancellation, _running: running, activity: Arc::clone(&self.activity) }
    }

    /// Continues rows, which then end with their own cancellation.
    fn resume(&self, rows: &mut Rows, started: Started) {
        if let Some(cancellation) = rows.cancellation().cloned() {
            let activity = Arc::clone(&self.activity);
            drop(started);
            activity.change(|activity| activity.state = ActivityState::Active);
            let limit = statement_limit(&self.store.lock());
            let running = self.canceller.start(&cancellation, limit);
            rows.set_guard(Some(Box::new(Started { cancellation, _running: running, activity })));
        }
    }

    /// Executes a query. `&mut` although nothing changes: rows of portals can move to another thread,
    /// but threads can't share them, so a future with `&self` would stay on one thread.
    async fn run(
        &mut self,
        bound: &Bound,
        parameters: Arc<[ParameterValue]>,
        started: Started,
    ) -> Result<Outcome, SqlError> {
        // The lock ends in a block of its own: even after a drop, the future would count it as kept.
        let options = {
            let mut store = self.store.lock();
            store.mark_query();
            StatementOptions {
                temporary_directory: self.instance.options().temporary_directory.clone(),
                ..statement_options(&store)
            }
        };
        let context = StatementContext {
            engine: self.instance.engine().clone(),
            database: Arc::clone(self.database.database()),
            environment: self.environment(parameters),
            cancellation: started.cancellation.clone(),
            options,
        };
        let mut rows = execute(&bound.statement, &context).await?;
        rows.set_guard(Some(Box::new(started)));
        Ok(Outcome::Rows { rows, tag: "SELECT" })
    }
}

/// The settings that a session starts with: those of the instance, of the database, and of the
/// connection. A wrong value of the database is left out, with a warning.
fn session_settings(
    instance: &Instance,
    database: &OpenedDatabase,
    startup: &Startup,
) -> Result<(SettingsStore, Vec<Notice>), SqlError> {
    let encoding = database.database().info().encoding;
    let mut store = instance.settings().for_database(encoding);
    store.describe("session_authorization", startup.user.clone());
    let mut notices = Vec::new();
    for (name, value) in database.settings() {
        if let Err(fields) = store.set_default(name, value) {
            notices.push(Notice { severity: Severity::Warning, fields });
        }
    }
    store.set_default("application_name", &startup.application_name)?;
    for (name, value) in &startup.settings {
        store.set_default(name, value)?;
    }
    Ok((store, notices))
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
