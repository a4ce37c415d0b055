//! `trunkline inspect`: one thing decoded, for people and as JSON.
//!
//! A control file or a page is read as it is, with plain reads: no engine is started, no lock looked
//! at, so it also works on a directory that nothing else here would open. The other subjects are
//! found by the catalog, and so want a cluster that was stopped.

mod catalogued;
mod chunks;
mod control;
mod index;
mod map;
mod page;
mod row;
mod transactions;
mod tuple;

pub(crate) use chunks::ToastArgs;
pub(crate) use index::BtreeArgs;
pub(crate) use map::RelmapArgs;
pub(crate) use row::TupleArgs;
pub(crate) use transactions::{ClogArgs, MultixactArgs};

use crate::cli::{Global, Subject};
use crate::exit::{Exit, Failure};
use trunkline_engine::settings::Settings;

/// Runs the command.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    subject: &Subject,
) -> Result<Exit, Failure> {
    match subject {
        Subject::Control { file, .. } => control::run(global, file.as_deref()),
        Subject::Page { file, block, .. } => page::run(global, file, *block),
        Subject::Tuple { args, .. } => row::run(global, settings, args),
        Subject::Btree { args, .. } => index::run(global, settings, args),
        Subject::Clog { args, .. } => transactions::clog(global, settings, args),
        Subject::Multixact { args, .. } => transactions::multixact(global, settings, args),
        Subject::Relmap { args, .. } => map::run(global, settings, args),
        Subject::Toast { args, .. } => chunks::run(global, settings, args),
    }
}
