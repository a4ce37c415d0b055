//! What to prewarm: names from outside become ranges of blocks.
//!
//! A name is a relation's, `5/16384` or `1663/5/16384`, or a file's, `base/5/16384.1`. A relation is
//! one fork of it, `main` unless asked otherwise, and may be narrowed by block numbers, as in
//! `pg_prewarm`; a file is the blocks in it. Without names everything is meant, all forks.
//!
//! Blocks are known from the listing of the directory: a segment that is missing in the middle hides
//! those before it and after it no more than it has to.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid, RelationFile};

use crate::datadir::{DataDir, FileEntry, FileList, Problem};
use crate::storage::RelationLocator;

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Relations and files; everything if there are none.
    pub names: Vec<PathBuf>,
    /// If nothing is named, only what is of this database.
    pub database: Option<Oid>,
    /// The fork; `None` is the main fork of relations that are named, and every fork of everything.
    pub fork: Option<Fork>,
    /// The first block of each relation; 0 if not given.
    pub first: Option<i64>,
    /// The last block of each relation; its last if not given.
    pub last: Option<i64>,
}

/// Blocks of one fork of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The relation.
    pub locator: RelationLocator,
    /// Its fork.
    pub fork: Fork,
    /// Its segments, in order, as far as they were chosen.
    pub files: Vec<FileEntry>,
    /// Only blocks from this one on, over all segments.
    pub first: BlockNo,
    /// Only blocks before this one.
    pub end: BlockNo,
}

/// The targets, chosen from a directory.
#[derive(Debug, Default)]
pub struct Selection {
    /// In the order of the listing.
    pub targets: Vec<Target>,
    /// What is odd about the files: all of the directory's if everything was chosen, else those of
    /// the targets.
    pub problems: Vec<Problem>,
}

impl Target {
    /// Whole blocks of the files, each a range of its own, as far as they are wanted.
    pub fn pieces(&self) -> impl Iterator<Item = Range<BlockNo>> + '_ {
        self.files.iter().filter_map(|file| {
            let first = file.first_block()?;
            let end = first.saturating_add(file.blocks());
            let piece = first.max(self.first)..end.min(self.end);
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Blocks in all.
    pub fn blocks(&self) -> u64 {
        self.pieces().map(|piece| piece.len() as u64).sum()
    }

    /// The files as far as they are wanted: those without a wanted block are left out, the last one
    /// may end sooner.
    pub fn wanted_files(&self) -> Vec<FileEntry> {
        let wanted = self.files.iter().filter_map(|file| {
            let begin = file.first_block()?;
            let end = begin.saturating_add(file.blocks()).min(self.end);
            let wanted = begin.max(self.first) < end;
            let bytes = u64::from(end.saturating_sub(begin)) * BLOCK_SIZE as u64;
            wanted.then(|| FileEntry { bytes, ..file.clone() })
        });
        wanted.collect()
    }
}

/// Why nothing was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectError {
    /// A name is neither a relation's nor a relation file's.
    NoFile {
        /// As it was asked for.
        name: PathBuf,
    },
    /// The directory has no files of this relation.
    NoRelation {
        /// As it was asked for.
        name: String,
    },
    /// A relation of this name is in several tablespaces.
    Ambiguous {
        /// As it was asked for.
        name: String,
        /// The tablespaces.
        tablespaces: Vec<Oid>,
    },
    /// The relation has no such fork.
    NoFork {
        /// The relation.
        locator: RelationLocator,
        /// The fork.
        fork: Fork,
    },
    /// The file is of another fork than the one asked for.
    OtherFork {
        /// The file, as it was asked for.
        name: PathBuf,
        /// What it is of.
        found: Fork,
        /// What was asked for.
        wanted: Fork,
    },
    /// The first or last block is not one of the relation's.
    Range {
        /// The relation.
        locator: RelationLocator,
        /// `starting` or `ending`.
        which: &'static str,
        /// The last block's number, -1 without any.
        most: i64,
    },
    /// Block numbers were given, and no relation that they are of.
    RangeOfWhat,
}

impl SelectError {
    /// What to do about it, without full stop.
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

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::NoFile { name } => {
                write!(f, "\"{}\" is no relation file of the data directory", name.display())
            }
            SelectError::NoRelation { name } => {
                write!(f, "the data directory has no relation {name}")
            }
            SelectError::Ambiguous { name, tablespaces } => {
                let list: Vec<String> = tablespaces.iter().map(Oid::to_string).collect();
                write!(f, "relation {name} is in several tablespaces: {}", list.join(", "))
            }
            SelectError::NoFork { locator, fork } => {
                write!(f, "fork \"{fork}\" does not exist for relation {locator}")
            }
            SelectError::OtherFork { name, found, wanted } => write!(
                f,
                "\"{}\" is of fork \"{found}\", but fork \"{wanted}\" was asked for",
                name.display()
            ),
            SelectError::Range { locator, which, most } => write!(
                f,
                "{which} block number must be between 0 and {most} for relation {locator}"
            ),
            SelectError::RangeOfWhat => {
                f.write_str("block numbers are of relations, and none is named")
            }
        }
    }
}

impl std::error::Error for SelectError {}

/// Chooses from the directory's files.
///
/// # Errors
/// See [`SelectError`]; the first name that cannot be, or a block number that cannot be.
pub fn select(dir: &DataDir, choice: &Choice) -> Result<Selection, SelectError> {
    let list = dir.relation_files();
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

/// The numbers of `5/16384` or `1663/5/16384`; `None` for what must be a path.
fn parse_relation(name: &Path) -> Option<Vec<u32>> {
    let parts: Option<Vec<u32>> = name
        .to_str()?
        .split('/')
        .map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?)
        .collect();
    parts.filter(|parts| matches!(parts.len(), 2 | 3))
}

/// The positions of a relation's files in the listing.
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
    let found: Vec<(usize, &FileEntry)> = list.files.iter().enumerate().collect();
    let found = found.into_iter().filter(|(_, file)| {
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

/// The position of a file in the listing.
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

/// The path by which the listing knows `name`.
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
    // The same directory by another name: links are resolved on both sides.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match real(name).strip_prefix(real(root)) {
        Ok(rest) => root.join(rest),
        Err(_) => name.to_owned(),
    }
}

fn locator_of(file: &FileEntry) -> RelationLocator {
    let FileEntry { tablespace, database, relfilenode, .. } = *file;
    RelationLocator { tablespace, database, relfilenode }
}

/// The files at these positions, those of one fork together.
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

/// Applies the block numbers, with `pg_prewarm`'s bounds.
fn narrow(target: &mut Target, choice: &Choice) -> Result<(), SelectError> {
    let end = target.pieces().last().map_or(0, |piece| piece.end);
    let most = i64::from(end) - 1;
    let locator = target.locator;
    let check = |which, block: Option<i64>, default: i64| match block {
        None => Ok(default),
        Some(block) if (0..=most).contains(&block) => Ok(block),
        Some(_) => Err(SelectError::Range { locator, which, most }),
    };
    let first = check("starting", choice.first, 0)?;
    let last = check("ending", choice.last, most)?;
    // Both are block numbers, or -1 without any block.
    target.first = BlockNo::try_from(first).unwrap_or_default();
    target.end = BlockNo::try_from(last + 1).unwrap_or_default();
    Ok(())
}

/// Whether a problem is with a file of one of the targets.
fn is_about(problem: &Problem, targets: &[Target]) -> bool {
    let name = problem.path.file_name().and_then(|name| name.to_str());
    let Some(parsed) = name.and_then(RelationFile::parse) else { return false };
    let directory = problem.path.parent();
    targets.iter().any(|target| {
        let same = target.locator.relfilenode == parsed.relfilenode && target.fork == parsed.fork;
        same && target.files.first().is_some_and(|file| file.path.parent() == directory)
    })
}
