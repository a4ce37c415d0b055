//! What `trunkline inspect` can look at: each subject with its arguments.
//!
//! A subject is a file or a part of one: the control file, a page, a row version, an index.

use std::path::PathBuf;

use clap::Subcommand;

use super::options::IoArgs;
use crate::inspect::{BtreeArgs, ClogArgs, MultixactArgs, RelmapArgs, ToastArgs, TupleArgs};

/// What to look at.
#[derive(Debug, Subcommand)]
pub(crate) enum Subject {
    /// The control file, as pg_controldata prints it.
    Control {
        /// The control file; by default global/pg_control of the data directory.
        file: Option<PathBuf>,
        #[command(flatten)]
        io: IoArgs,
    },
    /// One page of a relation file: header, checksum, line pointers, tuple headers.
    Page {
        /// A file of a relation, such as base/5/16384 or base/5/16384_vm.
        file: PathBuf,
        /// Number of the block within the relation, counted over all its segments; by default the
        /// file's first.
        block: Option<u32>,
        #[command(flatten)]
        io: IoArgs,
    },
    /// One row version of a table: its header, its state, and each column as it is stored.
    Tuple {
        #[command(flatten)]
        args: TupleArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// A B-tree index: its levels, or one of its pages with the keys as text.
    Btree {
        #[command(flatten)]
        args: BtreeArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// What became of transactions.
    Clog {
        #[command(flatten)]
        args: ClogArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// The members of multixacts: transactions that hold a row together.
    Multixact {
        #[command(flatten)]
        args: MultixactArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// The relation map: which files the first catalogs are in.
    Relmap {
        #[command(flatten)]
        args: RelmapArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// The chunks of a long value.
    Toast {
        #[command(flatten)]
        args: ToastArgs,
        #[command(flatten)]
        io: IoArgs,
    },
}

impl Subject {
    pub(super) fn io(&self) -> &IoArgs {
        match self {
            Subject::Control { io, .. }
            | Subject::Page { io, .. }
            | Subject::Tuple { io, .. }
            | Subject::Btree { io, .. }
            | Subject::Clog { io, .. }
            | Subject::Multixact { io, .. }
            | Subject::Relmap { io, .. }
            | Subject::Toast { io, .. } => io,
        }
    }
}
