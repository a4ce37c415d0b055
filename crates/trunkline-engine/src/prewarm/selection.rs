//! Selects the blocks to prewarm: converts the names given by the user to block ranges.
//!
//! The user may name a relation, such as `5/16384` or `1663/5/16384`, or a file, such as
//! `base/5/16384.1`. A relation name selects one fork, `main` by default, and the user can restrict
//! it to a range of blocks, as with `pg_prewarm`. A file name selects the blocks in that file. If
//! no names are given, all forks of all relations are selected.
//!
//! We determine the block ranges from the directory listing. If a segment in the middle is missing,
//! we still select the segments before and after it. If the directory is read through its log, the
//! listing depends on how the blocks will be read ([`View`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use thiserror::Error;
use trunkline_format::{BlockNo, Fork, Oid, RelationFile};

use super::target::Target;
use crate::datadir::{DataDir, FileEntry, FileList, Problem};
use crate::storage::RelationLocator;

/// Which blocks a relation has, if the directory is read through its log. If not, all views are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    /// Those that it has at the end of the log. They can be read through the pool.
    #[default]
    EndOfLog,
    /// Those of them that are in its files. Only these can be read into the kernel's cache.
    InFiles,
    /// All that are in its files, even if the log removes them.
    OnDisk,
}

/// The user's request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The files to choose from.
    pub view: View,
    /// Relations and files. If there are none, everything is selected.
    pub names: Vec<PathBuf>,
    /// If no names are given, selects only this database's files.
    pub database: Option<Oid>,
    /// The fork. `None` means the main fork for named relations, or all forks if no names are
    /// given.
    pub fork: Option<Fork>,
    /// The first block of each relation; 0 by default.
    pub first: Option<i64>,
    /// The last block to load of each relation, inclusive. By default, that's the last block of the
    /// relation.
    pub last: Option<i64>,
}

/// The targets selected from a directory.
#[derive(Debug, Default)]
pub struct Selection {
    /// In the order of the listing.
    pub targets: Vec<Target>,
    /// Problems with the targets' files, or with all files if everything is selected.
    pub problems: Vec<Problem>,
}

/// Why nothing could be selected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// The name is neither a relation nor a relation file.
    #[error("\"{}\" is not a relation file of the data directory", name.display())]
    NoFile {
        /// The name.
        name: PathBuf,
    },
    /// The directory has no files for this relation.
    #[error("the data directory has no relation {name}")]
    NoRelation {
        /// The name.
        name: String,
    },
    /// Several tablespaces have a relation of this name.
    #[error(
        "relation {name} is in several tablespaces: {}",
        tablespaces.iter().map(Oid::to_string).collect::<Vec<_>>().join(", ")
    )]
    Ambiguous {
        /// The name.
        name: String,
        /// The tablespaces.
        tablespaces: Vec<Oid>,
    },
    /// The relation has no such fork.
    #[error("fork \"{fork}\" does not exist for relation {locator}")]
    NoFork {
        /// The relation.
        locator: RelationLocator,
        /// The fork.
        fork: Fork,
    },
    /// The file belongs to a different fork than the requested one.
    #[error(
        "\"{}\" belongs to fork \"{found}\", but fork \"{wanted}\" was requested",
        name.display()
    )]
    OtherFork {
        /// The name.
        name: PathBuf,
        /// The fork of the file.
        found: Fork,
        /// The requested fork.
        wanted: Fork,
    },
    /// The first or last block is out of range.
    #[error("{which} block number must be between 0 and {most} for relation {locator}")]
    Range {
        /// The relation.
        locator: RelationLocator,
        /// `starting` or `ending`.
        which: &'static str,
        /// The number of the last block; -1 if there is none.
        most: i64,
    },
    /// Block numbers were given, but no relation to apply them to.
    #[error("block numbers require the name of a relation")]
    RangeOfWhat,
}

impl SelectError {
    /// Advice for the user, in lower case and without a full stop.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            SelectError::NoFile { .. } | SelectError::NoRelation { .. } => Some(
                "name a relation such as 5/16384 (database, file number), or a file such as \
                 base/5/16384, relative to -D",
            ),
            SelectError::Ambiguous { .. } => Some("put the tablespace before it: 1663/5/16384"),
            SelectError::RangeOfWhat => Some("name relations, such as 5/16384"),
            _ => None,
        }
    }
}

/// Selects blocks from the files of a directory.
///
/// # Errors
/// See [`SelectError`]. The error is for the first name or block number that is not valid.
pub fn select(dir: &DataDir, choice: &Choice) -> Result<Selection, SelectError> {
    let list = list(dir, choice.view);
    let has_range = choice.first.is_some() || choice.last.is_some();
    if choice.names.is_empty() {
        if has_range {
            return Err(SelectError::RangeOfWhat);
        }
        let wanted = |file: &FileEntry| {
            choice.fork.is_none_or(|fork| file.fork == fork)
                && choice.database.is_none_or(|database| file.database == database)
        };
        let chosen = (0..list.files.len()).filter(|&at| wanted(&list.files[at])).collect();
        let targets = targets(&list.files, &chosen);
        let mut problems = list.problems;
        if choice.database.is_some() {
            problems.retain(|problem| is_about(problem, &targets));
        }
        return Ok(Selection { targets, problems });
    }
    let mut chosen = BTreeSet::new();
    for name in &choice.names {
        match parse_relation(name) {
            Some(parts) => chosen.extend(relation(&list, name, &parts, choice.fork)?),
            None if has_range => return Err(SelectError::RangeOfWhat),
            None => _ = chosen.insert(file(&list, dir.path(), name, choice.fork)?),
        }
    }
    let mut targets = targets(&list.files, &chosen);
    targets.iter_mut().try_for_each(|target| narrow(target, choice))?;
    let problems = list.problems.into_iter().filter(|problem| is_about(problem, &targets));
    Ok(Selection { problems: problems.collect(), targets })
}

/// Lists the files that have blocks to select.
fn list(dir: &DataDir, view: View) -> FileList {
    if dir.replay().is_none() || view == View::OnDisk {
        return dir.files_on_disk();
    }
    let mut list = dir.relation_files();
    if view == View::InFiles {
        let on_disk = dir.files_on_disk().files.into_iter().map(|file| (file.path, file.bytes));
        let on_disk: BTreeMap<PathBuf, u64> = on_disk.collect();
        list.files.retain_mut(|file| {
            let in_file = on_disk.get(&file.path);
            file.bytes = in_file.map_or(0, |&bytes| bytes.min(file.bytes));
            in_file.is_some()
        });
    }
    list
}

/// Parses the numbers in `5/16384` or `1663/5/16384`. Returns `None` if the name must be a path.
fn parse_relation(name: &Path) -> Option<Vec<u32>> {
    let parts: Option<Vec<u32>> = name
        .to_str()?
        .split('/')
        .map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?)
        .collect();
    parts.filter(|parts| matches!(parts.len(), 2 | 3))
}

/// Positions of a relation's files in the listing.
fn relation(
    list: &FileList,
    name: &Path,
    parts: &[u32],
    fork: Option<Fork>,
) -> Result<Vec<usize>, SelectError> {
    let named = || name.display().to_string();
    let (tablespace, database, number) = match *parts {
        [tablespace, database, number] => (Some(Oid(tablespace)), Oid(database), number),
        [database, number] => (None, Oid(database), number),
        _ => return Err(SelectError::NoRelation { name: named() }),
    };
    let found = list.files.iter().enumerate().filter(|(_, file)| {
        file.database == database
            && file.relfilenode == number
            && tablespace.is_none_or(|tablespace| file.tablespace == tablespace)
    });
    let found: Vec<(usize, &FileEntry)> = found.collect();
    let Some((_, first)) = found.first() else {
        return Err(SelectError::NoRelation { name: named() });
    };
    let tablespaces: BTreeSet<Oid> = found.iter().map(|(_, file)| file.tablespace).collect();
    if tablespaces.len() > 1 {
        let tablespaces = tablespaces.into_iter().collect();
        return Err(SelectError::Ambiguous { name: named(), tablespaces });
    }
    let locator = locator_of(first);
    let fork = fork.unwrap_or_default();
    let of_fork: Vec<usize> =
        found.iter().filter(|(_, file)| file.fork == fork).map(|(at, _)| *at).collect();
    if of_fork.is_empty() { Err(SelectError::NoFork { locator, fork }) } else { Ok(of_fork) }
}

/// Position in the listing of the file given by the user.
fn file(
    list: &FileList,
    root: &Path,
    name: &Path,
    fork: Option<Fork>,
) -> Result<usize, SelectError> {
    let path = inside(root, name);
    let Some(at) = list.files.iter().position(|file| file.path == path) else {
        return Err(SelectError::NoFile { name: name.to_owned() });
    };
    let found = list.files[at].fork;
    match fork {
        Some(wanted) if wanted != found => {
            Err(SelectError::OtherFork { name: name.to_owned(), found, wanted })
        }
        _ => Ok(at),
    }
}

/// Converts a file's name, relative or absolute, to the form used in the listing.
fn inside(root: &Path, name: &Path) -> PathBuf {
    let parts = |path: &Path| -> PathBuf {
        path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
    };
    if name.is_relative() {
        return root.join(parts(name));
    }
    if let Ok(rest) = name.strip_prefix(root) {
        return root.join(rest);
    }
    // The user may have specified the directory by a different path, so resolve symbolic links on
    // both sides.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match real(name).strip_prefix(real(root)) {
        Ok(rest) => root.join(rest),
        Err(_) => name.to_owned(),
    }
}

/// The relation that a file belongs to.
fn locator_of(file: &FileEntry) -> RelationLocator {
    let FileEntry { tablespace, database, relfilenode, .. } = *file;
    RelationLocator { tablespace, database, relfilenode }
}

/// Groups the files at these positions by fork. A fork's segments are adjacent in the listing.
fn targets(files: &[FileEntry], chosen: &BTreeSet<usize>) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for file in chosen.iter().filter_map(|&at| files.get(at)) {
        let (locator, fork) = (locator_of(file), file.fork);
        match targets.last_mut().filter(|last| (last.locator, last.fork) == (locator, fork)) {
            Some(last) => last.files.push(file.clone()),
            None => targets.push(Target {
                locator,
                fork,
                files: vec![file.clone()],
                first: 0,
                end: BlockNo::MAX,
            }),
        }
    }
    targets
}

/// Applies the block numbers, with `pg_prewarm`'s bounds and messages.
fn narrow(target: &mut Target, choice: &Choice) -> Result<(), SelectError> {
    let end = target.ranges().last().map_or(0, |range| range.end);
    let most = i64::from(end) - 1;
    let locator = target.locator;
    let check = |which, block: Option<i64>, default: i64| match block {
        None => Ok(default),
        Some(block) if (0..=most).contains(&block) => Ok(block),
        Some(_) => Err(SelectError::Range { locator, which, most }),
    };
    let first = check("starting", choice.first, 0)?;
    let last = check("ending", choice.last, most)?;
    // Both are block numbers, or -1 for an empty relation.
    target.first = BlockNo::try_from(first).unwrap_or_default();
    target.end = BlockNo::try_from(last + 1).unwrap_or_default();
    Ok(())
}

/// Whether a problem in the listing concerns a file of one of the targets.
fn is_about(problem: &Problem, targets: &[Target]) -> bool {
    let name = problem.path.file_name().and_then(|name| name.to_str());
    let Some(parsed) = name.and_then(RelationFile::parse) else { return false };
    let directory = problem.path.parent();
    targets.iter().any(|target| {
        let same = target.locator.relfilenode == parsed.relfilenode && target.fork == parsed.fork;
        same && target.files.first().is_some_and(|file| file.path.parent() == directory)
    })
}
