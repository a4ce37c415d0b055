//! Lists all relation files of a cluster by walking its directories.
//!
//! We don't use the catalogs for this, because verification must also find files that no catalog
//! row refers to.
//!
//! ```text
//!   global/1262                                 tablespace 1664, shared by all databases
//!   base/5/16384  16384.1  16384_fsm            tablespace 1663, database 5
//!   pg_tblspc/16766/PG_18_202506291/5/16767     a tablespace: a link, or a directory
//! ```
//!
//! We scan the same directories as `pg_checksums` and skip the same names, so that both tools
//! report the same number of files and blocks. Temporary relations are skipped too, because a
//! server removes them at startup. The order is fixed: first shared relations, then databases, then
//! tablespaces, sorted by number. We only keep one directory open at a time, so we need very few
//! file descriptors.
//!
//! Errors never end the walk. If we can't read a directory, find an unexpected symbolic link, or
//! notice that a segment is missing, we just record a [`Problem`] and continue. This way, the
//! caller gets all the files that can be read, and also finds out why the list might be incomplete.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use trunkline_format::segment::tablespace_directory;
use trunkline_format::{
    BLOCK_SIZE, BlockNo, ControlFile, Fork, Oid, RelationFile, SEGMENT_BLOCKS, TempRelationFile,
};

use super::error::DataDirError;
use super::problem::{Problem, ProblemKind};
use crate::replay::mapped_tablespaces;

/// OID of the tablespace `pg_default`, whose files are in `base`.
pub const DEFAULT_TABLESPACE: Oid = Oid(1663);

/// OID of the tablespace `pg_global`, whose files are in `global`.
pub const GLOBAL_TABLESPACE: Oid = Oid(1664);

const SEGMENT_BYTES: u64 = SEGMENT_BLOCKS as u64 * BLOCK_SIZE as u64;

/// A segment file of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path, starting with the path of the data directory.
    pub path: PathBuf,
    /// The tablespace that contains it.
    pub tablespace: Oid,
    /// The database it belongs to; 0 for shared relations.
    pub database: Oid,
    /// The relation's file number, which may differ from its OID.
    pub relfilenode: u32,
    /// Which fork of the relation.
    pub fork: Fork,
    /// Which segment of the fork, from 0.
    pub segment: u32,
    /// Size in bytes when it was listed.
    pub bytes: u64,
    /// Its device (`st_dev`), which identifies the mounted file system.
    pub device: u64,
}

impl FileEntry {
    /// Whole blocks in the file, at most a full segment.
    pub fn blocks(&self) -> u32 {
        let blocks = self.bytes / BLOCK_SIZE as u64;
        u32::try_from(blocks).unwrap_or(SEGMENT_BLOCKS).min(SEGMENT_BLOCKS)
    }

    /// The relation block number of the file's first block, or `None` if it would exceed the
    /// maximum block number.
    pub fn first_block(&self) -> Option<BlockNo> {
        self.segment.checked_mul(SEGMENT_BLOCKS)
    }
}

/// A tablespace that has a name in `pg_tblspc`, or would get one when a server recovers the backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tablespace {
    /// Its OID, which is its name in `pg_tblspc`.
    pub oid: Oid,
    /// The link's target, or `None` for a directory in `pg_tblspc`. If there is no link, where the
    /// tablespace is.
    pub target: Option<PathBuf>,
}

/// All relation files, and the problems found while listing them.
#[derive(Debug, Default)]
pub struct FileList {
    /// In a fixed order: tablespace, database, file number, fork, segment.
    pub files: Vec<FileEntry>,
    /// In the order they were found.
    pub problems: Vec<Problem>,
    /// The tablespaces, by OID.
    pub tablespaces: Vec<Tablespace>,
}

impl FileList {
    /// Whole blocks in all files, as `pg_checksums` counts them.
    pub fn blocks(&self) -> u64 {
        self.files.iter().map(|file| u64::from(file.blocks())).sum()
    }

    /// Bytes in all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn report(&mut self, path: &Path, kind: ProblemKind) {
        self.problems.push(Problem { path: path.to_owned(), kind });
    }
}

/// The directory that contains a database's files in a tablespace. `version` is the name of the
/// version-specific directory that the server creates inside each tablespace. `moved` lists the
/// tablespaces that were moved without updating their links.
pub(crate) fn database_directory(
    root: &Path,
    moved: &[(Oid, PathBuf)],
    version: &str,
    (tablespace, database): (Oid, Oid),
) -> PathBuf {
    let database = database.to_string();
    match tablespace {
        GLOBAL_TABLESPACE => root.join("global"),
        DEFAULT_TABLESPACE => root.join("base").join(database),
        tablespace => {
            let moved = moved.iter().find(|(oid, _)| *oid == tablespace);
            let linked = || root.join("pg_tblspc").join(tablespace.to_string());
            moved.map_or_else(linked, |(_, to)| to.clone()).join(version).join(database)
        }
    }
}

/// The tablespace and the database whose files are in `folder`, if it is a folder of the cluster at `root`.
/// Compares the folders themselves, so it finds them by any path, and in a directory that can't be opened.
/// `moves` are the targets of links that are no longer true, and where the tablespaces are.
pub fn place_of(
    root: &Path,
    control: &ControlFile,
    moves: &[(PathBuf, PathBuf)],
    folder: &Path,
) -> Option<(Oid, Oid)> {
    let version = tablespace_directory(control.version);
    let folder = folder.canonicalize().ok()?;
    let mapped = without_in_place(root, &mapped_tablespaces(root).unwrap_or_default());
    let moved = moved(places(root, &mapped).ok()?, &mapped, moves);
    let is = |place: (Oid, Oid)| {
        let expected = database_directory(root, &moved, &version, place);
        expected.canonicalize().is_ok_and(|expected| expected == folder)
    };
    let shared = (GLOBAL_TABLESPACE, Oid(0));
    if is(shared) {
        return Some(shared);
    }
    let database = parse_oid(folder.file_name()?)?;
    let entries = fs::read_dir(root.join("pg_tblspc")).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| parse_oid(&entry.file_name()));
    let mapped = mapped.iter().map(|(oid, _)| *oid);
    let tablespaces = [DEFAULT_TABLESPACE].into_iter().chain(mapped).chain(numbered);
    let places = tablespaces.map(|tablespace| (tablespace, database));
    { places }.find(|place| is(*place))
}

/// Lists the files of the cluster at `root`.
pub(super) fn list(root: &Path, control: &ControlFile, moved: &[(Oid, PathBuf)]) -> FileList {
    let mut list = FileList::default();
    let global = root.join("global");
    if is_directory(&mut list, &global) {
        walk_database(&mut list, &global, GLOBAL_TABLESPACE, Oid(0));
    }
    let base = root.join("base");
    if is_directory(&mut list, &base) {
        walk_databases(&mut list, &base, DEFAULT_TABLESPACE);
    }
    let pg_tblspc = root.join("pg_tblspc");
    if is_directory(&mut list, &pg_tblspc) {
        let expected = tablespace_directory(control.version);
        walk_tablespaces(&mut list, &pg_tblspc, &expected, moved);
    }
    list
}

/// Those of the tablespaces that a backup lists which aren't directories in `pg_tblspc`. A server doesn't
/// recover a backup that has such a directory and lists another one.
pub(super) fn without_in_place(root: &Path, mapped: &[(Oid, PathBuf)]) -> Vec<(Oid, PathBuf)> {
    let links = root.join("pg_tblspc");
    let is_in_place = |oid: Oid| {
        let entry = fs::symlink_metadata(links.join(oid.to_string()));
        entry.is_ok_and(|entry| entry.is_dir())
    };
    mapped.iter().filter(|(oid, _)| !is_in_place(*oid)).cloned().collect()
}

/// Where the tablespaces are that aren't in the data directory. `mapped` goes before symbolic links.
pub(super) fn places(
    root: &Path,
    mapped: &[(Oid, PathBuf)],
) -> Result<Vec<(Oid, PathBuf)>, DataDirError> {
    let mut places = links(root)?;
    places.retain(|(oid, _)| !mapped.iter().any(|(of, _)| of == oid));
    places.extend_from_slice(mapped);
    Ok(places)
}

/// Those of the tablespaces in `places` that aren't where their symbolic links point: `mapped`, and those
/// that the user says have been moved. The first of the moves that fits counts. We compare paths as text,
/// because they don't have to exist on this machine.
pub(super) fn moved(
    places: Vec<(Oid, PathBuf)>,
    mapped: &[(Oid, PathBuf)],
    moves: &[(PathBuf, PathBuf)],
) -> Vec<(Oid, PathBuf)> {
    let is_mapped = |oid: Oid| mapped.iter().any(|(of, _)| *of == oid);
    let new_place = |(oid, place): (Oid, PathBuf)| match moves.iter().find(|(old, _)| *old == place)
    {
        Some((_, new)) => Some((oid, new.clone())),
        None => is_mapped(oid).then_some((oid, place)),
    };
    places.into_iter().filter_map(new_place).collect()
}

/// The tablespaces that are symbolic links, with the links' targets.
fn links(root: &Path) -> Result<Vec<(Oid, PathBuf)>, DataDirError> {
    let directory = root.join("pg_tblspc");
    let fail = |source| DataDirError::io("open directory", &directory, source);
    let mut links = Vec::new();
    for entry in fs::read_dir(&directory).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if let Some(oid) = path.file_name().and_then(parse_oid)
            && let Ok(target) = fs::read_link(&path)
        {
            links.push((oid, target));
        }
    }
    links.sort();
    Ok(links)
}

/// Lists the tablespaces: entries of `pg_tblspc` named by OID that are links or directories, and those
/// of `moved` that have no entry, because a backup only lists them.
fn walk_tablespaces(
    list: &mut FileList,
    directory: &Path,
    expected: &str,
    moved: &[(Oid, PathBuf)],
) {
    let mut numbered: BTreeMap<Oid, PathBuf> =
        moved.iter().map(|(oid, _)| (*oid, directory.join(oid.to_string()))).collect();
    numbered.extend(numbered_directories(list, directory, true));
    for (oid, path) in numbered {
        let place = moved.iter().find(|(found, _)| *found == oid).map(|(_, to)| to);
        let target = match fs::read_link(&path) {
            Ok(target) => Some(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound && place.is_some() => {
                place.cloned()
            }
            // If it isn't a link, it must be a directory created by `allow_in_place_tablespaces`,
            // because `numbered_directories` doesn't return anything else.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => None,
            Err(error) => {
                list.report(&path, ProblemKind::Unreadable(error));
                continue;
            }
        };
        let path = place.cloned().unwrap_or(path);
        let databases = path.join(expected);
        match fs::symlink_metadata(&databases) {
            Ok(metadata) if metadata.is_dir() => {
                list.tablespaces.push(Tablespace { oid, target });
                walk_databases(list, &databases, oid);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                list.report(&path, ProblemKind::Unreadable(error));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !exists(&path) => {
                let target = place.cloned().or(target).unwrap_or(path.clone());
                list.report(&path, ProblemKind::Dangling { target });
            }
            _ => list.report(&path, ProblemKind::NotATablespace { expected: expected.to_owned() }),
        }
    }
}

/// Whether a path exists, following symbolic links. If we aren't able to find out, we assume that
/// it does.
pub(super) fn exists(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

/// Lists a directory that contains databases.
fn walk_databases(list: &mut FileList, directory: &Path, tablespace: Oid) {
    for (database, path) in numbered_directories(list, directory, false) {
        walk_database(list, &path, tablespace, database);
    }
}

/// Returns those entries of a directory whose names are OIDs, in order. Any other entries are
/// reported, except for temporary files.
fn numbered_directories(list: &mut FileList, directory: &Path, links: bool) -> Vec<(Oid, PathBuf)> {
    let mut numbered = Vec::new();
    for (name, kind) in read_sorted(list, directory) {
        let path = directory.join(&name);
        match parse_oid(&name) {
            _ if is_skipped(&name) => {}
            Some(oid) if kind.is_dir() || (links && kind.is_symlink()) => {
                numbered.push((oid, path))
            }
            Some(_) if kind.is_symlink() => list.report(&path, ProblemKind::Symlink),
            _ => list.report(&path, ProblemKind::UnknownName),
        }
    }
    numbered.sort();
    numbered
}

/// Lists a directory that contains relation files.
fn walk_database(list: &mut FileList, directory: &Path, tablespace: Oid, database: Oid) {
    let start = list.files.len();
    for (name, kind) in read_sorted(list, directory) {
        let text = name.to_str().unwrap_or_default();
        if is_skipped(&name) || TempRelationFile::parse(text).is_some() {
            continue;
        }
        let path = directory.join(&name);
        let Some(parsed) = RelationFile::parse(text) else {
            list.report(&path, ProblemKind::UnknownName);
            continue;
        };
        if kind.is_symlink() {
            list.report(&path, ProblemKind::Symlink);
            continue;
        }
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() => list.files.push(FileEntry {
                path,
                tablespace,
                database,
                relfilenode: parsed.relfilenode,
                fork: parsed.fork,
                segment: parsed.segment,
                bytes: metadata.len(),
                device: metadata.dev(),
            }),
            Ok(_) => list.report(&path, ProblemKind::NotAFile),
            Err(error) => list.report(&path, ProblemKind::Unreadable(error)),
        }
    }
    list.files[start..].sort_by_key(|file| (file.relfilenode, file.fork, file.segment));
    check_sizes(list, start);
}

/// Checks that each of a database's files is a whole number of blocks long, and that there are no
/// missing or short segments before a segment that contains blocks. If there were, a server would
/// silently ignore those blocks, because it takes the first segment that isn't full as the end of
/// the fork.
fn check_sizes(list: &mut FileList, start: usize) {
    let mut problems = Vec::new();
    let mut report = |path: &Path, kind| problems.push(Problem { path: path.to_owned(), kind });
    let mut previous: Option<&FileEntry> = None;
    for file in &list.files[start..] {
        if file.bytes % BLOCK_SIZE as u64 != 0 {
            report(&file.path, ProblemKind::PartialBlock { bytes: file.bytes });
        }
        if file.bytes > SEGMENT_BYTES {
            report(&file.path, ProblemKind::TooLong { bytes: file.bytes });
        }
        let before = previous.filter(|p| (p.relfilenode, p.fork) == (file.relfilenode, file.fork));
        let next = file.segment;
        if let Some(before) = before.filter(|before| before.segment + 1 == next) {
            // Truncation leaves empty segments behind.
            if file.bytes > 0 && before.bytes < SEGMENT_BYTES {
                report(&before.path, ProblemKind::ShortSegment { bytes: before.bytes, next });
            }
        } else if next > 0 {
            let missing =
                RelationFile { relfilenode: file.relfilenode, fork: file.fork, segment: next - 1 };
            let path = file.path.with_file_name(missing.to_string());
            report(&path, ProblemKind::MissingSegment { next });
        }
        previous = Some(file);
    }
    list.problems.append(&mut problems);
}

/// Returns the entries of a directory. We sort them by name, because file systems return them in no
/// particular order. If the directory can't be read, reports a problem and returns no entries.
fn read_sorted(list: &mut FileList, directory: &Path) -> Vec<(OsString, fs::FileType)> {
    let entries = fs::read_dir(directory).and_then(|entries| {
        entries.map(|entry| entry.and_then(|e| Ok((e.file_name(), e.file_type()?)))).collect()
    });
    let mut entries: Vec<(OsString, fs::FileType)> = entries.unwrap_or_else(|error| {
        list.report(directory, ProblemKind::Unreadable(error));
        Vec::new()
    });
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries
}

/// Checks that one of the three top-level directories really is a directory, and reports a problem
/// if it isn't.
fn is_directory(list: &mut FileList, path: &Path) -> bool {
    let kind = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => return true,
        Ok(metadata) if metadata.is_symlink() => ProblemKind::Symlink,
        Ok(_) => ProblemKind::Unreadable(Errno::NOTDIR.into()),
        Err(error) => ProblemKind::Unreadable(error),
    };
    list.report(path, kind);
    false
}

/// Whether `pg_checksums` skips files with this name (`skip` in `pg_checksums.c`).
fn is_skipped(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    [b"pgsql_tmp".as_slice(), b"pg_internal.init", b"config_exec_params"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || [b"pg_control".as_slice(), b"pg_filenode.map", b"PG_VERSION", b".DS_Store"]
            .contains(&name)
}

/// An OID in the form in which a server writes it: only digits, no leading zero, and not 0.
fn parse_oid(name: &OsStr) -> Option<Oid> {
    let text = name.to_str()?;
    let number: u32 = text.parse().ok()?;
    (number > 0 && number.to_string() == text).then_some(Oid(number))
}
