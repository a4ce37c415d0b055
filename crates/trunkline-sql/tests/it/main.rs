//! Integration tests of the SQL layer on data directories that PostgreSQL created, which
//! `TRUNKLINE_FIXTURE_DIR` contains. Without them, the tests do nothing.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod fixtures;
mod resolve;
