//! **The measured table**: a table of a cluster, which is only read, or a generated one in a scratch
//! directory.
//!
//! With a server to compare with, it is a table of the server's own cluster, whose files don't change.
//!
//! A table is opened twice, buffered and direct. These are two clusters for the buffer pool, so a
//! page that one of them has read is not found by the other.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
use trunkline_aio::{OpenOptions, Residency, is_residency_known, residency};
use trunkline_engine::Engine;
use trunkline_engine::datadir::{DataDir, FileEntry};
use trunkline_engine::prewarm::Target;
use trunkline_engine::storage::{Layout, Relation, RelationLocator, Storage};
use trunkline_format::page::line_pointers;
use trunkline_format::{BlockNo, Fork};
use trunkline_sample::accounts::Accounts;

use crate::error::{MeasureError, expect_count, proceed};
use crate::server::GuideTable;
use crate::watcher::Watcher;

/// The relation of the scratch copy that checkpoints write.
pub(crate) const COPY: u32 = Accounts::RELATION + 1;

/// A table that is read.
#[derive(Debug)]
pub struct Table {
    name: String,
    buffered: Relation,
    direct: Relation,
    files: Vec<FileEntry>,
    blocks: BlockNo,
    /// Files that are dropped from the page cache and read into it together with the table: its
    /// index and other forks, which a server reads.
    beside: Vec<PathBuf>,
    /// The data directory, if no server may be started on it.
    dir: Option<DataDir>,
}

impl Table {
    /// A table of a cluster. `target` names its files.
    ///
    /// # Errors
    /// [`MeasureError::Storage`]: its length is unknown.
    pub fn of_cluster(
        engine: &Engine,
        dir: &DataDir,
        target: Target,
        name: String,
    ) -> Result<Self, MeasureError> {
        let storage = |direct| Storage::of_datadir(dir, engine.files(), direct);
        let relation = |direct| storage(direct).relation(target.locator, target.fork);
        let (buffered, direct) = (relation(false), relation(true));
        let blocks = buffered.blocks()?;
        let (files, beside) = (target.files, Vec::new());
        Ok(Self { name, buffered, direct, files, blocks, beside, dir: Some(dir.clone()) })
    }

    /// A table of a cluster of our own, on which a server will be started, but which won't change.
    ///
    /// # Errors
    /// [`MeasureError::Storage`]: its length is unknown. [`MeasureError::Count`]: it isn't as long
    /// as the server says.
    pub fn of_server(
        engine: &Engine,
        dir: &DataDir,
        target: Target,
        guide: &GuideTable,
    ) -> Result<Self, MeasureError> {
        let relfilenode = target.locator.relfilenode;
        let index = guide.index.rsplit('/').next().and_then(|number| number.parse().ok());
        let name = format!("{} of the tuning guide", guide.name());
        let mut table = Self::of_cluster(engine, dir, target, name)?;
        let unit = "blocks in its files";
        expect_count(guide.name(), unit, table.blocks.into(), guide.blocks.into())?;
        let others = dir.relation_files().files.into_iter().filter(|file| {
            (file.relfilenode == relfilenode && file.fork != Fork::Main)
                || Some(file.relfilenode) == index
        });
        table.beside = others.map(|file| file.path).collect();
        table.dir = None;
        // The server was stopped without a sync. Dirty pages can't be dropped from the page cache.
        for path in table.paths() {
            let synced = File::open(path).and_then(|file| file.sync_all());
            synced.map_err(|error| MeasureError::file(path, error))?;
        }
        Ok(table)
    }

    /// All files that a scan of the table may read.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().map(|file| file.path.as_path());
        files.chain(self.beside.iter().map(PathBuf::as_path))
    }

    /// A generated table.
    pub fn of_scratch(engine: &Engine, accounts: &Accounts) -> Self {
        let locator = locator(Accounts::RELATION);
        let open = |direct| Storage::new(&accounts.path, layout(), engine.files(), direct);
        let relation = |direct| open(direct).relation(locator, Fork::Main);
        Self {
            name: format!("pgbench_accounts, generated at scale {}", accounts.scale),
            buffered: relation(false),
            direct: relation(true),
            files: accounts.files.clone(),
            blocks: accounts.blocks(),
            beside: Vec::new(),
            dir: None,
        }
    }

    /// Display name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length.
    pub fn blocks(&self) -> BlockNo {
        self.blocks
    }

    /// Its first file, which is on the measured device.
    pub fn first_file(&self) -> Option<&Path> {
        self.files.first().map(|file| file.path.as_path())
    }

    pub(crate) fn files(&self) -> &[FileEntry] {
        &self.files
    }

    pub(crate) fn relation(&self, direct: bool) -> &Relation {
        if direct { &self.direct } else { &self.buffered }
    }

    pub(crate) fn target(&self) -> Target {
        let locator = self.buffered.locator();
        Target { locator, fork: Fork::Main, files: self.files.clone(), first: 0, end: self.blocks }
    }

    /// Rows per page, from a page in the middle of the table.
    pub(crate) fn rows_per_page(&self, engine: &Engine) -> Result<u32, MeasureError> {
        let mut backend = engine.session().map_err(|error| match error {
            trunkline_engine::EngineError::TooManySessions(error) => error.into(),
            error => MeasureError::Session(error),
        })?;
        let pin = backend.read(&self.buffered, self.blocks / 2)?;
        let page = backend.read_lock(pin.page())?;
        Ok((line_pointers(&page).count() as u32).max(1))
    }

    /// Checks that no server was started on the cluster.
    pub(crate) fn recheck(&self) -> Result<(), MeasureError> {
        self.dir.as_ref().map_or(Ok(()), |dir| Ok(dir.recheck()?))
    }

    /// Drops the files from the page cache. The kernel treats this as advice, which tmpfs ignores;
    /// see [`Table::cached`]. We change nothing in the files. The kernel keeps dirty pages, which are
    /// possible shortly after a server has stopped, so they are written back first.
    pub(crate) fn evict(&self, watcher: &dyn Watcher) -> Result<(), MeasureError> {
        for path in self.paths() {
            proceed(watcher)?;
            let fail = |error| MeasureError::file(path, error);
            let open = File::open(path).map_err(fail)?;
            open.sync_data().map_err(fail)?;
            rustix::fs::fadvise(&open, 0, None, Advice::DontNeed)
                .map_err(|error| fail(error.into()))?;
        }
        Ok(())
    }

    /// Reads the files into the page cache.
    pub(crate) fn warm(&self, watcher: &dyn Watcher) -> Result<(), MeasureError> {
        let mut buffer = vec![0; 1 << 20];
        for path in self.paths() {
            let fail = |error| MeasureError::file(path, error);
            let open = File::open(path).map_err(fail)?;
            let mut at = 0;
            while let count @ 1.. = open.read_at(&mut buffer, at).map_err(fail)? {
                at += count as u64;
                proceed(watcher)?;
            }
        }
        Ok(())
    }

    /// The part of the table that is in the page cache. It is unknown if a file is neither ours nor
    /// writable for us, because mincore(2) then reports all of it as cached.
    pub(crate) fn cached(&self, engine: &Engine) -> Result<Option<f64>, MeasureError> {
        let mut sum = Residency::default();
        for file in &self.files {
            let fail = |error| MeasureError::file(&file.path, error);
            let open = engine.aio().open(&file.path, OpenOptions::default()).map_err(fail)?;
            if !is_residency_known(&open).map_err(fail)? {
                return Ok(None);
            }
            sum.add(residency(&open).map_err(fail)?);
        }
        Ok(Some(sum.fraction()))
    }

    pub(crate) fn checksums(&self) -> bool {
        self.buffered.storage().checksums()
    }
}

/// How our own tables are laid out.
pub(crate) fn layout() -> Layout {
    Layout { checksums: true, tablespace_directory: String::new() }
}

/// A relation of a scratch table's directory.
pub(crate) fn locator(relfilenode: u32) -> RelationLocator {
    let (tablespace, database) = (Accounts::TABLESPACE, Accounts::DATABASE);
    RelationLocator { tablespace, database, relfilenode }
}
