//! The session itself: opening, binding, execution.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use trunkline_aio::clock;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_format::text_input::DateOrder;
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, Utc};
use trunkline_sql::bind::Bound;
use trunkline_sql::catalog::{Addresses, Namespace, SearchPath, SessionCatalog};
use trunkline_sql::functions::CallSettings;
use trunkline_sql::syntax::{
    CopySource, CopyTarget, CopyTo, RawStatement, Statement, TransactionStatement, parse,
};
use trunkline_sql::{SqlError, SqlState};

use super::copy::table_query;
use super::effects::{Effects, apply_to_calls, search_path, statement_limit};
use super::functions::SessionFunctions;
use super::outcome::{Notice, Outcome, Severity, TransactionStatus};
use super::prepared::{Cursor, Portal, Prepared};
use super::refusal::{check_modes, explained, refused};
use super::running::{Running, SessionCanceller};
use super::startup::Startup;
use super::transaction::Transaction;
use crate::encode::{ClientEncoding, CopyOptions};
use crate::environment::{Environment, ParameterValue};
use crate::extension::create_extension;
use crate::file_sizes::FileSizes;
use crate::instance::{Activity, ActivityEntry, ActivityState, Instance, OpenedDatabase};
use crate::scan::Cancellation;
use crate::settings::{LIVE, SettingsStore, Source};
use crate::statement::{PointQuery, Rows, StatementContext, StatementOptions, execute};

/// Seconds from 1970 to 2000, in microseconds.
const EPOCH_US: i64 = 946_684_800_000_000;

/// How much of a statement's text other sessions see, in bytes; PostgreSQL's default of
/// `track_activity_query_size`, without the byte that ends it.
const ACTIVITY_QUERY_MAX: usize = 1023;

/// One connection.
pub struct Session {
    instance: Arc<Instance>,
    database: Arc<OpenedDatabase>,
    user: String,
    addresses: Option<Addresses>,
    pub(super) path: SearchPath,
    pub(super) settings: Arc<CallSettings>,
    /// What the settings say, as of the last [`Session::refresh`].
    pub(super) effects: Effects,
    /// Shared with the functions of a statement, because `set_config` is one.
    pub(super) store: Arc<Mutex<SettingsStore>>,
    pub(super) notices: Vec<Notice>,
    /// Notices of functions.
    function_notices: Arc<Mutex<Vec<Notice>>>,
    pub(super) prepared: Arc<BTreeMap<String, Arc<Prepared>>>,
    /// The prepared statements that the functions of the last statement saw, if there were no cursors.
    seen: Option<Arc<BTreeMap<String, Arc<Prepared>>>>,
    pub(super) portals: BTreeMap<String, Portal>,
    pub(super) cursors: BTreeMap<String, Cursor>,
    pub(super) transaction: Transaction,
    /// When the text of several statements arrived that is executed, in microseconds since 2000.
    pub(super) series_start: Option<i64>,
    /// When the transaction of the portals began that were executed since the last `Sync`, in
    /// microseconds since 2000.
    pub(super) pipeline_start: Option<i64>,
    /// How often the file of ALTER SYSTEM had been read when the settings were taken from it.
    configuration: u64,
    /// How deep the statement that is bound may nest.
    pub(super) nesting: usize,
    /// The text that the statement is in.
    pub(super) source: String,
    canceller: SessionCanceller,
    activity: Arc<ActivityEntry>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("database", &self.database.name()).finish_non_exhaustive()
    }
}

/// The current time, in microseconds since 2000.
pub(super) fn now_us() -> i64 {
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
        let effects = Effects::new(&store, database.database().info().encoding);
        let canceller = SessionCanceller::default();
        let activity = instance.add_activity(Arc::new(canceller.clone()), |pid| Activity {
            pid,
            database_oid: database.database().info().oid,
            database: startup.database.clone(),
            user: startup.user.clone(),
            application_name: store.value("application_name"),
            client_address: startup.addresses.map(|addresses| addresses.client),
            backend_start: now,
            transaction_start: None,
            query_start: None,
            state_change: now,
            state: ActivityState::Idle,
            wait: None,
            query: String::new(),
        });
        Ok(Self {
            instance: Arc::clone(instance),
            database,
            path,
            settings: Arc::new(settings),
            effects,
            store: Arc::new(Mutex::new(store)),
            notices,
            function_notices: Arc::default(),
            user: startup.user,
            addresses: startup.addresses,
            prepared: Arc::default(),
            seen: None,
            portals: BTreeMap::new(),
            cursors: BTreeMap::new(),
            transaction: Transaction::default(),
            series_start: None,
            pipeline_start: None,
            configuration: 0,
            nesting: 0,
            source: String::new(),
            canceller,
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
        let made = std::mem::take(&mut *self.function_notices.lock());
        made.into_iter().for_each(|notice| self.notify(notice));
        std::mem::take(&mut self.notices)
    }

    /// Adds a notice, if `client_min_messages` lets it through.
    pub(super) fn notify(&mut self, notice: Notice) {
        let is_shown = match &*self.store.lock().value("client_min_messages") {
            "error" => false,
            "warning" => notice.severity == Severity::Warning,
            _ => true,
        };
        if is_shown {
            self.notices.push(notice);
        }
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
        let store = self.store.lock();
        if self.effects.are_of(&store) {
            return self.effects.client_encoding.clone();
        }
        Effects::new(&store, self.database.database().info().encoding).client_encoding
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
        let started = self.start(text, Cancellation::default());
        self.nesting = statement.nesting();
        text.clone_into(&mut self.source);
        let result = self.execute_statement(started, &statement.statement).await;
        self.finish(&result);
        result
    }

    pub(super) async fn execute_statement(
        &mut self,
        started: Started,
        statement: &Statement,
    ) -> Result<Outcome, SqlError> {
        started.cancellation.check()?;
        if let Statement::Transaction(command) = statement {
            let now = self.settings.statement_start;
            if let TransactionStatement::Begin(modes) | TransactionStatement::Start(modes) = command
            {
                self.transaction.check()?;
                check_modes(modes)?;
            }
            let mut notices = Vec::new();
            let tag = self.transaction.execute(command, now, &mut notices);
            notices.into_iter().for_each(|notice| self.notify(notice));
            let tag = tag?;
            self.follow_transaction(command, tag)?;
            return Ok(Outcome::Command(tag.to_owned()));
        }
        self.transaction.check()?;
        match statement {
            Statement::CreateExtension { name, .. } => {
                let text = create_extension(&name.text)?;
                let fields = SqlError::new(SqlState::SUCCESSFUL_COMPLETION, text);
                self.notify(Notice { severity: Severity::Notice, fields });
                Ok(Outcome::Command("CREATE EXTENSION".to_owned()))
            }
            Statement::Select(select) => {
                let bound = self.bind(select, None)?;
                self.run(&bound, Arc::default(), started).await
            }
            Statement::Explain { options, statement } => {
                let bound = self.bind(explained(statement)?, None)?;
                self.explain(options, &bound, Arc::default(), started).await
            }
            Statement::CopyTo(copy) => self.copy(copy, started).await,
            Statement::VariableSet { local, action } => self.set_variable(*local, action),
            Statement::SetTransaction { session, modes } => self.set_transaction(*session, modes),
            Statement::AlterSystem(action) => self.alter_system(action),
            Statement::VariableShow(name) => self.show(name.as_ref()),
            Statement::Discard(target) => self.discard(*target),
            Statement::Deallocate(name) => self.deallocate(name.as_ref()),
            Statement::Prepare { name, argument_types, statement } => {
                self.prepare_sql(name, argument_types, statement)
            }
            Statement::Execute { name, parameters } => {
                self.execute_sql(name, parameters, started).await
            }
            Statement::DeclareCursor(cursor) => {
                let bound = self.bind(&cursor.query, None)?;
                self.declare_cursor(cursor, &bound, Arc::default(), started).await
            }
            Statement::Fetch(fetch) => self.fetch(fetch, started).await,
            Statement::ClosePortal(name) => self.close_cursor(name.as_ref()),
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
                let bound = self.bind(select, None).map_err(SqlError::without_position)?;
                self.run(&bound, Arc::default(), started).await?
            }
        };
        match outcome {
            Outcome::Rows { rows, .. } => Ok(Outcome::CopyOut { rows, options }),
            other => Ok(other),
        }
    }

    /// Marks the transaction block as failed, if there is one. The sender of rows must call this if
    /// it cannot read or send all of them, because the session no longer has the rows.
    pub fn fail(&mut self) {
        self.fail_transaction();
        self.publish_transaction();
    }

    /// What follows a statement, or the start of its rows.
    pub(super) fn finish(&mut self, result: &Result<Outcome, SqlError>) {
        if result.is_err() {
            self.fail_transaction();
        }
        self.publish_transaction();
    }

    /// Shows other sessions what the session does between statements.
    pub(super) fn publish_transaction(&self) {
        let between = match self.transaction.status() {
            TransactionStatus::Idle => ActivityState::Idle,
            TransactionStatus::InTransaction => ActivityState::IdleInTransaction,
            TransactionStatus::Failed => ActivityState::IdleInTransactionAborted,
        };
        self.activity.set_transaction(between, self.transaction.start());
    }

    pub(super) fn environment(&self, parameters: Arc<[ParameterValue]>) -> Environment {
        let catalog = self.database.catalog().clone();
        Environment { catalog, settings: Arc::clone(&self.settings), parameters }
    }

    /// Lets settings take effect that other statements have changed.
    pub(super) fn refresh(&mut self) {
        let now = self.series_start.unwrap_or_else(now_us);
        let begun = self.transaction.start().unwrap_or(now);
        let mut store = self.store.lock();
        if let Some(found) = self.instance.configuration_since(self.configuration) {
            store.reload(&found.values);
            store.follow(&found.engine, &LIVE);
            self.configuration = found.generation;
        }
        let is_same = self.effects.are_of(&store);
        if !is_same {
            self.effects = Effects::new(&store, self.database.database().info().encoding);
            self.path = search_path(&store, self.database.catalog(), &self.user);
        }
        let has_cursors = !self.cursors.is_empty();
        let seen = self.seen.as_ref().filter(|_| is_same && !has_cursors);
        if seen.is_some_and(|seen| Arc::ptr_eq(seen, &self.prepared)) {
            // Functions see the same session as in the last statement.
            drop(store);
            let settings = Arc::make_mut(&mut self.settings);
            (settings.transaction_start, settings.statement_start) = (begun, now);
            return;
        }
        self.seen = (!has_cursors).then(|| Arc::clone(&self.prepared));
        let session = Arc::new(SessionCatalog {
            catalog: self.database.catalog().clone(),
            path: self.path.clone(),
            sizes: Arc::new(FileSizes::new(self.database.database(), self.instance.cluster())),
            user: self.user.clone(),
            addresses: self.addresses,
        });
        let functions = SessionFunctions {
            instance: Arc::clone(&self.instance),
            store: Arc::clone(&self.store),
            names: Arc::clone(&session),
            pid: self.activity.pid(),
            start_time: self.instance.start_time(),
            prepared: Arc::clone(&self.prepared),
            cursors: self.cursors.values().map(|cursor| cursor.entry.clone()).collect(),
            notices: Arc::clone(&self.function_notices),
            major: self.settings.major,
        };
        let mut settings = CallSettings {
            session: Some(session),
            server: Some(Arc::new(functions)),
            transaction_start: begun,
            statement_start: now,
            ..(*self.settings).clone()
        };
        if !is_same {
            apply_to_calls(&store, &mut settings);
        }
        drop(store);
        self.settings = Arc::new(settings);
    }

    /// Marks the start of a statement, or that the rows of one are continued.
    pub(super) fn start(&mut self, text: &str, cancellation: Cancellation) -> Started {
        self.continue_pipeline();
        self.refresh();
        let now = self.settings.statement_start;
        let Effects { limit, application_name, .. } = &self.effects;
        self.activity.change(|activity| {
            activity.state = ActivityState::Active;
            activity.state_change = now;
            activity.query_start = Some(now);
            activity.transaction_start.get_or_insert(now);
            let length = text.floor_char_boundary(ACTIVITY_QUERY_MAX);
            text.get(..length).unwrap_or_default().clone_into(&mut activity.query);
            activity.application_name.clone_from(application_name);
        });
        let running = self.canceller.start(&cancellation, self.instance.time_limits(), *limit);
        Started { cancellation, running, activity: Arc::clone(&self.activity) }
    }

    /// What a statement is executed with.
    pub(super) fn context(
        &self,
        parameters: Arc<[ParameterValue]>,
        started: &Started,
    ) -> StatementContext {
        self.store.lock().mark_query();
        let options = StatementOptions {
            temporary_directory: self.instance.options().temporary_directory.clone(),
            ..self.effects.options.clone()
        };
        StatementContext {
            engine: self.instance.engine().clone(),
            database: Arc::clone(self.database.database()),
            environment: self.environment(parameters),
            cancellation: started.cancellation.clone(),
            options,
        }
    }

    /// Executes a query. `&mut` although nothing changes: rows of portals can move to another thread,
    /// but threads can't share them, so a future with `&self` would stay on one thread.
    pub(super) async fn run(
        &mut self,
        bound: &Bound,
        parameters: Arc<[ParameterValue]>,
        started: Started,
    ) -> Result<Outcome, SqlError> {
        let mut rows = self.rows(bound, parameters, &started).await?;
        rows.set_guard(Some(Box::new(started)));
        Ok(Outcome::Rows { rows, tag: "SELECT" })
    }

    /// The rows of a query, which don't end the statement.
    pub(super) async fn rows(
        &mut self,
        bound: &Bound,
        parameters: Arc<[ParameterValue]>,
        started: &Started,
    ) -> Result<Rows, SqlError> {
        let context = self.context(parameters, started);
        if let Some(point) = PointQuery::of(&bound.statement, &context)
            && let Some(rows) = point.run(&bound.statement, &context).await?
        {
            return Ok(rows);
        }
        execute(&bound.statement, &context).await
    }

    /// Executes a prepared query.
    pub(super) async fn run_prepared(
        &mut self,
        prepared: &Prepared,
        bound: &Bound,
        parameters: Arc<[ParameterValue]>,
        started: Started,
    ) -> Result<Outcome, SqlError> {
        let context = self.context(parameters, &started);
        let statement = &bound.statement;
        let point = prepared.point.get_or_init(async || PointQuery::of(statement, &context));
        let found = match point.await {
            Some(point) => point.run(statement, &context).await?,
            None => None,
        };
        let counter = if found.is_some() { &prepared.lookups } else { &prepared.plans };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut rows = match found {
            Some(rows) => rows,
            None => execute(statement, &context).await?,
        };
        rows.set_guard(Some(Box::new(started)));
        Ok(Outcome::Rows { rows, tag: "SELECT" })
    }

    /// Lets something else cancel the statement that runs.
    pub(super) fn restart(&self, started: &mut Started, cancellation: Cancellation) {
        let limit = statement_limit(&self.store.lock());
        started.running = self.canceller.start(&cancellation, self.instance.time_limits(), limit);
        started.cancellation = cancellation;
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
        if let Err(fields) = store.set_default(name, value, Source::Database) {
            notices.push(Notice { severity: Severity::Warning, fields });
        }
    }
    if !startup.application_name.is_empty() {
        store.set_default("application_name", &startup.application_name, Source::Client)?;
    }
    for (name, value) in &startup.settings {
        store.set_default(name, value, Source::Client)?;
    }
    Ok((store, notices))
}

/// A statement that runs, as clients and other sessions see it.
pub(super) struct Started {
    cancellation: Cancellation,
    running: Running,
    activity: Arc<ActivityEntry>,
}

impl Drop for Started {
    fn drop(&mut self) {
        // The rows of a statement may be dropped after the next one has started.
        if self.running.end() {
            self.activity.end_statement(now_us());
        }
    }
}
