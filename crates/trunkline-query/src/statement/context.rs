//! What a statement is executed with.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionConfig;
use trunkline_engine::Engine;
use trunkline_engine::catalog::Database;
use trunkline_engine::settings::Settings;
use trunkline_sql::SqlError;

use super::memory::OperationMemory;
use super::optimizer::{logical_rules, physical_rules};
use super::query_planner::StatementPlanner;
use crate::access_path::PlannerSettings;
use crate::environment::Environment;
use crate::error::from_datafusion;
use crate::scan::Cancellation;

/// The settings that execution depends on. The defaults are PostgreSQL's.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementOptions {
    /// `max_parallel_workers_per_gather`: tasks in addition to one.
    pub workers: usize,
    /// `work_mem`, in bytes.
    pub work_mem: usize,
    /// `hash_mem_multiplier`.
    pub hash_mem_multiplier: f64,
    /// The memory limit of a join's hash table, in bytes. Without it, it is that of the two settings above
    /// for each task.
    pub join_memory: Option<usize>,
    /// Where sorts, joins and aggregates put what doesn't fit into memory. Without it, they fail.
    pub temporary_directory: Option<PathBuf>,
    /// How tables are read, such as `effective_io_concurrency`. Without it, as the engine's settings
    /// say.
    pub io: Option<Arc<Settings>>,
    /// What the costs of access paths depend on, such as `random_page_cost`.
    pub planner: PlannerSettings,
}

impl Default for StatementOptions {
    fn default() -> Self {
        Self {
            workers: 2,
            work_mem: 4 << 20,
            hash_mem_multiplier: 2.0,
            join_memory: None,
            temporary_directory: None,
            io: None,
            planner: PlannerSettings::default(),
        }
    }
}

/// Everything that a statement is executed with.
#[derive(Debug, Clone)]
pub struct StatementContext {
    /// The engine, whose pool the tables are read through.
    pub engine: Engine,
    /// The database.
    pub database: Arc<Database>,
    /// Functions, types and settings.
    pub environment: Environment,
    /// Cancels this statement.
    pub cancellation: Cancellation,
    /// How it is executed.
    pub options: StatementOptions,
}

impl StatementContext {
    /// How the statement reads tables.
    pub(super) fn io(&self) -> Arc<Settings> {
        let engine = || Arc::new(self.engine.settings().clone());
        self.options.io.clone().unwrap_or_else(engine)
    }
}

impl StatementOptions {
    /// The number of tasks that work on a statement together.
    fn partitions(&self) -> usize {
        self.workers + 1
    }

    /// The state that DataFusion plans and executes one statement with.
    pub(super) fn state(&self, cancellation: &Cancellation) -> Result<SessionState, SqlError> {
        let partitions = self.partitions();
        let mut config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_batch_size(8192)
            .with_information_schema(false)
            .with_create_default_catalog_and_schema(false)
            // Small inputs would be split for nothing, and large ones are read in parts anyway.
            .with_round_robin_repartition(false);
        // A rule that fails is a bug, which must not go unnoticed.
        config.options_mut().optimizer.skip_failed_rules = false;
        let memory = (self.work_mem as f64 * self.hash_mem_multiplier).max(0.0) as usize;
        // What a sort keeps to be able to merge what it has spilled. By default, it is more than
        // it has.
        let reserved = &mut config.options_mut().execution.sort_spill_reservation_bytes;
        *reserved = (*reserved).min(memory / 8);
        let pool = OperationMemory::new(memory, partitions);
        // All tasks use one hash table, or each has its part of it.
        let join_memory = self.join_memory.unwrap_or(memory.saturating_mul(partitions));
        let mode = match &self.temporary_directory {
            Some(directory) => DiskManagerMode::Directories(vec![directory.clone()]),
            None => DiskManagerMode::Disabled,
        };
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(pool))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
            .build_arc()
            .map_err(|error| from_datafusion(&error))?;
        Ok(SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_analyzer_rules(Vec::new())
            .with_optimizer_rules(logical_rules())
            .with_physical_optimizer_rules(physical_rules(cancellation, join_memory))
            .with_query_planner(Arc::new(StatementPlanner::new(cancellation, self.work_mem)))
            .build())
    }
}
