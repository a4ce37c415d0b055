//! Tests of the server over its sockets: with a client that sends bytes of its own choice, with psql, and
//! with psycopg. They serve data directories created by PostgreSQL, if `TRUNKLINE_FIXTURE_DIR` is set.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]
#![expect(clippy::panic, reason = "a test that cannot go on ends, also in its helpers")]

mod client;
mod ends;
mod extended;
mod fixture_rows;
mod messages;
mod passwords;
mod programs;
mod seeds;
#[path = "../../../trunkline/tests/server/server.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod server;
mod serving;
mod simple;
mod starts;
