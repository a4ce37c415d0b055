//! Tests of statements, with bound trees made by hand. They read data directories created by
//! PostgreSQL, if `TRUNKLINE_FIXTURE_DIR` is set, and compare rows with those of the server.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]
#![expect(clippy::panic, reason = "a test that cannot go on ends, also in its helpers")]

#[path = "../../../trunkline-sql/tests/it/answers.rs"]
mod answers;
mod cluster;
mod encode;
mod optimizer;
mod queries;
mod relations;
mod scans;
mod tree;
