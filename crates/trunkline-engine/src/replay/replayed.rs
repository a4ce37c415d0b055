//! The result of a replay: the cluster as of the end of its log.

use std::fmt;
use std::path::{Path, PathBuf};

use trunkline_aio::clock;
use trunkline_aio::facade::atomic::AtomicBool;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::transam::Slru;
use trunkline_format::wal::{RelFileLocator, SegmentName, SegmentSize};
use trunkline_format::{BlockNo, ClusterState, ControlFile, Lsn, Oid, PageBytes, PageHeader};

use super::directory::Directory;
use super::error::ReplayError;
use super::fork_changes::{ForkChanges, PageSource};
use super::log_pass::{Step, pass};
use super::options::ReplayOptions;
use super::page_chains::ForkKey;
use super::page_redo::{PageRedoError, RecordPlace};
use super::record_reader::RecordReader;
use super::report::ReplayReport;
use super::scan::{Scanned, scan, shutdown_record_end};
use super::start::{ReplayStart, Situation, TimelineTarget};
use super::until::Until;
use crate::log_files::{History, LogFiles, LogFilesError, LogScan};

/// A cluster as of the end of its log.
pub struct Replay {
    pub(super) files: LogFiles,
    pub(super) found: Scanned,
    pub(super) checksums: bool,
    tablespaces: Vec<(Oid, PathBuf)>,
    scratch: PathBuf,
    /// Whether it was stopped before the end of the log.
    is_stopped: bool,
    /// Readers that no thread uses. Each keeps a piece of the log.
    pub(super) readers: Mutex<Vec<RecordReader>>,
    /// Whether the last pages that were built had to wait for the storage, so that the next ones will.
    pub(super) is_slow: AtomicBool,
}

/// The records that rebuild a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRecords {
    /// Where they begin, in order.
    pub places: Vec<Lsn>,
    /// Whether the first one is applied to the page of the file.
    pub requires_base: bool,
}

impl Replay {
    /// Replays the log of the data directory `root`. `None` if its files are complete as they are.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn run(
        root: &Path,
        control: &ControlFile,
        options: &ReplayOptions,
    ) -> Result<Option<Replay>, ReplayError> {
        let begun = clock::now();
        let directory = Directory::read(root)?;
        let has_archive = !options.wal.is_empty();
        let Some(start) = start_of(&directory, control, has_archive)? else {
            // The files are of one moment, and it may be another one.
            return if options.until == Until::End { Ok(None) } else { Err(ReplayError::NoPast) };
        };
        let files = match open_log(root, control, &start, options) {
            Ok(files) => files,
            // A clean copy without any log is complete as of its shutdown, and no archive was named.
            Err(ReplayError::Files(LogFilesError::NoSegments { .. }))
                if control.state == ClusterState::ShutDown
                    && directory.label.is_none()
                    && !has_archive
                    && options.until == Until::End =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut found = scan(root, control, &files, &start, options)?;
        let (pages, _) = found.chains.counts();
        found.report.pages = pages;
        found.report.spilled = found.chains.spilled_bytes();
        found.report.elapsed = clock::now().since(begun);
        let reached = files.history().timeline_at(found.report.last);
        found.report.other_timeline = (reached != start.timeline).then_some(reached);
        Ok(Some(Replay {
            files,
            found,
            checksums: control.checksums(),
            tablespaces: directory.tablespaces,
            scratch: options.scratch.clone(),
            is_stopped: options.until != Until::End,
            readers: Mutex::default(),
            is_slow: AtomicBool::new(false),
        }))
    }

    /// Where a replay would start, and the files of its log, which nothing is read of. `None` if the
    /// directory needs no replay.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn find_log(
        root: &Path,
        control: &ControlFile,
        options: &ReplayOptions,
    ) -> Result<Option<(Lsn, LogFiles)>, ReplayError> {
        let start = start_of(&Directory::read(root)?, control, !options.wal.is_empty())?;
        let Some(start) = start else { return Ok(None) };
        Ok(Some((start.redo, open_log(root, control, &start, options)?)))
    }

    /// Whether the files of a directory may lack changes that are in its log. Reads only small files.
    ///
    /// # Errors
    /// [`ReplayError`]: what the directory says about itself can't be read, or doesn't fit together.
    pub fn is_needed(root: &Path, control: &ControlFile) -> Result<bool, ReplayError> {
        Ok(start_of(&Directory::read(root)?, control, false)?.is_some())
    }

    /// The end of the record with which a cluster was shut down.
    ///
    /// # Errors
    /// [`ReplayError`]: the log doesn't have that record.
    pub(crate) fn end_of_shutdown(root: &Path, control: &ControlFile) -> Result<Lsn, ReplayError> {
        let folders = [root.join("pg_wal")];
        let timeline = control.checkpoint.timeline;
        let files = LogFiles::of_folders(&folders, Some(timeline), Some(control))?;
        shutdown_record_end(control, &files)
    }

    /// Whether a record has been added where the log ended: a server writes to it.
    pub(crate) fn log_has_grown(&self) -> bool {
        let ReplayReport { end, last, .. } = self.found.report;
        // A replay that was stopped on the way has records behind its end. No server writes to a compressed file.
        if self.is_stopped || self.files.plain_path(end).is_none() {
            return false;
        }
        // What a recycled file has there follows another record.
        let follows = RecordReader::default()
            .with(&self.files, end, |record| Ok(record.record.header().previous == last));
        matches!(follows, Ok(true))
    }

    /// What was replayed.
    pub fn report(&self) -> &ReplayReport {
        &self.found.report
    }

    /// The files of the log.
    pub fn log_files(&self) -> &LogFiles {
        &self.files
    }

    /// The control file with the counters as of the end of the log.
    pub fn control(&self, control: &ControlFile) -> ControlFile {
        ControlFile { checkpoint: self.found.checkpoint, ..*control }
    }

    /// The tablespaces in `tablespace_map`, and where they are.
    pub fn tablespaces(&self) -> &[(Oid, PathBuf)] {
        &self.tablespaces
    }

    /// The relation map of a database, if the log has replaced it. Database 0 is `global`.
    pub fn relation_map(&self, database: Oid, tablespace: Oid) -> Option<&[u8]> {
        self.found.maps.get(&(database, tablespace)).map(Vec::as_slice)
    }

    /// A page of the commit log or of multixacts, if the log has changed it. Not if the page must be in its file, but is
    /// not there.
    pub fn status_page(&self, file: Slru, page: u64) -> Option<Arc<PageBytes>> {
        self.found.statuses.get(file, page)
    }

    /// The file of a page of the commit log or of multixacts that must be there, but is not.
    pub(crate) fn missing_status_page(&self) -> Option<PathBuf> {
        self.found.statuses.first_missing()
    }

    /// The pages of the commit log and of multixacts that the log has changed: the path of the file, the offset in
    /// it, and the page.
    pub(crate) fn status_pages(&self) -> impl Iterator<Item = (PathBuf, u64, &PageBytes)> {
        let statuses = &self.found.statuses;
        statuses.all().map(|((file, page), bytes)| {
            let (path, offset) = statuses.place(file, page);
            (path, offset, &**bytes)
        })
    }

    /// Whether the log has replaced a relation map.
    pub(crate) fn has_relation_maps(&self) -> bool {
        !self.found.maps.is_empty()
    }

    /// The first block at or after `block` whose contents are not those of the file.
    pub(crate) fn next_changed(&self, key: &ForkKey, block: BlockNo) -> Option<BlockNo> {
        self.fork(key)?.next_changed(block)
    }

    /// Whether [`Replay::build`] reads the page of the file, if there is one.
    pub(crate) fn requires_base(&self, key: &ForkKey, block: BlockNo) -> bool {
        let Some(changes) = self.fork(key) else { return true };
        let chain = changes.chain(block);
        !changes.is_void(block) && chain.is_some_and(|chain| !chain.is_from_scratch)
    }

    /// The number of records from which [`Replay::build`] builds a page.
    pub(crate) fn record_count(&self, key: &ForkKey, block: BlockNo) -> u32 {
        self.fork(key).and_then(|changes| changes.chain(block)).map_or(0, |chain| chain.count)
    }

    /// The folder for pages that were built.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Relations that the log has removed.
    pub(crate) fn removed_relations(&self) -> impl Iterator<Item = &RelFileLocator> {
        self.found.chains.removed()
    }

    /// The forks about which the log says anything but that their relation was removed.
    pub fn changed_forks(&self) -> impl Iterator<Item = &ForkKey> {
        self.found.chains.forks()
    }

    /// A fork's length in blocks, if its file has `in_file` blocks, or doesn't exist. `None` if the
    /// fork doesn't exist.
    pub fn length(&self, key: &ForkKey, in_file: Option<BlockNo>) -> Option<BlockNo> {
        match self.fork(key) {
            Some(changes) => changes.length(in_file),
            None => in_file,
        }
    }

    /// Why a fork isn't as long as the log says: a record names a block that it can't have.
    pub fn impossible(
        &self,
        key: &ForkKey,
        in_file: Option<BlockNo>,
    ) -> Option<(BlockNo, PageRedoError)> {
        let changes = self.fork(key)?;
        let block = changes.impossible(in_file)?;
        let links = changes.chain(block).and_then(|chain| self.found.chains.links(chain).ok());
        let place = links.and_then(|links| links.first().map(|link| link.record));
        let place = RecordPlace::new(&self.files, place.unwrap_or_default());
        let blocks = changes.length(in_file).unwrap_or_default();
        Some((block, PageRedoError::ImpossibleBlock { place, block, blocks }))
    }

    /// The position that no page may be newer than: the end of the log. `None` if changes are known to
    /// be missing, because an incomplete log was allowed.
    pub fn newest(&self) -> Option<Lsn> {
        self.found.report.warning.is_none().then_some(self.found.report.end)
    }

    /// Checks that a page of a file is not newer than the log.
    ///
    /// # Errors
    /// [`PageRedoError::Newer`].
    pub fn check_position(&self, page: &PageBytes) -> Result<(), PageRedoError> {
        let found = PageHeader::parse(page).lsn;
        match self.newest() {
            Some(end) if found > end => Err(PageRedoError::Newer { found, end }),
            _ => Ok(()),
        }
    }

    /// Where the contents of a block are, if the file has it.
    pub(crate) fn source(&self, key: &ForkKey, block: BlockNo) -> PageSource {
        let all = PageSource::File { blocks: BlockNo::MAX };
        self.fork(key).map_or(all, |changes| changes.source(block))
    }

    /// The records from which [`Replay::build`] builds a page; none if the log doesn't change it.
    ///
    /// # Errors
    /// [`PageRedoError::Spilled`].
    pub fn records(&self, key: &ForkKey, block: BlockNo) -> Result<PageRecords, PageRedoError> {
        let Some(changes) = self.fork(key) else { return Ok(PageRecords::default()) };
        let Some(chain) = changes.chain(block) else { return Ok(PageRecords::default()) };
        let links = self.found.chains.links(chain).map_err(PageRedoError::Spilled)?;
        Ok(PageRecords {
            places: links.iter().map(|link| link.record).collect(),
            requires_base: !chain.is_from_scratch && !changes.is_void(block),
        })
    }

    /// Whether the log has created (true) or removed (false) a fork last. `None` if it has done neither.
    pub fn exists(&self, key: &ForkKey) -> Option<bool> {
        self.fork(key)?.exists()
    }

    /// What the log says about a fork, if anything.
    pub(crate) fn fork(&self, key: &ForkKey) -> Option<&ForkChanges> {
        self.found.chains.fork(key)
    }
}

/// Where a replay starts. `None` if none is needed.
fn start_of(
    directory: &Directory,
    control: &ControlFile,
    has_archive: bool,
) -> Result<Option<ReplayStart>, ReplayError> {
    let (label, has_signal) = (directory.label.as_ref(), directory.has_signal);
    Ok(Situation { control, label, has_signal, has_archive }.start()?)
}

/// Finds the files of the log.
fn open_log(
    root: &Path,
    control: &ControlFile,
    start: &ReplayStart,
    options: &ReplayOptions,
) -> Result<LogFiles, ReplayError> {
    let mut folders = options.wal.clone();
    let own = root.join("pg_wal");
    // A link leads to where the log is.
    let own = own.canonicalize().unwrap_or(own);
    // A server that recovers from a crash reads only pg_wal. From an archive, it reads that first.
    match start.consistency.allows_stopping() {
        true => folders.push(own),
        false => folders.insert(0, own),
    }
    let timeline = match start.target {
        TimelineTarget::Exactly(timeline) => timeline,
        TimelineTarget::NewestFrom(timeline) => History::newest(&folders, timeline)?,
        TimelineTarget::NewestThatFits(own) => newest_that_fits(&folders, own, control, start)?,
    };
    let files = LogFiles::of_folders(&folders, Some(timeline), Some(control));
    let files =
        files.map_err(|error| match (error, SegmentSize::new(control.wal_segment_size)) {
            (LogFilesError::NoSegments { text }, Some(size)) => {
                let name = SegmentName::of(start.timeline, size.segment_of(start.redo), size);
                let text = format!("{text}, but {name} is needed, which contains {}", start.redo);
                LogFilesError::NoSegments { text }
            }
            (error, _) => error,
        })?;
    check_history(files.history(), control, start)?;
    if let (TimelineTarget::NewestFrom(own), false) =
        (start.target, start.consistency.allows_stopping())
    {
        check_own_log(root, files.history(), control, own)?;
    }
    Ok(files)
}

/// The newest timeline that the files fit; `own` if there is no other.
fn newest_that_fits(
    folders: &[PathBuf],
    own: u32,
    control: &ControlFile,
    start: &ReplayStart,
) -> Result<u32, ReplayError> {
    for timeline in (own..=History::newest(folders, own)?).rev() {
        if check_history(&History::read(folders, timeline)?, control, start).is_ok() {
            return Ok(timeline);
        }
    }
    Ok(own)
}

/// What the files contain must be of the timeline that is followed, or of its ancestors. Mirrors the checks of
/// `InitWalRecovery` in PostgreSQL's `access/transam/xlogrecovery.c`.
fn check_history(
    history: &History,
    control: &ControlFile,
    start: &ReplayStart,
) -> Result<(), ReplayError> {
    let min = control.min_recovery_point;
    let of_min = (Lsn(min.0.saturating_sub(1)), min, control.min_recovery_timeline);
    for (at, place, timeline) in [(start.checkpoint, start.checkpoint, start.timeline), of_min] {
        let (expected, followed) = (history.timeline_at(at), history.timeline());
        if place > Lsn(0) && timeline != expected {
            return Err(ReplayError::Diverged { timeline, place, followed, expected });
        }
    }
    Ok(())
}

/// A crashed primary may contain everything that the log of its own timeline has. If it is to follow another one, it
/// must not have gone on after the switch.
fn check_own_log(
    root: &Path,
    history: &History,
    control: &ControlFile,
    timeline: u32,
) -> Result<(), ReplayError> {
    let Some(switch) = history.left_at(timeline) else { return Ok(()) };
    let own = match LogFiles::of_folders(&[root.join("pg_wal")], Some(timeline), Some(control)) {
        Ok(own) => own,
        Err(LogFilesError::NoSegments { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut end = None;
    pass(LogScan::new(&own), switch, &mut |record| {
        end = Some(record.end);
        Ok(Step::Stop)
    })?;
    let (followed, expected) = (history.timeline(), history.timeline_at(switch));
    match end {
        Some(place) => Err(ReplayError::Diverged { timeline, place, followed, expected }),
        None => Ok(()),
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Replay({} to {})", self.found.report.start, self.found.report.end)
    }
}
