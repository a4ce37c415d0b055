//! `EXPLAIN` as a statement of a session: its options, its settings and its columns.

use std::sync::Arc;

use trunkline_sql::SqlError;
use trunkline_sql::bind::Bound;
use trunkline_sql::syntax::{CommandOption, Statement};

use super::outcome::Outcome;
use super::session::{Session, Started};
use crate::environment::ParameterValue;
use crate::explain::ExplainOptions;
use crate::statement::{ResultColumn, explain_columns, explain_statement};

/// Settings that plans depend on.
const PLAN_SETTINGS: [&str; 19] = [
    "cpu_index_tuple_cost",
    "cpu_operator_cost",
    "cpu_tuple_cost",
    "effective_cache_size",
    "effective_io_concurrency",
    "enable_bitmapscan",
    "enable_hashjoin",
    "enable_indexonlyscan",
    "enable_indexscan",
    "enable_nestloop",
    "enable_seqscan",
    "hash_mem_multiplier",
    "io_combine_limit",
    "max_parallel_workers_per_gather",
    "measured_page_costs",
    "random_page_cost",
    "search_path",
    "seq_page_cost",
    "work_mem",
];

/// The columns of an `EXPLAIN`; `None` if the statement is another one.
pub(super) fn columns_of_explain(
    statement: &Statement,
) -> Result<Option<Vec<ResultColumn>>, SqlError> {
    match statement {
        Statement::Explain { options, .. } => {
            ExplainOptions::read(options).map(|options| Some(explain_columns(options)))
        }
        _ => Ok(None),
    }
}

impl Session {
    /// The settings that plans depend on, if they aren't the defaults.
    fn plan_settings(&self) -> Vec<(String, String)> {
        let store = self.store.lock();
        let changed = PLAN_SETTINGS.iter();
        changed.filter_map(|name| Some(((*name).to_owned(), store.changed(name)?))).collect()
    }

    /// Explains a query. `&mut` for the same reason as in [`Session::run`].
    pub(super) async fn explain(
        &mut self,
        options: &[CommandOption],
        bound: &Bound,
        parameters: Arc<[ParameterValue]>,
        started: Started,
    ) -> Result<Outcome, SqlError> {
        let options = ExplainOptions::read(options)?;
        let settings = options.settings.then(|| self.plan_settings());
        let context = self.context(parameters, &started);
        let rows = explain_statement(&bound.statement, &context, options, settings).await?;
        Ok(Outcome::Rows { rows, tag: "EXPLAIN" })
    }
}
