//! Integration tests of the SQL layer on data directories that PostgreSQL created, which
//! `TRUNKLINE_FIXTURE_DIR` contains. Without them, most tests do nothing.
//!
//! `answers` reads what servers returned for the queries of `testdata/queries`, and `random_query`
//! makes up others.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends, also in its helpers"
)]

mod answers;
mod binding;
mod complete_answers;
mod fixtures;
mod random_query;
mod resolve;
