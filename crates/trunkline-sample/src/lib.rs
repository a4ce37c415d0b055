//! pgbench tables as relation files, for demonstrations, benchmarks and tests that run without a
//! server.
//!
//! - [`accounts`] writes one large table: the accounts of a pgbench database, with balances that
//!   add up to a known sum.
//! - [`push_account`] adds a row of `pgbench_accounts` to a page that is being built.
//! - [`sum_int4`] sums an `int4` column over one page; [`column_sum`] sums it over a table, by a
//!   parallel sequential scan.
//!
//! A sample is not a data directory: there is no control file and no catalog, so no server can be
//! started on it. It contains only relation files that look like those of a cluster:
//!
//! ```text
//!   DIR/base/5/16385 …            relation files
//!   DIR/trunkline-accounts.new    written first; from then on the directory may be overwritten
//!   DIR/trunkline-accounts        the same file, renamed last; the sample is complete
//! ```
//!
//! Of everything that users install, only the command-line program uses this crate, for its demo
//! and for the unlisted command `sum`.

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
