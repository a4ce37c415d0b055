//! **Server**: a PostgreSQL server of our own, which does the same work as we do.
//!
//! ```text
//!   SCRATCH/disk/cluster     created with initdb, with the tuning guide's tables
//!   SCRATCH/socket           the only way to connect; there is no TCP
//!   SCRATCH/server.log       what the server prints
//! ```
//! Our engine reads the server's own table files: the same bytes in the same place on the disk. The
//! blocks of a range query, and their order, come from the server too (`guide_tables`). The planner
//! is forced to use one kind of scan, and a plan that isn't that scan is an error (`session`). After
//! each query, the server's counters and its result must be the expected ones.
//!
//! The I/O method is a setting of the server's start, so another method is a restart. So is another
//! configuration, when the server is compared with itself: its defaults, and the lines of a user. A
//! server that has just started has never touched most of its buffers, which would slow down its first
//! queries. So they are filled and emptied once before it is measured ([`touch`]).

mod account;
mod error;
mod guide_tables;
mod lines;
mod method;
mod process;
mod programs;
mod quiet;
mod session;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use trunkline_aio::clock;
use trunkline_aio::facade::Arc;

pub use self::error::ServerError;
pub use self::guide_tables::{GuideTable, ROWS_PER_SCALE, bytes_needed};
pub use self::lines::ServerLines;
pub use self::method::{ServerMethod, Sizes};
pub use self::process::{end_processes, stop_leftovers};

use self::account::Account;
use self::method::{SHOWN, Setting, setting, settings};
use self::process::Process;
use self::programs::Programs;
use self::session::{NAME, Session};
use crate::access::{Dataset, Scan};
use crate::watcher::Watcher;

/// How long a server may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// How long we wait between two attempts to connect.
const RETRY: Duration = Duration::from_millis(10);
/// How much of the log an error shows, in lines.
const LOG_LINES: usize = 4;
/// The largest `io_combine_limit` of version 17, in blocks.
const COMBINE_MAX_17: u32 = 32;
/// Name of the cluster's directory. The settings rely on its depth below the scratch directory.
const CLUSTER: &str = "cluster";

/// A server and its cluster.
pub struct Server {
    programs: Programs,
    /// The scratch directory.
    scratch: PathBuf,
    cluster: PathBuf,
    /// Keeps the socket's directory open: its path through this descriptor is short.
    socket: File,
    process: Process,
    running: Option<Running>,
    tables: Vec<GuideTable>,
    has_prewarm: bool,
    sizes: Sizes,
    /// Those of [`ServerMethod::Settings`].
    lines: ServerLines,
    /// The values of settings that each configuration has shown.
    shown: Vec<(ServerMethod, Vec<Setting>)>,
    watcher: Arc<dyn Watcher>,
}

/// A server that accepts connections.
struct Running {
    method: ServerMethod,
    session: Session,
    /// Whether the buffers can be filled and emptied. Otherwise each repetition has a server that has
    /// just started.
    evicts: bool,
    /// Whether they have been filled since the start.
    is_touched: bool,
}

/// What the guide's tables are to contain.
#[derive(Debug, Clone)]
pub struct TablePlan {
    /// Units of [`ROWS_PER_SCALE`] rows.
    pub scale: u32,
    /// Seed of the values.
    pub seed: u64,
    /// Parts of all rows that are going to be selected.
    pub selectivities: Vec<f64>,
}

/// What the server did for one repetition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerSample {
    pub(crate) seconds: f64,
    pub(crate) blocks: u64,
    pub(crate) hits: u64,
}

/// The work of one repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ServerWork {
    /// All rows of a table.
    Whole,
    /// Rows in a range.
    Range { scan: Scan, selectivity: f64 },
    /// Rows in a range, with the plan that the planner chooses.
    Planned { selectivity: f64 },
    /// `pg_prewarm`.
    Prewarm,
}

/// Ends a server from another thread.
#[derive(Debug, Clone)]
pub struct ServerHandle(Process);

impl ServerHandle {
    /// Asks the server to shut down, so that whatever waits for it fails soon.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }

    /// Ends the server, waits for its end, and lets nothing start it again.
    pub fn end(&self) {
        self.0.close();
    }
}

impl Server {
    /// Finds the programs in `bin` and a user to run them: the named one, or a usual one. Creates
    /// the directories of the socket and of the cluster in `scratch`.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn find(
        bin: &Path,
        user: Option<&str>,
        scratch: &Path,
        sizes: Sizes,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Self, ServerError> {
        let programs = Programs::find(bin, Account::find(user)?)?;
        programs.account.open_path(scratch)?;
        let socket = scratch.join("socket");
        programs.account.create_directory(&socket)?;
        let disk = scratch.join("disk");
        programs.account.create_directory(&disk)?;
        let reached = programs.account.command(&programs.bin.join("postgres"), &disk);
        can_start(reached, &disk)?;
        let socket = File::open(&socket).map_err(|error| ServerError::system(&socket, error))?;
        Ok(Self {
            cluster: disk.join(CLUSTER),
            scratch: scratch.to_owned(),
            programs,
            socket,
            process: Process::default(),
            running: None,
            tables: Vec::new(),
            has_prewarm: false,
            sizes,
            lines: ServerLines::default(),
            shown: Vec::new(),
            watcher,
        })
    }

    /// Ends the server, also from another thread.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle(self.process.clone())
    }

    /// What reports call it.
    pub fn name(&self) -> String {
        format!("PostgreSQL {}", self.programs.version)
    }

    /// The major version.
    pub fn major(&self) -> u32 {
        self.programs.major
    }

    /// The data directory.
    pub fn cluster(&self) -> &Path {
        &self.cluster
    }

    /// The guide's tables, `uniform` first.
    pub fn tables(&self) -> &[GuideTable] {
        &self.tables
    }

    /// The settings that differ from a new cluster's, except for those of the methods and
    /// configurations.
    pub fn settings(&self) -> Vec<(String, String)> {
        let common =
            if self.shown.is_empty() { ServerMethod::None } else { ServerMethod::Defaults };
        let mut all = self.settings_with(common);
        all.retain(|(name, _)| name != "io_method");
        all
    }

    /// The settings that the server is started with.
    fn settings_with(&self, method: ServerMethod) -> Vec<Setting> {
        settings(self.programs.major, method, self.sizes, &self.lines)
    }

    /// Starts the server once in each configuration, of which one has these lines, and asks it for the
    /// values that are in effect. Fails with the server's own error if it doesn't accept a line.
    fn compare_settings(&mut self, lines: ServerLines) -> Result<(), ServerError> {
        self.lines = lines;
        let lines = self.lines.clone();
        let own = lines.iter().map(|(name, _)| name).filter(|name| !SHOWN.contains(name));
        let names: Vec<&str> = SHOWN.into_iter().chain(own).collect();
        self.shown.clear();
        for configuration in ServerMethod::CONFIGURATIONS {
            let shown = self.run_with(configuration)?.session.shown(&names)?;
            self.shown.push((configuration, shown));
        }
        self.stop()
    }

    /// The configurations that are compared, with the values of settings that are in effect.
    pub(crate) fn configurations(&self) -> &[(ServerMethod, Vec<Setting>)] {
        &self.shown
    }

    /// The lines of the user, of which one configuration consists.
    pub(crate) fn lines(&self) -> &ServerLines {
        &self.lines
    }

    /// The cluster is now seen in another directory, which has to be one below the scratch directory.
    pub fn set_disk(&mut self, disk: &Path) {
        self.cluster = disk.join(CLUSTER);
    }

    /// Creates the cluster and its tables, and stops the server. If there are lines, both configurations
    /// are going to be compared. They are tried out before the tables are created, which takes minutes.
    ///
    /// # Errors
    /// [`ServerError`]. If the server doesn't accept a line, [`ServerError::Ended`] has its own error.
    pub fn create(
        &mut self,
        plan: &TablePlan,
        lines: Option<ServerLines>,
    ) -> Result<(), ServerError> {
        self.initdb()?;
        lines.map_or(Ok(()), |lines| self.compare_settings(lines))?;
        let sizes = Sizes { buffers: 65_536, ..self.sizes };
        // Nothing has to survive a crash while it is being created.
        let fast =
            [("fsync", "off"), ("full_page_writes", "off"), ("maintenance_work_mem", "512MB")];
        let fast = fast.map(|(name, value)| setting(name, value));
        let major = self.programs.major;
        let method = if major < 18 { ServerMethod::None } else { ServerMethod::Sync };
        let own = settings(major, method, sizes, &self.lines);
        let mut session = self.start(&[&own[..], &fast].concat())?;
        session.execute("SET synchronous_commit = off")?;
        let rows = u64::from(plan.scale) * ROWS_PER_SCALE;
        // A sequential scan reads everything, whatever it selects.
        let mut selectivities = plan.selectivities.clone();
        selectivities.push(1.0);
        selectivities.dedup();
        for dataset in [Dataset::Uniform, Dataset::Linear10] {
            let made =
                guide_tables::create(&mut session, dataset, (rows, plan.seed), &selectivities)?;
            self.tables.push(made);
        }
        self.has_prewarm = add_extension(&mut session, "pg_prewarm")?;
        add_extension(&mut session, "pg_buffercache")?;
        drop(session);
        self.stop()
    }

    fn initdb(&mut self) -> Result<(), ServerError> {
        let program = self.programs.bin.join("initdb");
        let disk = self.cluster.parent().unwrap_or(&self.scratch).to_owned();
        let mut command = self.programs.account.command(&program, &disk);
        command.arg("-D").arg(&self.cluster);
        command.args(["-k", "-N", "-A", "trust", "-U", NAME, "-E", "UTF8", "--no-locale"]);
        self.log_to(&mut command)?;
        self.process.start(&mut command)?;
        let status = loop {
            if let Some(status) = self.process.wait(START_TIMEOUT) {
                break status;
            }
        };
        if self.watcher.cancelled() {
            return Err(ServerError::Cancelled);
        }
        if !status.success() {
            return Err(self.ended(format!("initdb ended with {status}")));
        }
        Ok(())
    }

    /// Starts the server with these settings and connects to it.
    fn start(&mut self, settings: &[Setting]) -> Result<Session, ServerError> {
        let program = self.programs.bin.join("postgres");
        let disk = self.cluster.parent().unwrap_or(&self.scratch).to_owned();
        let mut command = self.programs.account.command(&program, &disk);
        command.arg("-D").arg(&self.cluster);
        for (name, value) in settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        self.log_to(&mut command)?;
        if self.watcher.cancelled() {
            return Err(ServerError::Cancelled);
        }
        self.process.start(&mut command)?;
        let deadline = clock::now().after(START_TIMEOUT);
        loop {
            let refused = match Session::connect(&self.socket_directory()) {
                Ok(session) => return Ok(session),
                Err(error) => ServerError::statement("connect", &error).to_string(),
            };
            if let Some(status) = self.process.wait(RETRY) {
                return Err(self.ended(format!("the server ended with {status}")));
            }
            if self.watcher.cancelled() {
                self.process.end();
                return Err(ServerError::Cancelled);
            }
            if clock::now() >= deadline {
                self.process.end();
                return Err(self.ended(format!("the server didn't accept a connection: {refused}")));
            }
        }
    }

    /// Stops the server, if it runs.
    ///
    /// # Errors
    /// [`ServerError::Ended`]: it didn't shut down cleanly.
    pub fn stop(&mut self) -> Result<(), ServerError> {
        self.running = None;
        if self.process.is_gone() {
            return Ok(());
        }
        self.process.interrupt();
        match self.process.wait(START_TIMEOUT) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.ended(format!("the server ended with {status}"))),
            None => {
                self.process.end();
                Err(self.ended("the server didn't shut down".to_owned()))
            }
        }
    }

    /// The directory of the socket, by a path that is short enough for any scratch directory.
    fn socket_directory(&self) -> PathBuf {
        use rustix::fd::AsRawFd;
        PathBuf::from(format!("/proc/self/fd/{}", self.socket.as_raw_fd()))
    }

    fn log(&self) -> PathBuf {
        self.scratch.join("server.log")
    }

    fn log_to(&self, command: &mut std::process::Command) -> Result<(), ServerError> {
        let path = self.log();
        let fail = |error| ServerError::system(&path, error);
        let log = File::options().create(true).append(true).open(&path).map_err(fail)?;
        command.stdout(log.try_clone().map_err(fail)?).stderr(log);
        Ok(())
    }

    fn ended(&self, what: String) -> ServerError {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.len().saturating_sub(LOG_LINES);
        ServerError::Ended { what, log: lines[last..].join(" / ") }
    }

    /// Makes the server run with a method.
    fn run_with(&mut self, method: ServerMethod) -> Result<&mut Running, ServerError> {
        let ready = self.running.take().filter(|it| it.method == method && it.evicts);
        let running = match ready {
            Some(running) => running,
            None => {
                self.stop()?;
                let mut session = self.start(&self.settings_with(method))?;
                // Version 17 can evict a single buffer, and version 18 a relation.
                let has = "SELECT count(*) FROM pg_extension \
                           WHERE extname IN ('pg_buffercache', 'pg_prewarm')";
                let evicts = self.programs.major >= 17 && session.numbers(has)? == [2];
                // A bitmap must not be lossy: then the scan would have to look at more rows.
                session.execute("SET work_mem = '1GB'")?;
                Running { method, session, evicts, is_touched: false }
            }
        };
        Ok(self.running.insert(running))
    }

    /// Makes the server ready to run a query: with the method, the query planned, and the buffers
    /// empty. The plan must be the forced scan. If none is forced, the plan's nodes are returned.
    pub(crate) fn prepare(
        &mut self,
        method: ServerMethod,
        work: (Dataset, ServerWork),
        sizes: (u32, u32),
    ) -> Result<Option<String>, ServerError> {
        let done = self.plan(method, work, sizes);
        self.restart_after(done)
    }

    fn plan(
        &mut self,
        method: ServerMethod,
        (dataset, work): (Dataset, ServerWork),
        (concurrency, combine): (u32, u32),
    ) -> Result<Option<String>, ServerError> {
        let major = self.programs.major;
        // A configuration has its own.
        let is_method = !method.is_configuration();
        if is_method && major == 17 && combine > COMBINE_MAX_17 {
            let (found, expected) = (combine.into(), COMBINE_MAX_17.into());
            return Err(ServerError::Work { unit: "as io_combine_limit", found, expected });
        }
        let table = self.table(dataset)?.clone();
        let shown = self.shown.iter().find(|of| of.0 == method).map(|of| of.1.clone());
        let session = &mut self.run_with(method)?.session;
        if is_method {
            let mut sizes = format!(
                "SET effective_io_concurrency = {concurrency}; \
                 SET maintenance_io_concurrency = {concurrency}"
            );
            if major >= 17 {
                sizes += &format!("; SET io_combine_limit = {combine}");
            }
            session.execute(&sizes)?;
        }
        let mut chosen = None;
        match work {
            ServerWork::Whole => session.prepare_scan(&table.query(None), Scan::Sequential)?,
            ServerWork::Range { scan, selectivity } => {
                session.prepare_scan(&table.query(table.range(selectivity)), scan)?;
            }
            ServerWork::Planned { selectivity } => {
                chosen = Some(session.prepare_planned(&table.query(table.range(selectivity)))?);
            }
            ServerWork::Prewarm => {
                session.execute("DEALLOCATE ALL")?;
                session.execute(&format!("PREPARE q AS SELECT pg_prewarm('{}')", table.name()))?;
            }
        }
        session.expect_shown(&shown.unwrap_or_default())?;
        if let Some(running) = self.running.as_mut().filter(|running| running.evicts) {
            if !running.is_touched {
                touch(&mut running.session, dataset, self.sizes.buffers)?;
                running.is_touched = true;
            }
            // The planner may have read some pages, too.
            evict(&mut running.session, major)?;
        }
        Ok(chosen)
    }

    /// Runs what was prepared. Fails if the server didn't read the expected blocks, or returned
    /// another result.
    pub(crate) fn run(
        &mut self,
        dataset: Dataset,
        work: ServerWork,
    ) -> Result<ServerSample, ServerError> {
        let done = self.execute(dataset, work);
        self.restart_after(done)
    }

    /// After an error, the session or the server may have ended, so the next case starts another
    /// server. One that did other work is still usable.
    fn restart_after<T>(&mut self, done: Result<T, ServerError>) -> Result<T, ServerError> {
        if let Err(error) = &done
            && !error.is_of_case()
        {
            self.running = None;
            self.process.end();
        }
        done
    }

    fn execute(&mut self, dataset: Dataset, work: ServerWork) -> Result<ServerSample, ServerError> {
        let table = self.table(dataset)?.clone();
        let Some(running) = &mut self.running else { return Err(ServerError::Cancelled) };
        let session = &mut running.session;
        let before = session.blocks(table.oid)?;
        let started = clock::now();
        let result = session.run_prepared()?;
        let seconds = clock::now().since(started).as_secs_f64();
        let after = session.blocks(table.oid)?;
        let all = i64::from(table.blocks);
        let range = match work {
            ServerWork::Range { selectivity, .. } | ServerWork::Planned { selectivity } => {
                table.range(selectivity)
            }
            _ => None,
        };
        let (expected, blocks) = match (work, range) {
            // It doesn't count blocks, but returns how many it has loaded.
            (ServerWork::Prewarm, _) => (all, None),
            (ServerWork::Range { scan, .. }, Some(range)) => {
                (range.sum, Some(range.requested(scan, table.blocks).len() as i64))
            }
            // Which blocks it requests depends on the plan that was chosen.
            (ServerWork::Planned { .. }, Some(range)) => (range.sum, None),
            _ => (table.sum, Some(all)),
        };
        let is_prewarm = work == ServerWork::Prewarm;
        let unit = if is_prewarm { "blocks loaded" } else { "as its result" };
        expect(unit, result, expected)?;
        let fetched = after.fetched - before.fetched;
        if let Some(blocks) = blocks {
            expect("blocks requested", fetched, blocks)?;
        }
        let (fetched, hits) =
            if is_prewarm { (result, 0) } else { (fetched, after.hits - before.hits) };
        Ok(ServerSample { seconds, blocks: fetched.unsigned_abs(), hits: hits.unsigned_abs() })
    }

    /// Whether `pg_prewarm` was installed with the server.
    pub fn has_prewarm(&self) -> bool {
        self.has_prewarm
    }

    fn table(&self, dataset: Dataset) -> Result<&GuideTable, ServerError> {
        let found = self.tables.iter().find(|table| table.dataset == dataset);
        found.ok_or(ServerError::Cancelled)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running = None;
        self.process.end();
    }
}

/// Checks that the server's user can work in its directory.
fn can_start(mut command: std::process::Command, directory: &Path) -> Result<(), ServerError> {
    let started = command.arg("--version").output();
    started.map(|_| ()).map_err(|error| {
        let directory = directory.display();
        ServerError::Account(format!("the server's user can't work in \"{directory}\": {error}"))
    })
}

/// Creates an extension, if it was installed with the server.
fn add_extension(session: &mut Session, name: &str) -> Result<bool, ServerError> {
    let sql = format!("SELECT count(*) FROM pg_available_extensions WHERE name = '{name}'");
    let is_there = session.numbers(&sql)? == [1];
    if is_there {
        session.execute(&format!("CREATE EXTENSION {name}"))?;
    }
    Ok(is_there)
}

/// Fills the buffers of a server that has just started, so that the kernel gives it their memory now,
/// and not while the first queries are measured. The pages are those of the table that isn't measured,
/// and its index: they stay in the page cache, so they are read from the disk once, and not at each start.
/// They fill as many buffers as the measured table does, because both tables have the same size.
fn touch(session: &mut Session, measured: Dataset, buffers: u32) -> Result<(), ServerError> {
    let other = match measured {
        Dataset::Uniform => "linear_10",
        Dataset::Linear10 => "uniform",
    };
    session.row(&format!(
        "SELECT pg_prewarm('{other}_a'), pg_prewarm('{other}', 'buffer', 'main', 0, \
         least({buffers}, pg_relation_size('{other}') / 8192) - 1)"
    ))?;
    Ok(())
}

/// Empties the buffers of both tables and their indexes.
fn evict(session: &mut Session, major: u32) -> Result<(), ServerError> {
    let relations = ["uniform", "uniform_a", "linear_10", "linear_10_a"];
    for relation in relations {
        let sql = match major {
            17 => format!(
                "SELECT count(pg_buffercache_evict(bufferid)) FROM pg_buffercache \
                 WHERE relfilenode = pg_relation_filenode('{relation}')"
            ),
            _ => format!("SELECT buffers_skipped FROM pg_buffercache_evict_relation('{relation}')"),
        };
        session.row(&sql)?;
    }
    let files = relations.map(|name| format!("pg_relation_filenode('{name}')")).join(", ");
    let sql = format!("SELECT count(*) FROM pg_buffercache WHERE relfilenode IN ({files})");
    let [left] = session.numbers(&sql)?;
    expect("buffers still in use", left, 0)
}

fn expect(unit: &'static str, found: i64, expected: i64) -> Result<(), ServerError> {
    if found == expected { Ok(()) } else { Err(ServerError::Work { unit, found, expected }) }
}
