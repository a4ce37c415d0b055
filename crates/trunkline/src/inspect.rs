//! `trunkline inspect`: decodes one file, page or row version, as text or JSON.
//!
//! `control` and `page` use plain file reads. They don't start an engine or look at
//! `postmaster.pid`, so they also work on a single file copied from elsewhere, and on a data
//! directory that the other commands refuse to open. The other subcommands need the catalog, so the
//! cluster must be stopped.
//!
//! The subcommands correspond to `pg_controldata` and to the functions of `pageinspect`.

mod btree;
mod control;
mod open_database;
mod page;
mod relmap;
mod toast;
mod transactions;
mod tuple;
mod tuple_header;

use std::path::PathBuf;

use clap::Subcommand;
use trunkline_engine::settings::Settings;

use crate::exit::{Exit, Failure};
use crate::options::{Global, IoArgs};
use btree::BtreeArgs;
use relmap::RelmapArgs;
use toast::ToastArgs;
use transactions::{ClogArgs, MultixactArgs};
use tuple::TupleArgs;

/// What to decode.
#[derive(Debug, Subcommand)]
pub(crate) enum InspectCommand {
    /// Print the control file, as pg_controldata does.
    Control {
        /// Control file [default: global/pg_control in the data directory].
        file: Option<PathBuf>,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Decode a page of a relation file: header, checksum, line pointers, tuple headers.
    Page {
        /// File of a relation, such as base/5/16384 or base/5/16384_vm.
        file: PathBuf,
        /// Block number in the relation, counted across all segments [default: the first block of
        /// the file].
        block: Option<u32>,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Decode a row version of a table: its header, its visibility, and each column as stored.
    Tuple {
        #[command(flatten)]
        args: TupleArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Describe the levels of a B-tree index, or decode one of its pages.
    Btree {
        #[command(flatten)]
        args: BtreeArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Look up the status of transactions in the commit log.
    Clog {
        #[command(flatten)]
        args: ClogArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// List the members of multixacts: the transactions that lock a row together.
    Multixact {
        #[command(flatten)]
        args: MultixactArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Print a relation map: the files of the catalogs that PostgreSQL reads first.
    Relmap {
        #[command(flatten)]
        args: RelmapArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// List the chunks of a TOAST value.
    Toast {
        #[command(flatten)]
        args: ToastArgs,
        #[command(flatten)]
        io: IoArgs,
    },
}

impl InspectCommand {
    pub(crate) fn io(&self) -> &IoArgs {
        match self {
            InspectCommand::Control { io, .. }
            | InspectCommand::Page { io, .. }
            | InspectCommand::Tuple { io, .. }
            | InspectCommand::Btree { io, .. }
            | InspectCommand::Clog { io, .. }
            | InspectCommand::Multixact { io, .. }
            | InspectCommand::Relmap { io, .. }
            | InspectCommand::Toast { io, .. } => io,
        }
    }
}

/// Runs the command.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    command: &InspectCommand,
) -> Result<Exit, Failure> {
    match command {
        InspectCommand::Control { file, .. } => control::run(global, file.as_deref()),
        InspectCommand::Page { file, block, .. } => page::run(global, file, *block),
        InspectCommand::Tuple { args, .. } => tuple::run(global, settings, args),
        InspectCommand::Btree { args, .. } => btree::run(global, settings, args),
        InspectCommand::Clog { args, .. } => transactions::clog(global, settings, args),
        InspectCommand::Multixact { args, .. } => transactions::multixact(global, settings, args),
        InspectCommand::Relmap { args, .. } => relmap::run(global, settings, args),
        InspectCommand::Toast { args, .. } => toast::run(global, settings, args),
    }
}
