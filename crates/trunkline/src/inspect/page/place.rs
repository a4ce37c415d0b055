//! **The data directory of a page**: which cluster and relation a file belongs to, so that its page can
//! be built from the log.
//!
//! ```text
//!   name, numbers ─▶ the directory is open already       ╮
//!   path ──────────▶ -D, or the directory above the file ├─▶ relation, fork, replay
//!                    └ neither: a file by itself         ╯
//! ```
//! A path works for any file, also for one of a directory that can't be opened: then the file is shown as
//! it lies. Only if the log can't be replayed, that is an error, because the page could be one that no
//! server would ever show.

use std::path::{Path, PathBuf};

use trunkline_engine::catalog::RelationPath;
use trunkline_engine::datadir::{DataDir, DataDirError, OpenOptions, place_of, read_control_file};
use trunkline_engine::replay::ForkKey;
use trunkline_engine::storage::{PageOrigin, Relation, RelationLocator, StorageError};
use trunkline_format::wal::RelFileLocator;
use trunkline_format::{BlockNo, RelationFile};

use super::super::relation_file::NamedFile;
use crate::catalog_session;
use crate::data_dir::{self, storage_failure};
use crate::exit::{Failure, message};
use crate::options::Context;
use crate::replay_options::NO_REPLAY;

/// What to do if the page of the file is wanted.
const SEE_FILE: &str = "use --no-replay to see the page of the file";

/// The cluster and the relation that a file belongs to.
pub(super) struct Place {
    pub(super) root: PathBuf,
    pub(super) key: ForkKey,
    /// `None` if the directory isn't opened, or can't be.
    pub(super) dir: Option<DataDir>,
    /// Why the log can't be replayed, for a history, which can be listed nevertheless.
    pub(super) failure: Option<Failure>,
}

/// What opening the directory of a path has come to.
enum Opened {
    Dir(Box<DataDir>),
    AsItLies,
    NotReplayed(Failure),
}

impl Place {
    /// The place of a file. `None` if it is not a relation file of a data directory.
    pub(super) fn find(
        context: &Context<'_>,
        found: NamedFile,
        for_history: bool,
    ) -> Result<Option<Place>, Failure> {
        let name = found.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let file = RelationFile::parse(name);
        let place = match (file, found.dir) {
            (Some(file), Some(dir)) => Self::in_directory(dir, &found.path, file),
            (Some(file), None) => Self::of_path(context, &found.path, file, for_history)?,
            (None, _) => None,
        };
        let given = context.global.replay.given_besides(&[NO_REPLAY]);
        match (place, given) {
            (None, Some(option)) => Err(Failure::usage(format_args!(
                "{option} has no effect on \"{}\", which is not a relation file of a data directory",
                found.path.display()
            ))),
            (place, _) => Ok(place),
        }
    }

    fn in_directory(dir: DataDir, path: &Path, file: RelationFile) -> Option<Place> {
        let locator = RelationPath::of(&dir, path)?.locator()?;
        let RelationLocator { tablespace, database, relfilenode: number } = locator;
        let key = (RelFileLocator { tablespace, database, number }, file.fork);
        Some(Place { root: dir.path().to_owned(), key, dir: Some(dir), failure: None })
    }

    fn of_path(
        context: &Context<'_>,
        path: &Path,
        file: RelationFile,
        for_history: bool,
    ) -> Result<Option<Place>, Failure> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let Some((root, place)) = directory_of(context, folder) else { return Ok(None) };
        let (tablespace, database) = place;
        let locator = RelFileLocator { tablespace, database, number: file.relfilenode };
        let key = (locator, file.fork);
        let (dir, failure) = match open(context, &root, for_history)? {
            Opened::Dir(dir) => (Some(*dir), None),
            Opened::AsItLies => (None, None),
            Opened::NotReplayed(failure) if for_history => (None, Some(failure)),
            Opened::NotReplayed(failure) => return Err(failure.with_hint_if_none(SEE_FILE)),
        };
        Ok(Some(Place { root, key, dir, failure }))
    }

    /// The relation, if pages may have to be built from the log.
    fn replayed_relation(&self, context: &Context<'_>) -> Result<Option<Relation>, Failure> {
        let Some(dir) = self.dir.as_ref().filter(|dir| dir.replay().is_some()) else {
            return Ok(None);
        };
        let (RelFileLocator { tablespace, database, number: relfilenode }, fork) = self.key;
        let locator = RelationLocator { tablespace, database, relfilenode };
        let storage = catalog_session::storage(dir, &context.settings)?;
        Ok(Some(storage.relation(locator, fork)))
    }

    /// Where the contents of a block come from. `None` if no log is replayed.
    pub(super) fn origin(
        &self,
        context: &Context<'_>,
        block: BlockNo,
    ) -> Result<Option<PageOrigin>, Failure> {
        let Some(relation) = self.replayed_relation(context)? else { return Ok(None) };
        relation.page_origin(block).map(Some).map_err(|error| self.failure_of(error, &relation))
    }

    /// Names the fork that the page comes from, such as the `_init` fork of an unlogged relation.
    pub(super) fn of_origin(self, context: &Context<'_>) -> Result<Place, Failure> {
        let Some(relation) = self.replayed_relation(context)? else { return Ok(self) };
        let fork = match relation.replayed_fork() {
            // The map of an unlogged relation. It has no page, but may have been created or removed.
            Err(StorageError::SegmentMissing { .. }) => return Ok(self),
            fork => fork.map_err(|error| self.failure_of(error, &relation))?,
        };
        Ok(Place { key: (self.key.0, fork), ..self })
    }

    fn failure_of(&self, error: StorageError, relation: &Relation) -> Failure {
        let Some(dir) = &self.dir else { return Failure::cannot_run(error) };
        let is_removed = dir.replay().is_some_and(|it| it.exists(&self.key) == Some(false));
        match error {
            StorageError::SegmentMissing { .. } if is_removed => {
                let path = relation.path(0);
                let text = format!("\"{}\" is removed by the log", path.display());
                let hint = format!("{SEE_FILE}, and --history to see the record");
                Failure::usage(text).with_hint(hint)
            }
            StorageError::BeyondEnd { location, blocks } => {
                let (block, path) = (location.block().unwrap_or_default(), relation.path(0));
                let plural = if blocks == 1 { "" } else { "s" };
                Failure::usage(format_args!(
                    "block {block} is past the end of \"{}\": the relation has {blocks} \
                     block{plural} at the end of the log",
                    path.display()
                ))
            }
            error @ StorageError::Replay { .. } => {
                storage_failure(error, dir).with_hint_if_none(SEE_FILE)
            }
            error => storage_failure(error, dir),
        }
    }
}

/// The data directory that a folder of relation files belongs to: the one that was given, or one above it.
fn directory_of(
    context: &Context<'_>,
    folder: &Path,
) -> Option<(PathBuf, (trunkline_format::Oid, trunkline_format::Oid))> {
    let above = folder.canonicalize().unwrap_or_default();
    let given = context.global.pgdata().map(PathBuf::as_path);
    given.into_iter().chain(above.ancestors().skip(1)).find_map(|root| {
        let control = read_control_file(&root.join("global/pg_control")).ok()?;
        let place = place_of(root, &control, &context.global.tablespace_mapping, folder)?;
        Some((root.to_owned(), place))
    })
}

/// Opens the directory of a path, and prints what was replayed.
fn open(context: &Context<'_>, root: &Path, for_history: bool) -> Result<Opened, Failure> {
    if data_dir::as_it_lies(context.global, &[NO_REPLAY])? {
        return Ok(Opened::AsItLies);
    }
    let options = data_dir::replay_options(context, root)?;
    let needs_replay = data_dir::needs_replay(root);
    let dir = match DataDir::open_replayed(root, OpenOptions::default(), &options) {
        Ok(dir) => dir,
        Err(error @ DataDirError::Replay { .. }) => return Ok(Opened::NotReplayed(error.into())),
        // Without a replay, the file is what it would be shown as anyway.
        Err(_) if !needs_replay => return Ok(Opened::AsItLies),
        Err(error) => {
            message("warning", format_args!("{error}; the file is shown as it lies"));
            return Ok(Opened::AsItLies);
        }
    };
    let is_given = context.global.pgdata().is_some_and(|given| given == root);
    let mapping = if is_given { context.global.tablespace_mapping.as_slice() } else { &[] };
    let dir = dir.with_tablespaces(mapping)?;
    if dir.replay().is_some() {
        data_dir::report(&dir);
    } else if !for_history {
        data_dir::warn_of_archive(context.global);
    }
    Ok(Opened::Dir(Box::new(dir)))
}
