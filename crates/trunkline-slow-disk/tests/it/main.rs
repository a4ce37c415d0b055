//! A mounted slow disk: files behave as on any file system, requests take at least their time, and a
//! PostgreSQL server runs and recovers on it.
//!
//! Times are only compared with lower bounds. How close to the latency a machine comes depends on its
//! load, and `trunkline slow-disk` measures that. These tests need root and `/dev/fuse`.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod mounted;

mod files;
mod postgres;
mod timing;
