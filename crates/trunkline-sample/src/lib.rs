//! Creates pgbench tables as relation files, so that we can run demonstrations, benchmarks and
//! tests without a server.
//!
//! - [`accounts`] writes one large table: the accounts of a pgbench database, with balances that
//!   add up to a known sum.
//! - [`push_account`] adds a row of `pgbench_accounts` to a page that is being built.
//! - [`sum_int4`] computes the sum of an `int4` column over a single page. [`column_sum`] computes
//!   it over a whole table, using a parallel sequential scan.
//!
//! Note that a sample is not a complete data directory. It has no control file and no catalog, so a
//! server can't be started on it. It contains only relation files, which look like those of a real
//! cluster:
//!
//! ```text
//!   DIR/base/5/16385 …            relation files
//!   DIR/trunkline-accounts.new    written first; from then on the directory may be overwritten
//!   DIR/trunkline-accounts        the same file, renamed last; the sample is complete
//! ```
//!
//! This crate is mainly for tests and benchmarks. The only user-facing program that depends on it
//! is the command-line tool, which needs it for its demo and for the unlisted `sum` command.

#![forbid(unsafe_code)]

mod account_row;
pub mod accounts;
pub mod column_sum;
mod directory;
mod page_sum;
mod page_writer;

pub use account_row::{account_data, push_account};
pub use directory::room;
pub use page_sum::{FixedColumn, PageSum, sum_int4};
