//! Reads all forks of two directories through one buffer pool, and compares them page by page.
//!
//! Recovery sets no hint bits, so the pages should be equal byte by byte. What a record doesn't determine,
//! such as old bytes between the line pointers and the rows, may still differ; such pages are counted apart,
//! and are compared under the masks of `wal_consistency_checking`. Free space maps are left out, because
//! their changes aren't logged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use trunkline_engine::Engine;
use trunkline_engine::catalog::Catalog;
use trunkline_engine::datadir::{DataDir, FileEntry, OpenOptions};
use trunkline_engine::pool::{Backend, ReadError};
use trunkline_engine::replay::{ForkKey, PageRedoError, ReplayOptions};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{Relation, RelationLocator, Storage, StorageError};
use trunkline_format::wal::redo::first_difference;
use trunkline_format::wal::{RelFileLocator, ResourceManager};
use trunkline_format::{BlockNo, Fork, Oid, PageBytes, PageHeader};

/// Any error; the program can only print it.
type AnyError = Box<dyn std::error::Error>;

/// How many differences are kept as text.
const DIFFERENCES_MAX: usize = 20;

/// What was compared.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Pages that are equal byte by byte.
    pub(crate) equal: u64,
    /// Pages that are equal under the masks of their resource manager.
    pub(crate) equal_masked: u64,
    /// The first of these, with the first byte that differs besides the checksum.
    pub(crate) notes: Vec<String>,
    /// Pages that can't be built, by the manager for whose records there is no rule.
    pub(crate) not_replayed: BTreeMap<String, u64>,
    /// Pages that are newer than the log. A transaction that builds an index or rewrites a table writes pages
    /// before their records, and leaves them if it never ends.
    pub(crate) newer: u64,
    /// Forks of other lengths in databases that the server's catalog doesn't have. If a crash interrupts the cleanup
    /// after `CREATE DATABASE … STRATEGY FILE_COPY` has failed, the server copies the database again.
    pub(crate) of_no_database: u64,
    /// What else differs.
    pub(crate) differences: Vec<String>,
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pages equal, {} equal under masks", self.equal, self.equal_masked)?;
        for (manager, count) in &self.not_replayed {
            write!(f, ", {count} of {manager} not replayed")?;
        }
        if self.newer > 0 {
            write!(f, ", {} newer than the log", self.newer)?;
        }
        if self.of_no_database > 0 {
            write!(f, ", {} forks differ in databases that don't exist", self.of_no_database)?;
        }
        Ok(())
    }
}

/// Compares a crashed directory with one that a server has recovered and shut down. Pages that are built are
/// written to a file without a name in `scratch`.
pub(crate) fn compare(
    crashed: &Path,
    recovered: &Path,
    scratch: &Path,
) -> Result<Compared, AnyError> {
    let engine = Engine::open(&Settings::default())?;
    let replay = ReplayOptions::new(scratch.to_owned());
    let ours = DataDir::open_replayed(crashed, OpenOptions::default(), &replay)?;
    if ours.replay().is_none() {
        return Err(format!("{}: it was shut down, so there is no log", crashed.display()).into());
    }
    let theirs = DataDir::open(recovered, OpenOptions::default())?;
    let storage = |dir| Storage::of_datadir(dir, engine.files(), false);
    let (our_storage, their_storage) = (storage(&ours), storage(&theirs));
    let (our_lengths, their_lengths) = (lengths(&ours), lengths(&theirs));
    let mut compared = Compared::default();
    let mut session = engine.session()?;
    let catalog = Catalog::open(&theirs, &their_storage, &mut session)?;
    let databases: BTreeSet<Oid> = catalog.databases().iter().map(|row| row.oid).collect();
    let keys: BTreeSet<&ForkKey> = our_lengths.keys().chain(their_lengths.keys()).collect();
    for key in keys {
        let (RelFileLocator { tablespace, database, number: relfilenode }, fork) = *key;
        let locator = RelationLocator { tablespace, database, relfilenode };
        let ours = our_storage.relation(locator, fork);
        let theirs = their_storage.relation(locator, fork);
        let [our_length, their_length] =
            [&our_lengths, &their_lengths].map(|lengths| lengths.get(key).copied());
        if our_length != their_length && database != Oid(0) && !databases.contains(&database) {
            compared.of_no_database += 1;
        } else if our_length != their_length {
            compared.difference(format!(
                "{}: {our_length:?} blocks, expected {their_length:?}",
                theirs.path(0).display()
            ));
        }
        let both = our_length.unwrap_or_default().min(their_length.unwrap_or_default());
        for block in 0..both {
            compared.page(&mut session, (&ours, &theirs), block)?;
        }
    }
    Ok(compared)
}

/// The lengths of all forks in blocks, except for free space maps.
fn lengths(dir: &DataDir) -> BTreeMap<ForkKey, BlockNo> {
    let mut lengths = BTreeMap::new();
    for file in dir.relation_files().files.iter().filter(|file| file.fork != Fork::Fsm) {
        let FileEntry { tablespace, database, relfilenode: number, fork, .. } = *file;
        let key = (RelFileLocator { tablespace, database, number }, fork);
        *lengths.entry(key).or_default() += file.blocks();
    }
    lengths
}

impl Compared {
    fn difference(&mut self, text: String) {
        if self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(text);
        }
    }

    /// Compares one page of two relations: ours, and the server's.
    fn page(
        &mut self,
        session: &mut Backend,
        (ours, theirs): (&Relation, &Relation),
        block: BlockNo,
    ) -> Result<(), AnyError> {
        let theirs_page = read(session, theirs, block)?;
        let place = format!("{}, block {block}", theirs.path(0).display());
        let page = match read(session, ours, block) {
            Ok(page) => page,
            Err(error) => {
                match redo_error(&error) {
                    Some(PageRedoError::NotSupported { manager, .. }) => {
                        *self.not_replayed.entry(manager.to_string()).or_default() += 1;
                    }
                    Some(PageRedoError::Newer { .. }) => self.newer += 1,
                    _ => self.difference(format!("{place}: {error}")),
                }
                return Ok(());
            }
        };
        if page == theirs_page {
            self.equal += 1;
            return Ok(());
        }
        let positions = [&page, &theirs_page].map(|page| PageHeader::parse(page).lsn);
        let manager = manager_of(&theirs_page);
        let first = first_difference(&page, &theirs_page, manager, ours.fork(), block);
        match first {
            None if positions[0] == positions[1] => {
                self.equal_masked += 1;
                if self.notes.len() < DIFFERENCES_MAX {
                    // The checksum differs if anything does.
                    let mut others = (0..8).chain(10..page.len());
                    let byte = others.find(|&at| page[at] != theirs_page[at]).unwrap_or(8);
                    let (our_byte, their_byte) = (page[byte], theirs_page[byte]);
                    self.notes.push(format!(
                        "{place}: byte {byte} is {our_byte:#04x}, which is masked; expected {their_byte:#04x}"
                    ));
                }
            }
            first => {
                let [our_lsn, their_lsn] = positions;
                self.difference(format!(
                    "{place}: byte {first:?} differs; position {our_lsn}, expected {their_lsn}"
                ));
            }
        }
        Ok(())
    }
}

fn read(
    session: &mut Backend,
    relation: &Relation,
    block: BlockNo,
) -> Result<Box<PageBytes>, ReadError> {
    let pin = session.read(relation, block)?;
    Ok(Box::new(*session.read_lock(pin.page()).map_err(ReadError::from)?))
}

/// Why a page can't be built from the log.
fn redo_error(error: &ReadError) -> Option<&PageRedoError> {
    match error {
        ReadError::Storage(StorageError::Replay { source, .. }) => Some(&**source),
        _ => None,
    }
}

/// The manager whose mask fits to a page: B-trees have 16 bytes at its end, sequences 8, heaps none.
fn manager_of(page: &PageBytes) -> ResourceManager {
    use trunkline_format::wal::resource_manager::number;
    match PageHeader::parse(page).special {
        8176 => ResourceManager(number::BTREE),
        8184 => ResourceManager(number::SEQUENCE),
        _ => ResourceManager(number::HEAP),
    }
}
