//! What settings change: how values are read and printed, where names are looked up, and how
//! statements are executed.

use std::sync::Arc;
use std::time::Duration;

use trunkline_format::text_input::DateOrder;
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, Utc};
use trunkline_sql::SqlError;
use trunkline_sql::catalog::{SearchPath, SqlCatalog};
use trunkline_sql::functions::CallSettings;

use crate::access_path::PlannerSettings;
use crate::encode::ClientEncoding;
use crate::settings::{SettingsStore, identifiers, zone_shown_as};
use crate::statement::StatementOptions;

/// What follows from the settings, except for calls of functions. It stays the same until one of them
/// changes, because looking all of them up takes longer than finding a row.
#[derive(Debug, Clone)]
pub(super) struct Effects {
    /// [`SettingsStore::stamp`] of the values that this was made from.
    stamp: u64,
    /// `statement_timeout`
    pub(super) limit: Option<Duration>,
    /// `idle_session_timeout`
    pub(super) idle_limit: Option<Duration>,
    /// `idle_in_transaction_session_timeout`
    pub(super) idle_in_transaction_limit: Option<Duration>,
    /// `application_name`
    pub(super) application_name: String,
    /// `client_encoding`, with the reason if we can't convert to it.
    pub(super) client_encoding: Result<ClientEncoding, SqlError>,
    /// How statements are executed.
    pub(super) options: StatementOptions,
}

impl Effects {
    /// Those of the present values. `encoding` is that of the database.
    pub(super) fn new(store: &SettingsStore, encoding: i32) -> Self {
        let client = ClientEncoding::by_name(&store.value("client_encoding"));
        Self {
            stamp: store.stamp(),
            limit: statement_limit(store),
            idle_limit: time_limit(store, "idle_session_timeout"),
            idle_in_transaction_limit: time_limit(store, "idle_in_transaction_session_timeout"),
            application_name: store.value("application_name"),
            client_encoding: ClientEncoding::new(encoding, client.unwrap_or(encoding)),
            options: statement_options(store),
        }
    }

    /// Whether no value has changed since.
    pub(super) fn are_of(&self, store: &SettingsStore) -> bool {
        self.stamp == store.stamp()
    }
}

/// The settings that calls of functions depend on.
pub(super) fn apply_to_calls(store: &SettingsStore, calls: &mut CallSettings) {
    calls.zone = zone_shown_as(&store.value("TimeZone")).unwrap_or_else(|| Arc::new(Utc));
    calls.extra_float_digits = store.number("extra_float_digits") as i8;
    calls.bytea_output = match &*store.value("bytea_output") {
        "escape" => ByteaOutput::Escape,
        _ => ByteaOutput::Hex,
    };
    calls.interval_style = match &*store.value("IntervalStyle") {
        "postgres_verbose" => IntervalStyle::PostgresVerbose,
        "sql_standard" => IntervalStyle::SqlStandard,
        "iso_8601" => IntervalStyle::Iso8601,
        _ => IntervalStyle::Postgres,
    };
    calls.date_order = match store.value("DateStyle").split(", ").nth(1) {
        Some("DMY") => DateOrder::Dmy,
        Some("YMD") => DateOrder::Ymd,
        _ => DateOrder::Mdy,
    };
}

/// `search_path`.
pub(super) fn search_path(store: &SettingsStore, catalog: &SqlCatalog, user: &str) -> SearchPath {
    let names = identifiers(&store.value("search_path")).unwrap_or_default();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    SearchPath::new(catalog, &names, Some(user))
}

/// `statement_timeout`.
pub(super) fn statement_limit(store: &SettingsStore) -> Option<Duration> {
    time_limit(store, "statement_timeout")
}

/// A setting in milliseconds, of which 0 stands for no limit.
pub(super) fn time_limit(store: &SettingsStore, name: &str) -> Option<Duration> {
    let limit = store.number(name) as u64;
    (limit > 0).then(|| Duration::from_millis(limit))
}

/// Memory and parallelism of statements.
fn statement_options(store: &SettingsStore) -> StatementOptions {
    StatementOptions {
        workers: store.number("max_parallel_workers_per_gather") as usize,
        work_mem: (store.number("work_mem") as usize).saturating_mul(1024),
        hash_mem_multiplier: store.number("hash_mem_multiplier"),
        io: Some(Arc::new(store.engine_settings())),
        planner: planner_settings(store),
        ..StatementOptions::default()
    }
}

/// What the costs of access paths depend on.
fn planner_settings(store: &SettingsStore) -> PlannerSettings {
    let is_on = |name: &str| store.value(name) == "on";
    PlannerSettings {
        seq_page_cost: store.number("seq_page_cost"),
        random_page_cost: store.number("random_page_cost"),
        cpu_tuple_cost: store.number("cpu_tuple_cost"),
        cpu_index_tuple_cost: store.number("cpu_index_tuple_cost"),
        cpu_operator_cost: store.number("cpu_operator_cost"),
        effective_cache_size: store.number("effective_cache_size"),
        enable_seqscan: is_on("enable_seqscan"),
        enable_indexscan: is_on("enable_indexscan"),
        enable_bitmapscan: is_on("enable_bitmapscan"),
        enable_nestloop: is_on("enable_nestloop"),
        enable_hashjoin: is_on("enable_hashjoin"),
        enable_indexonlyscan: is_on("enable_indexonlyscan"),
        measured_page_costs: is_on("measured_page_costs"),
    }
}
