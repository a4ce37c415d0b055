//! Checks that a real PostgreSQL server can read what we write, and that we can read what it
//! writes. All of the crate's integration tests are in one binary, so that we link only once.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod server;
mod tables;
