//! These tests check that a real PostgreSQL server can read the files we write, and that we can
//! read the files it writes. All integration tests of this crate are in a single binary, because
//! linking several binaries would take longer.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod server;
mod tables;
