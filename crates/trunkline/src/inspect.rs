//! `trunkline inspect`: decodes one file, page or row version, as text or JSON.
//!
//! `control` and `wal` use plain file reads, so they also work on a single file copied from elsewhere, and
//! on a data directory that the other commands refuse to open: `wal` needs the catalogs only for the names
//! of relations. So does `page` with a file, but if the file's cluster was not shut down, its log is
//! replayed to build the page. The other subcommands need the catalog, so the cluster must be stopped.
//!
//! The subcommands correspond to `pg_controldata` and to the functions of `pageinspect`.

mod btree;
mod control;
mod open_database;
mod page;
mod relation_file;
mod relmap;
mod toast;
mod transactions;
mod tuple;
mod tuple_header;
mod wal;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::options::{Context, IoArgs, WithIo};
use crate::replay_options::{ALLOW_INCOMPLETE, ARCHIVE, NO_REPLAY};
use btree::BtreeArgs;
use control::ControlArgs;
use page::PageArgs;
use relmap::RelmapArgs;
use toast::ToastArgs;
use transactions::{ClogArgs, MultixactArgs};
use tuple::TupleArgs;
use wal::WalArgs;

/// What to decode.
#[derive(Debug, Subcommand)]
pub(crate) enum InspectCommand {
    /// Print the control file, as pg_controldata does.
    Control(WithIo<ControlArgs>),
    /// Decode a page of a relation: header, checksum, line pointers, tuple headers; or list its history.
    ///
    /// If the cluster was not shut down, the page is built from its log, and the line "source" names
    /// the records. With --history, the records of the log that are about the page are listed instead:
    ///
    ///   trunkline inspect page -D DIR -d bench public.t 3 --history
    #[command(verbatim_doc_comment)]
    Page(WithIo<PageArgs>),
    /// Decode a row version of a table: its header, its visibility, and each column as stored.
    Tuple(WithIo<TupleArgs>),
    /// Describe the levels of a B-tree index, or decode one of its pages.
    Btree(WithIo<BtreeArgs>),
    /// Look up the status of transactions in the commit log.
    Clog(WithIo<ClogArgs>),
    /// List the members of multixacts: the transactions that lock a row together.
    Multixact(WithIo<MultixactArgs>),
    /// Print a relation map: the files of the catalogs that PostgreSQL reads first.
    Relmap(WithIo<RelmapArgs>),
    /// List the chunks of a TOAST value.
    Toast(WithIo<ToastArgs>),
    /// Print the records of the write-ahead log, as pg_waldump does.
    ///
    /// A server may be running. Relations are shown by name if the catalogs can be read: no server may
    /// be running, and the log of a crashed cluster must be replayable. Of Gin, Gist, SPGist, BRIN, Hash and CommitTs records, only the lengths of their data
    /// are described. Exit status 1 means that the log is damaged or ends too early.
    Wal(WithIo<WalArgs>),
}

impl InspectCommand {
    /// Which options of a replay the command takes. `None` if it may read a cluster through its log.
    pub(crate) fn replay_options_allowed(&self) -> Option<&'static [&'static str]> {
        match self {
            InspectCommand::Control(_) => Some(&[]),
            // The name of a relation is looked up in the catalogs as they are at the end of the log.
            InspectCommand::Wal(_) => Some(&[ARCHIVE, NO_REPLAY, ALLOW_INCOMPLETE]),
            _ => None,
        }
    }

    pub(crate) fn io(&self) -> &IoArgs {
        match self {
            InspectCommand::Control(WithIo { io, .. })
            | InspectCommand::Page(WithIo { io, .. })
            | InspectCommand::Tuple(WithIo { io, .. })
            | InspectCommand::Btree(WithIo { io, .. })
            | InspectCommand::Clog(WithIo { io, .. })
            | InspectCommand::Multixact(WithIo { io, .. })
            | InspectCommand::Relmap(WithIo { io, .. })
            | InspectCommand::Toast(WithIo { io, .. })
            | InspectCommand::Wal(WithIo { io, .. }) => io,
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &InspectCommand) -> Result<Exit, Failure> {
    match command {
        InspectCommand::Control(command) => control::run(context, &command.args),
        InspectCommand::Page(command) => page::run(context, &command.args),
        InspectCommand::Tuple(command) => tuple::run(context, &command.args),
        InspectCommand::Btree(command) => btree::run(context, &command.args),
        InspectCommand::Clog(command) => transactions::clog(context, &command.args),
        InspectCommand::Multixact(command) => transactions::multixact(context, &command.args),
        InspectCommand::Relmap(command) => relmap::run(context, &command.args),
        InspectCommand::Toast(command) => toast::run(context, &command.args),
        InspectCommand::Wal(command) => wal::run(context, &command.args),
    }
}
