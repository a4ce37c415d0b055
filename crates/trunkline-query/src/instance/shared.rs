//! The instance itself: the engine, the data directory, and what all sessions share.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_engine::{Cluster, Engine};
use trunkline_sql::SqlError;

use super::activity::{Activity, ActivityEntry, ActivityRegistry};
use super::database::OpenedDatabase;

/// What an instance is started with, besides the engine and the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceOptions {
    /// Where `trunkline.auto.conf` is, which `ALTER SYSTEM` writes. It must not be in the data
    /// directory. Without it, `ALTER SYSTEM` is refused.
    pub configuration_directory: Option<PathBuf>,
    /// Where statements put what doesn't fit into memory. Without it, they fail.
    pub temporary_directory: Option<PathBuf>,
    /// Settings of the command line, as names and values.
    pub settings: Vec<(String, String)>,
}

/// Everything that sessions share.
pub struct Instance {
    engine: Engine,
    cluster: Cluster,
    options: InstanceOptions,
    /// The lock is never held while catalogs are read.
    databases: Mutex<BTreeMap<String, Arc<OpenedDatabase>>>,
    activity: ActivityRegistry,
    next_pid: AtomicU32,
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
    /// A setting of the options is wrong.
    pub fn new(
        engine: Engine,
        cluster: Cluster,
        options: InstanceOptions,
    ) -> Result<Arc<Self>, SqlError> {
        Ok(Arc::new(Self {
            engine,
            cluster,
            options,
            databases: Mutex::default(),
            activity: ActivityRegistry::default(),
            next_pid: AtomicU32::new(1),
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

    /// The options that the instance was started with.
    pub fn options(&self) -> &InstanceOptions {
        &self.options
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

    /// Adds a session to the activity. The entry makes the activity from the session's number.
    pub(crate) fn add_activity(&self, entry: impl FnOnce(i32) -> Activity) -> ActivityEntry {
        let pid = self.next_pid.fetch_add(1, Ordering::Relaxed);
        self.activity.add(entry(i32::try_from(pid).unwrap_or(i32::MAX)))
    }
}
