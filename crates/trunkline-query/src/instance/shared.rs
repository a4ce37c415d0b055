//! The instance itself: the engine, the data directory, and what all sessions share.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use trunkline_aio::clock;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_engine::settings::Settings;
use trunkline_engine::{Cluster, Engine};
use trunkline_sql::{SqlError, SqlState};

use crate::settings::{FileValues, SettingsStore, Source};

use super::activity::{Activity, ActivityEntry, ActivityRegistry, Interrupts};
use super::configuration::{self, Lines, Values};
use super::database::OpenedDatabase;
use super::live;
use super::time_limits::TimeLimits;

/// 2000-01-01 in microseconds since 1970.
const EPOCH_US: i64 = 946_684_800_000_000;

/// The number of the first session. `pg_stat_activity` shows I/O workers, of which there are at most
/// 256, under the numbers below it.
const FIRST_SESSION: u32 = 257;

/// The number of UTF8, which stands for the encoding of no database in particular.
const UTF8: i32 = 6;

/// What an instance is started with, besides the engine and the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceOptions {
    /// Where statements put what doesn't fit into memory. Without it, they fail.
    pub temporary_directory: Option<PathBuf>,
    /// The file that ALTER SYSTEM writes. Without it, ALTER SYSTEM is refused.
    pub configuration_file: Option<PathBuf>,
    /// Settings of the command line, as names and values.
    pub settings: Vec<(String, String)>,
    /// Names of the engine's settings that were given on the command line, in lower case. The
    /// configuration file doesn't change them.
    pub engine_settings: Vec<String>,
}

/// Everything that sessions share.
pub struct Instance {
    engine: Engine,
    cluster: Cluster,
    options: InstanceOptions,
    /// What every session starts with.
    settings: SettingsStore,
    start_time: i64,
    /// The lock is never held while catalogs are read.
    databases: Mutex<BTreeMap<String, Arc<OpenedDatabase>>>,
    activity: ActivityRegistry,
    next_pid: AtomicU32,
    time_limits: TimeLimits,
    configuration: Mutex<Configuration>,
}

/// What was read from the file of ALTER SYSTEM.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    pub(crate) values: Arc<Values>,
    lines: Arc<Lines>,
    /// The settings of the engine that are in force.
    pub(crate) engine: Arc<Settings>,
    /// How often it was read.
    pub(crate) generation: u64,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl Instance {
    /// An instance without sessions.
    ///
    /// # Errors
    /// A setting of the options is wrong, or the system refuses to start a thread.
    pub fn new(
        engine: Engine,
        cluster: Cluster,
        options: InstanceOptions,
    ) -> Result<Arc<Self>, SqlError> {
        let settings = instance_settings(&engine, &cluster, &options)?;
        let file = options.configuration_file.as_deref();
        let (values, lines) =
            file.map_or(Ok(Default::default()), configuration::read_with_lines)?;
        let configuration = Configuration {
            values: Arc::new(values),
            lines: Arc::new(lines),
            engine: Arc::new(engine.settings().clone()),
            generation: 1,
        };
        Ok(Arc::new(Self {
            settings,
            start_time: clock::unix_micros().saturating_sub(EPOCH_US),
            engine,
            cluster,
            options,
            databases: Mutex::default(),
            activity: ActivityRegistry::default(),
            next_pid: AtomicU32::new(FIRST_SESSION),
            time_limits: TimeLimits::start()?,
            configuration: Mutex::new(configuration),
        }))
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The data directory.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The settings that every session starts with.
    pub(crate) fn settings(&self) -> &SettingsStore {
        &self.settings
    }

    /// The time limits of statements.
    pub(crate) fn time_limits(&self) -> &TimeLimits {
        &self.time_limits
    }

    /// When the instance was started, in microseconds since 2000.
    pub fn start_time(&self) -> i64 {
        self.start_time
    }

    /// The options that the instance was started with.
    pub fn options(&self) -> &InstanceOptions {
        &self.options
    }

    /// What was read from the file of ALTER SYSTEM, if it was read again after this many times.
    pub(crate) fn configuration_since(&self, generation: u64) -> Option<Configuration> {
        let configuration = self.configuration.lock();
        (configuration.generation > generation).then(|| configuration.clone())
    }

    /// Reads the file of ALTER SYSTEM again. The engine changes at once if its I/O method or workers
    /// have changed, and sessions follow with their next statement.
    ///
    /// # Errors
    /// The file can't be read. Sessions then keep the values.
    pub fn reload_configuration(&self) -> Result<(), SqlError> {
        let Some(path) = &self.options.configuration_file else { return Ok(()) };
        let (values, lines) = configuration::read_with_lines(path)?;
        // One at a time, or the engine could end with the settings of an older file.
        let mut configuration = self.configuration.lock();
        let before = Arc::clone(&configuration.engine);
        let after = live::reloaded(&before, &values, &self.options.engine_settings);
        live::apply(&self.engine, &before, &after);
        configuration.engine = Arc::new(after);
        (configuration.values, configuration.lines) = (Arc::new(values), Arc::new(lines));
        configuration.generation += 1;
        Ok(())
    }

    /// Lets a function see the values of the file of ALTER SYSTEM as they were last read; `None` if
    /// there is no file.
    pub(crate) fn with_configuration<T>(&self, see: impl FnOnce(Option<FileValues<'_>>) -> T) -> T {
        let configuration = self.configuration.lock();
        let (values, lines) = (Arc::clone(&configuration.values), Arc::clone(&configuration.lines));
        drop(configuration);
        let path = self.options.configuration_file.as_deref();
        see(path.map(|path| FileValues { path, values: &values, lines: &lines }))
    }

    /// Changes the file of ALTER SYSTEM.
    ///
    /// # Errors
    /// 55000: there is none. Otherwise, it can't be written.
    pub(crate) fn change_configuration(
        &self,
        change: impl FnOnce(&mut Values),
    ) -> Result<(), SqlError> {
        let Some(path) = &self.options.configuration_file else {
            let message = "ALTER SYSTEM needs a configuration file of trunkline";
            let code = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(SqlError::new(code, message).with_hint("Start it with --config-file."));
        };
        // One at a time, or one change would be lost.
        let _changing = self.configuration.lock();
        let mut values = configuration::read(path)?;
        change(&mut values);
        configuration::write(path, &values)
    }

    /// A database by its exact name. Its catalogs are read if that hasn't happened yet, which blocks.
    ///
    /// # Errors
    /// 3D000: it doesn't exist. Otherwise, its catalogs can't be read.
    pub fn database(&self, name: &str) -> Result<Arc<OpenedDatabase>, SqlError> {
        if let Some(opened) = self.databases.lock().get(name) {
            return Ok(Arc::clone(opened));
        }
        // If two sessions open a database at the same time, both read it and one result is kept.
        let opened = Arc::new(OpenedDatabase::open(&self.cluster, name)?);
        Ok(Arc::clone(self.databases.lock().entry(name.to_owned()).or_insert(opened)))
    }

    /// What all sessions do, by number.
    pub fn activity(&self) -> Vec<Activity> {
        self.activity.all()
    }

    /// Cancels the statement of a session. `false`: there is no session with this number.
    pub(crate) fn cancel(&self, pid: i32) -> bool {
        match self.activity.interrupts(pid) {
            Some(session) => {
                session.cancel();
                true
            }
            None => false,
        }
    }

    /// Ends a session. `false`: there is no session with this number.
    pub(crate) fn terminate(&self, pid: i32) -> bool {
        match self.activity.interrupts(pid) {
            Some(session) => {
                session.terminate();
                true
            }
            None => false,
        }
    }

    /// Adds a session to the activity. The entry makes the activity from the session's number.
    pub(crate) fn add_activity(
        &self,
        interrupts: Arc<dyn Interrupts>,
        entry: impl FnOnce(i32) -> Activity,
    ) -> ActivityEntry {
        let pid = self.next_pid.fetch_add(1, Ordering::Relaxed);
        self.activity.add(entry(i32::try_from(pid).unwrap_or(i32::MAX)), interrupts)
    }
}

/// The settings of the command line, and what the directory says about itself.
fn instance_settings(
    engine: &Engine,
    cluster: &Cluster,
    options: &InstanceOptions,
) -> Result<SettingsStore, SqlError> {
    let control = cluster.dir().control();
    let major = control.version.major();
    let mut store = SettingsStore::new(major, UTF8, engine.settings().clone());
    let segment_kb = u64::from(control.segment_blocks) * u64::from(control.block_size) / 1024;
    let has_checksums = control.data_checksum_version != 0;
    // The directory doesn't record the minor version.
    store.describe("server_version", format!("{major}.0"));
    store.describe("server_version_num", (major * 10_000).to_string());
    store.describe("data_checksums", if has_checksums { "on" } else { "off" }.to_owned());
    store.describe("segment_size", kilobytes(segment_kb));
    for (name, value) in &options.settings {
        store.set_default(name, value, Source::CommandLine)?;
    }
    Ok(store)
}

/// A size in the largest unit that fits.
fn kilobytes(size: u64) -> String {
    match size {
        size if size % (1 << 20) == 0 => format!("{}GB", size >> 20),
        size if size % (1 << 10) == 0 => format!("{}MB", size >> 10),
        size => format!("{size}kB"),
    }
}
