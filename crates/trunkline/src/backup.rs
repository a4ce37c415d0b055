//! `trunkline backup`: base backups as `pg_basebackup` makes them, in plain format.
//!
//! ```text
//!   trunkline backup verify DIR [--wal ARCHIVE]     does this backup restore?
//! ```
//! | File | Question |
//! |---|---|
//! | `verify` | what is checked, in which order, and what is the verdict? |
//! | `manifest`, `checksum` | what does `backup_manifest` say, and may it be believed? |
//! | `files` | are all files there, and unchanged? |
//! | `log` | is the log complete, and how far does it reach? |
//! | `finding`, `report` | what is printed? |

mod checksum;
mod files;
mod finding;
mod log;
mod manifest;
mod report;
mod verify;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::options::{Context, IoArgs, PoolArgs, WithPool};
use verify::VerifyBackupArgs;

/// What to do with a backup.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Check that a base backup restores, without restoring it.
    ///
    /// Checks the files against backup_manifest as pg_verifybackup does, the log up to the point where
    /// the files are consistent and on to its end, and then every page as it is after the replay of that
    /// log. With --wal, the archive must have every segment from the start of the backup to the newest,
    /// and each must be readable and of this cluster. Nothing is written. Exit status 1 means that
    /// something is wrong with the backup. Backups in tar format and incremental backups are refused.
    Verify(WithPool<VerifyBackupArgs>),
}

impl BackupCommand {
    pub(crate) fn options(&self) -> (&IoArgs, &PoolArgs) {
        match self {
            BackupCommand::Verify(WithPool { io, pool, .. }) => (io, pool),
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &BackupCommand) -> Result<Exit, Failure> {
    match command {
        BackupCommand::Verify(command) => verify::run(context, &command.args),
    }
}
