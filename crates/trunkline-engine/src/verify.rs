//! **Verification.** Checks the pages of a data directory and the consistency of its tables and
//! indexes. It combines `pg_checksums --check`, `amcheck` and `pg_visibility` in one tool that
//! doesn't need a server.
//!
//! [`verify`] reads all relation files once, in no particular order, and passes each page to
//! [`check_page`](trunkline_format::check_page) in the thread that completes the read. It counts
//! bad checksums in the same way as `pg_checksums --check`, and separately counts invalid pages
//! that `pg_checksums` doesn't detect. An invalid page is reported as a [`Finding`]; the job
//! doesn't fail because of it.
//!
//! Even if every page is valid, other pages may be missing. [`verify_with_catalogs`] therefore also
//! compares the files with [`CatalogFiles`]. All files named in the catalogs must exist, and every
//! relation must have the blocks that other pages refer to.
//!
//! Even if every page is valid, the pages may contradict each other. [`verify_contents`] therefore
//! looks up the tables and indexes in the catalogs, and reads them through the buffer pool. It
//! checks
//!
//! - values against their types,
//! - rows against index entries, and keys of unique indexes against each other,
//! - TOAST pointers against chunks, and chunks against TOAST pointers,
//! - the visibility map against the rows.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use trunkline_aio::{Builder, facade::Arc};
//! use trunkline_engine::{datadir, job, settings::Settings, verify};
//!
//! let options = verify::Options::of(&Settings::default());
//! let aio = Builder::new().region_bytes(options.read.region_bytes(1)).start()?;
//! let dir = datadir::DataDir::open("data".as_ref(), datadir::OpenOptions::default())?;
//! let report = verify::verify(&aio, &dir, options, Arc::new(job::Unobserved))?;
//! println!("{} blocks, {} bad", report.blocks, report.bad_checksums);
//! # Ok(()) }
//! ```

mod btree_check;
mod catalog_fault;
mod catalog_files;
mod catalog_summary;
mod cataloged_relation;
mod checked_table;
mod content_job;
mod content_options;
mod content_problem;
mod content_report;
mod content_results;
mod entry_collector;
mod entry_table;
mod finding;
mod finding_log;
mod hot_chains;
mod key_hash;
mod length_bound;
mod link_problem;
mod live_rows;
mod map_reader;
mod page_job;
mod page_verifier;
mod replayed_pages;
mod report;
mod row_check;
mod scope;
mod sink;
mod status_files;
mod table_check;
mod toast_orphans;
mod unchecked_pages;
mod unique_check;
mod value_id_set;
mod xid_range;

pub use catalog_files::CatalogFiles;
pub use catalog_summary::{CatalogSummary, DoubtfulLength};
pub use content_job::verify_contents;
pub use content_options::{Checks, ContentOptions, Only};
pub use content_problem::{ContentProblem, HeaderId, InvalidTarget};
pub use content_report::{ContentError, ContentReport, Orphans, Skipped};
pub use finding::{Finding, FindingKind};
pub use length_bound::LengthProof;
pub use link_problem::LinkProblem;
pub use page_job::{Options, verify, verify_files, verify_scope, verify_with_catalogs};
pub use report::VerifyReport;
pub use scope::Scope;
pub use unchecked_pages::UncheckedPages;
