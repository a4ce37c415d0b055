//! Tests of statements, with bound trees made by hand. They read data directories created by
//! PostgreSQL, if `TRUNKLINE_FIXTURE_DIR` is set, and compare rows with those of the server.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]
#![expect(clippy::panic, reason = "a test that cannot go on ends, also in its helpers")]

mod access_paths;
mod alter_system;
#[path = "../../../trunkline-sql/tests/it/answers.rs"]
mod answers;
mod cluster;
mod compared_counts;
mod compatibility;
mod cursors;
mod definitions;
mod encode;
mod every_view;
mod execution;
mod explain;
mod gate;
mod hung_storage;
mod index_joins;
mod index_only_scans;
mod index_pages;
mod measured_costs;
mod nesting;
mod optimizer;
mod ordered_scans;
mod overlay;
mod partial_indexes;
mod path_conditions;
mod point_queries;
mod queries;
mod random;
#[path = "../../../trunkline-sql/tests/it/random_query"]
mod random_query {
    mod expressions;
    pub(crate) mod generator;
    mod kinds;
    mod predicates;
    mod selects;
    pub(crate) mod tables;
}
mod relations;
mod scans;
#[path = "../../../trunkline/tests/server/server.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod server;
mod session_settings;
mod sessions;
mod sql_functions;
mod system_views;
mod tree;
mod views;
mod wait_events;
