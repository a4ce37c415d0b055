//! **Effects**: what a record does outside of pages, as a value.
//!
//! ```text
//!   Transaction/COMMIT ──▶ status of transactions, files that go away
//!   Storage/TRUNCATE ────▶ a relation's length
//!   RelMap/UPDATE ───────▶ the files of mapped catalogs
//!   XLOG/CHECKPOINT_* ───▶ the next transaction, OID and multixact
//! ```
//! Each driver of a replay carries them out in its own way: a reader keeps them in memory, recovery
//! changes files. Records that only change pages have no effect. Neither have those that only a
//! standby with sessions needs, such as locks.
//!
//! Everything here is decoded from bytes of which only the CRC is known to be right, so every field
//! may have any value.

use thiserror::Error;

use crate::control::{Checkpoint, PgVersion};
use crate::ids::{BlockNo, Fork, Lsn, Oid};

use super::fields::Fields;
use super::locator::RelFileLocator;
use super::record::Record;
use super::resource_manager::multixact_operation::{
    CREATE_ID, ZERO_MEMBERS_PAGE, ZERO_OFFSETS_PAGE,
};
use super::resource_manager::{ResourceManager, number};
use super::transaction_end::{PreparedTransaction, TransactionEnd};

/// What a record does outside of pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect<'r> {
    /// A checkpoint. It has been completed, since its record is the last thing that it writes.
    Checkpoint {
        /// The record's contents; its location is 0.
        checkpoint: Box<Checkpoint>,
        /// Whether nothing was running: then all counters are exact.
        is_shutdown: bool,
    },
    /// `XLOG_CHECKPOINT_REDO`: a checkpoint begins here.
    CheckpointRedo,
    /// OIDs below this one may be in use.
    NextOid(Oid),
    /// A base backup that began at this position has ended.
    BackupEnd {
        /// The backup's redo position.
        start: Lsn,
    },
    /// A restore point.
    RestorePoint {
        /// Microseconds since 2000.
        time: i64,
        /// Its name.
        name: &'r [u8],
    },
    /// Parameters in the control file change.
    Parameters(Parameters),
    /// `full_page_writes` was switched on or off.
    FullPageWrites(bool),
    /// A recovery ended here, with or without a new timeline.
    EndOfRecovery {
        /// The timeline from here on.
        timeline: u32,
        /// The timeline before.
        previous_timeline: u32,
    },
    /// A transaction was committed or aborted.
    TransactionEnd(Box<TransactionEnd>),
    /// A transaction was prepared.
    Prepare(Box<PreparedTransaction>),
    /// A fork of a relation was created.
    Create {
        /// The relation.
        relation: RelFileLocator,
        /// The fork.
        fork: Fork,
    },
    /// A relation was cut off.
    Truncate(Truncation),
    /// A page of the commit log is filled with zeros.
    ZeroCommitLog {
        /// The page.
        page: u64,
    },
    /// The commit log before this transaction is removed.
    TruncateCommitLog {
        /// The oldest transaction that is left.
        oldest_xid: u32,
        /// The database that needs it.
        database: Oid,
    },
    /// A page of multixact offsets is filled with zeros.
    ZeroOffsets {
        /// The page.
        page: u64,
    },
    /// A page of multixact members is filled with zeros.
    ZeroMembers {
        /// The page.
        page: u64,
    },
    /// A multixact was created.
    CreateMultixact(Multixact),
    /// Multixacts before this one are removed.
    TruncateMultixacts {
        /// The database that needs the oldest multixact.
        database: Oid,
        /// The oldest multixact that is left.
        oldest: u32,
    },
    /// A database was created as a copy of another's directory.
    CopyDatabase {
        /// Tablespace and database of the copy.
        to: (Oid, Oid),
        /// Tablespace and database that it was copied from.
        from: (Oid, Oid),
    },
    /// A database's directory was created. Its contents are logged.
    CreateDatabase {
        /// The tablespace.
        tablespace: Oid,
        /// The database.
        database: Oid,
    },
    /// A database's directories were removed.
    DropDatabase {
        /// The database.
        database: Oid,
        /// The tablespaces that contain a part of it.
        tablespaces: Vec<Oid>,
    },
    /// A tablespace was created.
    CreateTablespace {
        /// The tablespace.
        tablespace: Oid,
        /// Its directory.
        path: &'r [u8],
    },
    /// A tablespace was removed.
    DropTablespace {
        /// The tablespace.
        tablespace: Oid,
    },
    /// A relation map was replaced.
    ReplaceRelationMap {
        /// The database, or 0 for the shared map.
        database: Oid,
        /// Its tablespace.
        tablespace: Oid,
        /// The new contents of the file, not verified.
        bytes: &'r [u8],
    },
    /// A snapshot of running transactions.
    RunningTransactions {
        /// The next transaction.
        next_xid: u32,
        /// The oldest that was running.
        oldest_running: u32,
    },
}

/// `xl_parameter_change`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// `max_connections`, `max_worker_processes`, `max_wal_senders`, `max_prepared_transactions` and
    /// `max_locks_per_transaction`.
    pub limits: [i32; 5],
    /// `wal_level`.
    pub wal_level: i32,
    /// `wal_log_hints`.
    pub wal_log_hints: bool,
    /// `track_commit_timestamp`.
    pub track_commit_timestamp: bool,
}

/// A relation was cut off: which forks, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// The relation.
    pub relation: RelFileLocator,
    /// The new length of the main fork in blocks. Map forks are cut where they describe later blocks.
    pub blocks: BlockNo,
    /// Whether the main fork is cut off.
    pub main: bool,
    /// Whether the visibility map is.
    pub visibility_map: bool,
    /// Whether the free space map is.
    pub free_space_map: bool,
}

impl Truncation {
    /// `XLOG_SMGR_TRUNCATE`.
    const OPERATION: u8 = 0x20;

    /// Decodes the record. `None` if it isn't a truncation, or is too short.
    pub(super) fn of(record: &Record<'_>) -> Option<Self> {
        let header = record.header();
        if header.manager != number::STORAGE || header.operation() != Self::OPERATION {
            return None;
        }
        let mut fields = Fields::of(record.main_data());
        let (blocks, relation, flags) = (fields.u32()?, fields.relation()?, fields.i32()?);
        let has = |bit| flags & bit != 0;
        let (main, visibility_map, free_space_map) = (has(1), has(2), has(4));
        Some(Self { relation, blocks, main, visibility_map, free_space_map })
    }
}

/// A new multixact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multixact {
    /// Its number.
    pub multi: u32,
    /// The number of its first member.
    pub first_member: u64,
    /// Transaction and status number of each member.
    pub members: Vec<(u32, u32)>,
}

/// A record whose effect can't be decoded.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "record {operation} of {manager} has {found} bytes of main data, which are not what this \
     operation has"
)]
pub struct EffectError {
    /// The resource manager.
    pub manager: ResourceManager,
    /// The operation's name or number.
    pub operation: String,
    /// The length of its main data.
    pub found: usize,
}

impl<'r> Effect<'r> {
    /// The effect of a record. `None` if it has none.
    ///
    /// # Errors
    ///
    /// The operation is unknown to this version, or the record is too short or contradicts itself.
    pub fn of(record: &Record<'r>, version: PgVersion) -> Result<Option<Self>, EffectError> {
        let decoded = match record.header().manager {
            number::XLOG => log(record, version),
            number::TRANSACTION => transaction(record, version),
            number::STORAGE => storage(record),
            number::CLOG => commit_log(record, version),
            number::DATABASE => database(record),
            number::TABLESPACE => tablespace(record),
            number::MULTIXACT => multixact(record, version),
            number::RELMAP => relation_map(record),
            number::STANDBY => standby(record),
            _ => Some(None),
        };
        decoded.ok_or_else(|| {
            let header = record.header();
            let name = super::resource_manager::operation_name(header, version);
            EffectError {
                manager: ResourceManager(header.manager),
                operation: name
                    .map_or_else(|| format!("0x{:02X}", header.operation()), str::to_owned),
                found: record.main_data().len(),
            }
        })
    }
}

type Decoded<'r> = Option<Option<Effect<'r>>>;

fn log<'r>(record: &Record<'r>, version: PgVersion) -> Decoded<'r> {
    let mut fields = Fields::of(record.main_data());
    Some(Some(match record.header().operation() {
        operation @ (0x00 | 0x10) => Effect::Checkpoint {
            checkpoint: Box::new(Checkpoint::of_record(record.main_data(), version)?),
            is_shutdown: operation == 0x00,
        },
        0x30 => Effect::NextOid(Oid(fields.u32()?)),
        0x50 => Effect::BackupEnd { start: fields.lsn()? },
        0x60 => {
            let mut limits = [0; 5];
            for limit in &mut limits {
                *limit = fields.i32()?;
            }
            Effect::Parameters(Parameters {
                limits,
                wal_level: fields.i32()?,
                wal_log_hints: fields.u8()? != 0,
                track_commit_timestamp: fields.u8()? != 0,
            })
        }
        0x70 => Effect::RestorePoint { time: fields.i64()?, name: fields.c_text()? },
        0x90 => {
            let _time = fields.i64()?;
            Effect::EndOfRecovery { timeline: fields.u32()?, previous_timeline: fields.u32()? }
        }
        0xE0 if version >= PgVersion::V17 => Effect::CheckpointRedo,
        0x80 => Effect::FullPageWrites(fields.u8()? != 0),
        // NOOP, SWITCH, images and the record about one that was overwritten.
        0x20 | 0x40 | 0xA0 | 0xB0 | 0xD0 => return Some(None),
        // Positions for unlogged changes, and whether logical decoding is on.
        0xC0 | 0xF0 if version >= PgVersion::V19 => return Some(None),
        _ => return None,
    }))
}

fn transaction<'r>(record: &Record<'r>, version: PgVersion) -> Decoded<'r> {
    Some(match record.header().operation() & 0x70 {
        0x00 | 0x20 | 0x30 | 0x40 => {
            Some(Effect::TransactionEnd(Box::new(TransactionEnd::parse(record, version)?)))
        }
        PreparedTransaction::OPERATION => {
            Some(Effect::Prepare(Box::new(PreparedTransaction::parse(record, version)?)))
        }
        0x50 | 0x60 => None,
        _ => return None,
    })
}

fn storage<'r>(record: &Record<'r>) -> Decoded<'r> {
    let mut fields = Fields::of(record.main_data());
    Some(Some(match record.header().operation() {
        0x10 => {
            let (relation, fork) = (fields.relation()?, fields.count()?);
            Effect::Create { relation, fork: *Fork::ALL.get(fork)? }
        }
        Truncation::OPERATION => Effect::Truncate(Truncation::of(record)?),
        _ => return None,
    }))
}

/// The number of a page of the commit log or of multixacts: 64 bits since 17.
fn page_number(fields: &mut Fields<'_>, version: PgVersion) -> Option<u64> {
    let page = if version >= PgVersion::V17 { fields.i64()? } else { i64::from(fields.i32()?) };
    u64::try_from(page).ok()
}

fn commit_log<'r>(record: &Record<'r>, version: PgVersion) -> Decoded<'r> {
    let mut fields = Fields::of(record.main_data());
    let page = page_number(&mut fields, version)?;
    Some(Some(match record.header().operation() {
        0x00 => Effect::ZeroCommitLog { page },
        0x10 => {
            let (oldest_xid, database) = (fields.u32()?, Oid(fields.u32()?));
            Effect::TruncateCommitLog { oldest_xid, database }
        }
        _ => return None,
    }))
}

fn database<'r>(record: &Record<'r>) -> Decoded<'r> {
    let mut fields = Fields::of(record.main_data());
    let mut oid = || fields.u32().map(Oid);
    Some(Some(match record.header().operation() {
        0x00 => {
            let [database, tablespace, from_database, from_tablespace] =
                [oid()?, oid()?, oid()?, oid()?];
            let (to, from) = ((tablespace, database), (from_tablespace, from_database));
            Effect::CopyDatabase { to, from }
        }
        0x10 => {
            let [database, tablespace] = [oid()?, oid()?];
            Effect::CreateDatabase { tablespace, database }
        }
        0x20 => {
            let database = oid()?;
            let count = fields.count()?;
            let tablespaces = fields.list(count, |fields| fields.u32().map(Oid))?;
            Effect::DropDatabase { database, tablespaces }
        }
        _ => return None,
    }))
}

fn tablespace<'r>(record: &Record<'r>) -> Decoded<'r> {
    let mut fields = Fields::of(record.main_data());
    let tablespace = Oid(fields.u32()?);
    Some(Some(match record.header().operation() {
        0x00 => Effect::CreateTablespace { tablespace, path: fields.c_text()? },
        0x10 => Effect::DropTablespace { tablespace },
        _ => return None,
    }))
}

fn multixact<'r>(record: &Record<'r>, version: PgVersion) -> Decoded<'r> {
    let mut fields = Fields::of(record.main_data());
    let is_wide = version >= PgVersion::V19;
    Some(Some(match record.header().operation() {
        ZERO_OFFSETS_PAGE => Effect::ZeroOffsets { page: page_number(&mut fields, version)? },
        ZERO_MEMBERS_PAGE => Effect::ZeroMembers { page: page_number(&mut fields, version)? },
        CREATE_ID => {
            let multi = fields.u32()?;
            let first_member = if is_wide {
                fields.align(8);
                fields.take::<u64>()?
            } else {
                u64::from(fields.u32()?)
            };
            let count = fields.count()?;
            let members = fields.list(count, |fields| Some((fields.u32()?, fields.u32()?)))?;
            Effect::CreateMultixact(Multixact { multi, first_member, members })
        }
        0x30 => {
            let database = Oid(fields.u32()?);
            // Before 19, the start of the part that is removed comes first.
            let oldest = if is_wide { fields.u32()? } else { fields.skip_to(8).u32()? };
            Effect::TruncateMultixacts { database, oldest }
        }
        _ => return None,
    }))
}

fn relation_map<'r>(record: &Record<'r>) -> Decoded<'r> {
    if record.header().operation() != 0x00 {
        return None;
    }
    let mut fields = Fields::of(record.main_data());
    let (database, tablespace, size) = (Oid(fields.u32()?), Oid(fields.u32()?), fields.count()?);
    let bytes = fields.bytes(size)?;
    Some(Some(Effect::ReplaceRelationMap { database, tablespace, bytes }))
}

fn standby<'r>(record: &Record<'r>) -> Decoded<'r> {
    if record.header().operation() != 0x10 {
        return Some(None);
    }
    let fields = Fields::of(record.main_data());
    let (next_xid, oldest_running) = (fields.skip_to(12).u32()?, fields.skip_to(16).u32()?);
    Some(Some(Effect::RunningTransactions { next_xid, oldest_running }))
}
