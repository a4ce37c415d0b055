//! **Ends of transactions**: the records of commit, abort and prepare.
//!
//! ```text
//!   commit, abort   time │ flags │ database │ subxids │ relations │ statistics │ messages │ prepared …
//!                        ╰ only if info has 0x80; then each part only if its flag is set ╯
//!   prepare         72 bytes with counts │ gid │ subxids │ relations │ statistics │ messages
//! ```
//! A reader needs them for three things: the status of the transaction and of its subtransactions,
//! the time, by which `--until` finds a moment, and the relations whose files go away. A commit of
//! a prepared transaction names that transaction in itself; the record's own xid is 0.
//!
//! Mirrors `ParseCommitRecord` and its neighbours in PostgreSQL's `access/rmgrdesc/xactdesc.c`.

use crate::control::PgVersion;
use crate::ids::{Lsn, Oid};

use super::fields::Fields;
use super::invalidation::Invalidation;
use super::locator::RelFileLocator;
use super::record::Record;

/// Whether a transaction was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was committed.
    Committed,
    /// It was aborted.
    Aborted,
}

/// Statistics of an object that was dropped: kind, database and object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DroppedStatistics {
    /// The kind of object.
    pub kind: u32,
    /// The database.
    pub database: Oid,
    /// The object.
    pub object: u64,
}

/// Where a transaction comes from that was replicated from elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OriginPosition {
    /// The position there.
    pub lsn: Lsn,
    /// The commit time there, in microseconds since 2000.
    pub time: i64,
}

/// A commit or abort record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionEnd {
    /// What became of the transaction.
    pub outcome: Outcome,
    /// The transaction that ended, which for a prepared one is not the record's.
    pub xid: u32,
    /// The name of a prepared transaction, if `wal_level` is `logical`.
    pub gid: Option<Vec<u8>>,
    /// Whether the transaction had been prepared.
    pub was_prepared: bool,
    /// Microseconds since 2000.
    pub time: i64,
    /// Flags of the parts, and of what else must happen at commit.
    pub flags: u32,
    /// The session's database and its default tablespace, if logged.
    pub database: Option<(Oid, Oid)>,
    /// Subtransactions with the same outcome.
    pub subxids: Vec<u32>,
    /// Relations whose files are removed.
    pub dropped: Vec<RelFileLocator>,
    /// Objects whose statistics are removed.
    pub statistics: Vec<DroppedStatistics>,
    /// Invalidation messages; commit only.
    pub invalidations: Vec<Invalidation>,
    /// The position at the replication origin.
    pub origin: Option<OriginPosition>,
}

/// Bits of `xinfo`.
const HAS_DATABASE: u32 = 0x1;
const HAS_SUBXIDS: u32 = 0x2;
const HAS_RELATIONS: u32 = 0x4;
const HAS_INVALIDATIONS: u32 = 0x8;
const HAS_PREPARED: u32 = 0x10;
const HAS_ORIGIN: u32 = 0x20;
const HAS_GID: u32 = 0x80;
const HAS_STATISTICS: u32 = 0x100;

impl TransactionEnd {
    /// `XACT_COMPLETION_APPLY_FEEDBACK`.
    pub const APPLY_FEEDBACK: u32 = 1 << 29;
    /// `XACT_COMPLETION_UPDATE_RELCACHE_FILE`.
    pub const RELCACHE_FILE: u32 = 1 << 30;
    /// `XACT_COMPLETION_FORCE_SYNC_COMMIT`.
    pub const FORCE_SYNC: u32 = 1 << 31;

    /// Decodes a commit or abort record. `None` if the record is another, or too short.
    pub fn parse(record: &Record<'_>, version: PgVersion) -> Option<Self> {
        let info = record.header().operation();
        let (outcome, was_prepared) = match info & 0x70 {
            0x00 => (Outcome::Committed, false),
            0x20 => (Outcome::Aborted, false),
            0x30 => (Outcome::Committed, true),
            0x40 => (Outcome::Aborted, true),
            _ => return None,
        };
        let mut fields = Fields::of(record.main_data());
        let time = fields.i64()?;
        let flags = if info & 0x80 != 0 { fields.u32()? } else { 0 };
        let has = |flag| flags & flag != 0;
        let mut end = Self {
            outcome,
            xid: record.header().xid,
            gid: None,
            was_prepared,
            time,
            flags,
            database: None,
            subxids: Vec::new(),
            dropped: Vec::new(),
            statistics: Vec::new(),
            invalidations: Vec::new(),
            origin: None,
        };
        if has(HAS_DATABASE) {
            end.database = Some((Oid(fields.u32()?), Oid(fields.u32()?)));
        }
        if has(HAS_SUBXIDS) {
            let count = fields.count()?;
            end.subxids = fields.list(count, Fields::u32)?;
        }
        if has(HAS_RELATIONS) {
            let count = fields.count()?;
            end.dropped = fields.list(count, Fields::relation)?;
        }
        if has(HAS_STATISTICS) {
            let count = fields.count()?;
            end.statistics = statistics(&mut fields, count, version)?;
        }
        if has(HAS_INVALIDATIONS) && outcome == Outcome::Committed {
            let count = fields.count()?;
            end.invalidations = Invalidation::list(&mut fields, count)?;
        }
        if has(HAS_PREPARED) {
            end.xid = fields.u32()?;
            if has(HAS_GID) {
                end.gid = Some(fields.c_text()?.to_vec());
            }
        }
        if has(HAS_ORIGIN) {
            end.origin = Some(OriginPosition { lsn: fields.lsn()?, time: fields.i64()? });
        }
        Some(end)
    }
}

/// Since 18, the object is a 64-bit number in two halves.
fn statistics(
    fields: &mut Fields<'_>,
    count: usize,
    version: PgVersion,
) -> Option<Vec<DroppedStatistics>> {
    fields.list(count, |fields| {
        let (kind, database, low) = (fields.u32()?, Oid(fields.u32()?), fields.u32()?);
        let high = if version >= PgVersion::V18 { fields.u32()? } else { 0 };
        Some(DroppedStatistics { kind, database, object: u64::from(high) << 32 | u64::from(low) })
    })
}

/// A prepared transaction: it is neither committed nor aborted until a later record says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreparedTransaction {
    /// The transaction.
    pub xid: u32,
    /// Its database.
    pub database: Oid,
    /// The role that has prepared it.
    pub owner: Oid,
    /// Its name.
    pub gid: Vec<u8>,
    /// Microseconds since 2000.
    pub time: i64,
    /// Its subtransactions.
    pub subxids: Vec<u32>,
    /// Relations whose files are removed if it is committed.
    pub dropped_on_commit: Vec<RelFileLocator>,
    /// Relations whose files are removed if it is aborted.
    pub dropped_on_abort: Vec<RelFileLocator>,
    /// Statistics that are removed if it is committed.
    pub statistics_on_commit: Vec<DroppedStatistics>,
    /// Statistics that are removed if it is aborted.
    pub statistics_on_abort: Vec<DroppedStatistics>,
    /// Invalidation messages.
    pub invalidations: Vec<Invalidation>,
    /// Whether the cache file of relation descriptors becomes stale.
    pub invalidates_relcache_file: bool,
    /// The position at the replication origin; zeros without one.
    pub origin: OriginPosition,
}

impl PreparedTransaction {
    /// `XLOG_XACT_PREPARE`.
    pub(super) const OPERATION: u8 = 0x10;

    /// Size of the fixed part, aligned.
    const FIXED: usize = 72;

    /// Decodes a prepare record. `None` if the record is another, or too short.
    pub fn parse(record: &Record<'_>, version: PgVersion) -> Option<Self> {
        if record.header().operation() & 0x70 != Self::OPERATION {
            return None;
        }
        Self::decode(record.main_data(), version)
    }

    /// Decodes the data of a prepare record, which a file in `pg_twophase` has too. `None` if it is too short.
    pub(super) fn decode(data: &[u8], version: PgVersion) -> Option<Self> {
        let all = Fields::of(data);
        let count = |at| all.skip_to(at).count();
        let gid_length = usize::from(all.skip_to(54).u16()?);
        let mut fields = all.skip_to(Self::FIXED);
        let gid = fields.bytes(gid_length)?;
        let gid = gid.split(|&byte| byte == 0).next().unwrap_or_default().to_vec();
        // Each list is aligned.
        fields.align(8);
        let subxids = fields.list(count(28)?, Fields::u32)?;
        fields.align(8);
        let dropped_on_commit = fields.list(count(32)?, Fields::relation)?;
        fields.align(8);
        let dropped_on_abort = fields.list(count(36)?, Fields::relation)?;
        fields.align(8);
        let statistics_on_commit = statistics(&mut fields, count(40)?, version)?;
        fields.align(8);
        let statistics_on_abort = statistics(&mut fields, count(44)?, version)?;
        fields.align(8);
        let invalidations = Invalidation::list(&mut fields, count(48)?)?;
        Some(Self {
            xid: all.skip_to(8).u32()?,
            database: Oid(all.skip_to(12).u32()?),
            owner: Oid(all.skip_to(24).u32()?),
            gid,
            time: all.skip_to(16).i64()?,
            subxids,
            dropped_on_commit,
            dropped_on_abort,
            statistics_on_commit,
            statistics_on_abort,
            invalidations,
            invalidates_relcache_file: all.skip_to(52).u8()? != 0,
            origin: OriginPosition { lsn: all.skip_to(56).lsn()?, time: all.skip_to(64).i64()? },
        })
    }
}
