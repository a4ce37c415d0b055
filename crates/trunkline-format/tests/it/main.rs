//! What we write is read by a real PostgreSQL, and what it writes by us.
//! One binary for all integration tests of the crate, so that it links once.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod server;
mod tables;
