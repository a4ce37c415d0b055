//! `trunkline init`: creates a new cluster.
//!
//! ```text
//!   $ trunkline init DIR
//!   created a cluster of PostgreSQL 18 in "DIR", system identifier 7…, with checksums
//!   hint: it has no catalogs: a server of version 18 can start, recover and check it, but not run queries
//! ```
//! Options have `initdb`'s names. The directory is an argument, not `-D`, so that `PGDATA` is never initialized by
//! accident. Nothing is overwritten: the directory must be new or empty.

use std::path::PathBuf;

use clap::ValueHint;
use trunkline_engine::new_cluster::{self, NewClusterError, NewClusterOptions};
use trunkline_format::wal::SegmentSize;

use crate::exit::{Exit, Failure, message};
use crate::options::Context;
use crate::output::{object, print_report};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Directory of the new cluster; must be empty or not exist.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Don't use data page checksums.
    #[arg(long)]
    no_data_checksums: bool,

    /// Size of WAL segments, in megabytes: a power of 2 from 1 to 1024.
    #[arg(long, value_name = "SIZE", default_value = "16", value_parser = segment_size)]
    wal_segsize: SegmentSize,
}

/// A size in megabytes.
fn segment_size(text: &str) -> Result<SegmentSize, String> {
    let bytes = text.parse().ok().and_then(|megabytes: u32| megabytes.checked_mul(1 << 20));
    bytes
        .and_then(SegmentSize::new)
        .ok_or_else(|| "must be a power of two between 1 and 1024".to_owned())
}

impl From<NewClusterError> for Failure {
    fn from(error: NewClusterError) -> Failure {
        match error {
            NewClusterError::NotEmpty { .. } => {
                Failure::usage(error).with_hint("choose a directory that is new or empty")
            }
            error => Failure::cannot_run(error),
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &InitArgs) -> Result<Exit, Failure> {
    let checksums = !args.no_data_checksums;
    let options = NewClusterOptions::now(args.wal_segsize, checksums);
    let control = new_cluster::create(&args.directory, &options)?.control;
    let json = object! {
        directory: args.directory.display().to_string(),
        version: control.version.major(),
        system_identifier: control.system_identifier.to_string(),
        data_checksums: checksums,
        wal_segment_size: control.wal_segment_size,
    };
    print_report(context.global, &json, || {
        format!(
            "created a cluster of {} in \"{}\", system identifier {}, with{} checksums\n",
            control.version,
            args.directory.display(),
            control.system_identifier,
            if checksums { "" } else { "out" },
        )
    })?;
    message(
        "hint",
        "it has no catalogs: a server of version 18 can start, recover and check it, but not run queries",
    );
    Ok(Exit::Good)
}
