//! **The scan**: one pass over the log, from where replay starts to where it ends.
//!
//! ```text
//!   record ─┬─ blocks ────────▶ chains of pages
//!           ├─ derived pages ─▶ chains of visibility maps
//!           ├─ effect ────────▶ files, statuses, counters, relation maps, prepared transactions
//!           └─ LSN ───────────▶ consistent? recovery target reached?
//! ```
//! No relation page is changed here. The time depends on the size of the log and the memory on the
//! number of records in the chains, not on the size of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use trunkline_aio::facade::hash::Map;
use trunkline_format::control::Checkpoint;
use trunkline_format::relmap::RelationMap;
use trunkline_format::transam::{Slru, XidStatus};
use trunkline_format::wal::{Effect, LogRecord, Outcome, PreparedTransaction, TransactionEnd};
use trunkline_format::{ControlFile, Lsn, Oid, PgVersion};

use super::chain_builder::{ChainBuilder, ChainStep};
use super::counters::Counters;
use super::error::ReplayError;
use super::log_pass::{PassEnd, Step, at, pass};
use super::options::ReplayOptions;
use super::page_chains::PageChains;
use super::page_effect::changed_pages;
use super::report::ReplayReport;
use super::start::{Consistency, ReplayStart};
use super::status_pages::StatusPages;
use super::until::{Side, Until};
use crate::log_files::{LogFiles, LogScan};
use crate::new_cluster::MARKER;
use crate::small_file;

/// What the scan has found.
pub(super) struct Scanned {
    pub(super) chains: PageChains,
    pub(super) statuses: StatusPages,
    /// The counters at the end.
    pub(super) checkpoint: Checkpoint,
    /// The next XID at the checkpoint where the scan starts, with its epoch.
    pub(super) first_next_xid: u64,
    /// Relation maps that were replaced, by database and tablespace.
    pub(super) maps: Map<(Oid, Oid), Vec<u8>>,
    /// Transactions that were prepared and have not ended, by number.
    pub(super) prepared: BTreeMap<u32, PreparedTransaction>,
    pub(super) hints_are_logged: bool,
    /// What is known of it during the scan: not yet the pages, nor how long it took.
    pub(super) report: ReplayReport,
}

/// Scans the log.
pub(super) fn scan(
    root: &Path,
    control: &ControlFile,
    files: &LogFiles,
    start: &ReplayStart,
    options: &ReplayOptions,
) -> Result<Scanned, ReplayError> {
    if options.until != Until::End && !start.consistency.allows_stopping() {
        return Err(ReplayError::NoPast);
    }
    let checkpoint = read_checkpoint(control.version, files, start)?;
    let mut scan = Scan {
        files,
        start,
        options,
        version: control.version,
        is_ours: small_file::exists(&root.join(MARKER))?,
        is_consistent: false,
        dropped: BTreeSet::new(),
        backup_has_ended: false,
        stopped: None,
        found: Scanned {
            chains: PageChains::default(),
            statuses: StatusPages::new(root, control.version, checkpoint),
            checkpoint,
            first_next_xid: checkpoint.next_xid,
            maps: Map::default(),
            prepared: BTreeMap::new(),
            hints_are_logged: control.checksums() || control.wal_log_hints,
            report: ReplayReport {
                lacks_images: !checkpoint.full_page_writes,
                ..ReplayReport::from_start(start.redo)
            },
        },
        chains: ChainBuilder::new(options)?,
        counters: Counters::new(
            Checkpoint { location: start.checkpoint, ..checkpoint },
            control.version,
        ),
    };
    let log = match &options.io {
        None => LogScan::new(files),
        Some(settings) => LogScan::ahead(files, settings).map_err(ReplayError::Instance)?,
    };
    let end = pass(log, start.redo, &mut |record| scan.record(record))?;
    scan.finish(end)
}

/// Reads the checkpoint record, which must name the redo position.
fn read_checkpoint(
    version: PgVersion,
    files: &LogFiles,
    start: &ReplayStart,
) -> Result<Checkpoint, ReplayError> {
    let ReplayStart { redo, checkpoint: place, .. } = *start;
    // Only the first page of a segment says which cluster it is of.
    files.check_segment(redo)?;
    files.check_segment(place)?;
    let found = at(files, place, |record| {
        if record.version != version {
            return Err(format!("it is of version {}", record.version));
        }
        match Effect::of(&record.record, record.version) {
            Ok(Some(Effect::Checkpoint { checkpoint, .. })) if checkpoint.redo == redo => {
                Ok(*checkpoint)
            }
            Ok(Some(Effect::Checkpoint { checkpoint, .. })) => {
                Err(format!("it has the redo position {}, expected {redo}", checkpoint.redo))
            }
            _ => Err("another record is there".to_owned()),
        }
    })?;
    let segment = files.name(place);
    let found = found.map_err(|found| ReplayError::Record {
        place,
        segment,
        expected: "a checkpoint",
        found,
    })?;
    // Since 17, a checkpoint that began before its record has a record of its beginning.
    let (place, segment) = (redo, files.name(redo));
    at(files, place, |record| {
        let effect = Effect::of(&record.record, record.version);
        let is_start =
            matches!(effect, Ok(Some(Effect::CheckpointRedo | Effect::Checkpoint { .. })));
        let must_be = redo < start.checkpoint && record.version >= PgVersion::V17;
        if is_start || !must_be { Ok(()) } else { Err("another record is there".to_owned()) }
    })?
    .map_err(|found| {
        let expected = "the beginning of a checkpoint";
        ReplayError::Record { place, segment, expected, found }
    })?;
    Ok(found)
}

/// The end of the shutdown checkpoint that the control file names.
pub(super) fn shutdown_record_end(
    control: &ControlFile,
    files: &LogFiles,
) -> Result<Lsn, ReplayError> {
    let place = control.checkpoint.location;
    let found = at(files, place, |record| match Effect::of(&record.record, record.version) {
        Ok(Some(Effect::Checkpoint { is_shutdown: true, .. })) => Ok(record.end),
        _ => Err("another record is there".to_owned()),
    })?;
    found.map_err(|found| ReplayError::Record {
        place,
        segment: files.name(place),
        expected: "a shutdown checkpoint",
        found,
    })
}

struct Scan<'s> {
    files: &'s LogFiles,
    start: &'s ReplayStart,
    options: &'s ReplayOptions,
    version: PgVersion,
    /// Everything but the chains, which are added at the end.
    found: Scanned,
    chains: ChainBuilder,
    counters: Counters,
    /// Whether [`crate::new_cluster`] has made the cluster.
    is_ours: bool,
    is_consistent: bool,
    /// Databases and tablespaces whose files the log has removed.
    dropped: BTreeSet<(Oid, Oid)>,
    backup_has_ended: bool,
    /// Where `--until` has stopped the scan.
    stopped: Option<Lsn>,
}

impl Scan<'_> {
    fn record(&mut self, record: &LogRecord<'_>) -> Result<Step, ReplayError> {
        self.check_timeline(record)?;
        let effect = Effect::of(&record.record, record.version).map_err(|source| {
            let (place, segment) = (record.start, self.files.name(record.start));
            ReplayError::Effect { place, segment, source }
        })?;
        let side = self.options.until.stops_at(record.start, effect.as_ref());
        if side == Some(Side::Before) {
            self.stopped = Some(record.start);
            return Ok(Step::Stop);
        }
        self.counters.use_xid(record.record.header().xid);
        self.blocks(record);
        if let Some(effect) = effect {
            self.effect(record, effect)?;
        }
        (self.found.report.last, self.found.report.end) = (record.start, record.end);
        self.found.report.records += 1;
        self.end_step()?;
        self.check_consistency();
        if side == Some(Side::Behind) {
            self.stopped = Some(record.end);
            return Ok(Step::Stop);
        }
        Ok(Step::Next)
    }

    /// Lets the chains check their memory.
    fn end_step(&mut self) -> Result<(), ReplayError> {
        let read = self.found.report.end.0.saturating_sub(self.start.redo.0);
        self.chains.end_step(read, self.found.statuses.bytes())
    }

    /// The page of a record must have been written on the timeline that the history has there. The page on which a
    /// timeline begins has the number of the one before. There, the name of the file counts: behind the end of its
    /// timeline, it has records of an abandoned branch.
    fn check_timeline(&self, record: &LogRecord<'_>) -> Result<(), ReplayError> {
        let history = self.files.history();
        let page = Lsn(record.start.0 - record.start.0 % 8192);
        let (first, last) = (history.timeline_at(page), history.timeline_at(record.end));
        let found = record.timeline;
        let is_of_file = || {
            let left_at = history.left_at(self.files.name(record.start).timeline());
            left_at.is_none_or(|end| record.end <= end)
        };
        let fits = (first..=last).contains(&found) && history.contains(found);
        if fits && (!history.has_ancestors() || is_of_file()) {
            return Ok(());
        }
        let (place, segment) = (record.start, self.files.name(record.start));
        Err(ReplayError::Timeline { place, segment, found, expected: last })
    }

    fn check_consistency(&mut self) {
        self.is_consistent = match self.start.consistency {
            Consistency::EndOfLog { .. } => false,
            Consistency::At(place) => self.found.report.end >= place,
            Consistency::BackupEnd { at_least, .. } => {
                self.backup_has_ended && self.found.report.end >= at_least
            }
        };
        if self.is_consistent {
            self.found.report.consistent.get_or_insert(self.found.report.end);
        }
    }

    /// Adds the record to the chains of the pages that it changes.
    fn blocks(&mut self, record: &LogRecord<'_>) {
        for (key, block, link, is_from_scratch) in changed_pages(record) {
            self.chains.add(ChainStep::Add { key, block, link, is_from_scratch });
        }
    }

    fn effect(&mut self, record: &LogRecord<'_>, effect: Effect<'_>) -> Result<(), ReplayError> {
        let chains = &mut self.chains;
        let statuses = &mut self.found.statuses;
        match effect {
            Effect::Checkpoint { checkpoint, is_shutdown } => {
                self.counters.pass(&checkpoint, is_shutdown);
            }
            Effect::NextOid(next) => self.counters.set_next_oid(next),
            Effect::BackupEnd { start } => self.end_backup(start),
            Effect::Parameters(parameters) => {
                self.found.hints_are_logged |= parameters.wal_log_hints;
            }
            Effect::FullPageWrites(is_on) => self.found.report.lacks_images |= !is_on,
            Effect::TransactionEnd(end) => self.end_transaction(&end)?,
            Effect::Prepare(prepared) => {
                let xids = prepared.subxids.iter().copied();
                xids.for_each(|xid| self.counters.use_xid(xid));
                self.found.prepared.insert(prepared.xid, *prepared);
            }
            Effect::Create { relation, fork } => chains.add(ChainStep::Create((relation, fork))),
            Effect::Truncate(truncation) => chains.add(ChainStep::Truncate(truncation)),
            Effect::ZeroCommitLog { page } => statuses.zero(Slru::CommitLog, page),
            Effect::ZeroOffsets { page } => statuses.zero(Slru::Offsets, page),
            Effect::ZeroMembers { page } => statuses.zero(Slru::Members, page),
            Effect::TruncateCommitLog { oldest_xid, database } => {
                self.counters.set_oldest_xid(oldest_xid, database);
            }
            Effect::TruncateMultixacts { database, oldest } => {
                self.counters.set_oldest_multi(oldest, database);
            }
            Effect::CreateMultixact(multixact) => {
                statuses.create(&multixact)?;
                self.counters.use_multixact(&multixact);
            }
            Effect::CopyDatabase { to: (tablespace, database), .. } => {
                // In a crashed directory the copy is complete, since the record comes last. It may have replaced files
                // that the log has removed, but not after a checkpoint of a primary.
                let is_removed = self.dropped.contains(&(database, tablespace));
                if is_removed || self.start.consistency.allows_stopping() {
                    return Err(ReplayError::CopiedDatabase { place: record.start, database });
                }
            }
            Effect::DropDatabase { database, tablespaces } => {
                for tablespace in tablespaces {
                    chains.add(ChainStep::RemoveDatabase { tablespace, database });
                    self.found.maps.remove(&(database, tablespace));
                    self.dropped.insert((database, tablespace));
                }
            }
            Effect::ReplaceRelationMap { database, tablespace, bytes } => {
                if let Err(source) = RelationMap::parse(bytes, self.version) {
                    let (place, segment) = (record.start, self.files.name(record.start));
                    return Err(ReplayError::RelationMap { place, segment, source });
                }
                self.found.maps.insert((database, tablespace), bytes.to_vec());
            }
            // Directories and links are there if the cluster needs them at the end.
            Effect::CreateDatabase { .. }
            | Effect::CreateTablespace { .. }
            | Effect::DropTablespace { .. }
            | Effect::CheckpointRedo
            | Effect::RestorePoint { .. }
            | Effect::EndOfRecovery { .. }
            | Effect::RunningTransactions { .. } => {}
        }
        Ok(())
    }

    fn end_backup(&mut self, start: Lsn) {
        if let Consistency::BackupEnd { start: expected, .. } = self.start.consistency
            && start == expected
        {
            self.backup_has_ended = true;
        }
    }

    fn end_transaction(&mut self, end: &TransactionEnd) -> Result<(), ReplayError> {
        let status = match end.outcome {
            Outcome::Committed => XidStatus::Committed,
            Outcome::Aborted => XidStatus::Aborted,
        };
        for &xid in end.subxids.iter().chain([&end.xid]) {
            // Transactions without changes have no number.
            if xid != 0 {
                self.found.statuses.set_status(xid, status)?;
                self.counters.use_xid(xid);
            }
        }
        self.found.prepared.remove(&end.xid);
        for relation in &end.dropped {
            self.chains.add(ChainStep::Remove(*relation));
            // A record may name millions.
            self.end_step()?;
        }
        Ok(())
    }

    /// Decides whether the log may end where it does.
    fn finish(mut self, end: Option<PassEnd>) -> Result<Scanned, ReplayError> {
        (self.found.chains, self.found.report.memory) = self.chains.finish()?;
        self.found.checkpoint = self.counters.get();
        // A backup has images of all pages that changed meanwhile, whatever the setting was.
        self.found.report.lacks_images &= !self.start.consistency.allows_stopping();
        if let Some(place) = self.stopped {
            let until = self.options.until.to_string();
            if !self.is_consistent {
                let consistent = self.needed();
                return Err(ReplayError::TooEarly { until, place, consistent });
            }
            self.found.report.end = place;
            self.found.report.reason = until;
            return Ok(self.found);
        }
        let Some(end) = end else { return Ok(self.found) };
        self.found.report.reason.clone_from(&end.reason);
        self.found.report.is_usual_end = end.is_usual;
        let is_consistent = match self.start.consistency {
            Consistency::EndOfLog { checkpoint, at_least } => {
                self.found.report.end > checkpoint && self.found.report.end >= at_least
            }
            _ => self.is_consistent,
        };
        if is_consistent {
            self.found.report.consistent.get_or_insert(self.found.report.end);
        }
        // Our own log can go on after such a gap, and nothing after it was acknowledged.
        let is_crash = matches!(self.start.consistency, Consistency::EndOfLog { .. });
        let is_gap = end.is_gap && !(self.is_ours && is_crash && end.may_be_flushes);
        if !is_consistent || is_gap {
            let needed =
                if is_consistent { "and is not complete".to_owned() } else { self.needed() };
            let PassEnd { end, segment, reason, .. } = end;
            let error = ReplayError::Incomplete { end, segment, needed, reason };
            if !self.options.allow_incomplete {
                return Err(error);
            }
            self.found.report.warning = Some(error.to_string());
        }
        if self.options.until != Until::End {
            let until = self.options.until.to_string();
            return Err(ReplayError::NotReached { until, end: self.found.report.end });
        }
        Ok(self.found)
    }

    /// What the log must reach, for a message.
    fn needed(&self) -> String {
        match self.start.consistency {
            Consistency::EndOfLog { checkpoint, at_least } => {
                let names = "which global/pg_control names";
                match self.found.report.end > checkpoint {
                    true => format!("before {at_least}, {names}"),
                    false => format!("before the end of the record at {checkpoint}, {names}"),
                }
            }
            Consistency::At(place) => format!("before {place}, where the files are consistent"),
            Consistency::BackupEnd { start, .. } => {
                format!("before the record that the backup which began at {start} has ended")
            }
        }
    }
}
