//! Where a copy writes its rows: to standard output, to a file, or to a directory with one file per
//! table.
//!
//! A file gets its final name only when it's complete (see [`PartialFile`]). A later run can
//! therefore tell from the file names alone which tables don't have to be copied again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use trunkline_engine::copy::{Output, Outputs};
use trunkline_engine::datadir::DataDir;
use trunkline_format::Oid;

use super::partial_file::{Lock, PartialFile, try_lock};
use crate::config_file::at;

/// Name of the manifest file, which records the source of the copies in a directory.
pub(super) const MANIFEST: &str = "copy.manifest";

/// Maximum length of a file name in bytes.
const NAME_MAX: usize = 255;

/// Standard output, for one task.
pub(crate) struct Stdout;

/// A pipe or a device. We write to it directly, because unlike a regular file it can't be replaced
/// by renaming a new file over it.
struct Stream(File);

impl Outputs for Stdout {
    fn open(&self, _task: usize) -> io::Result<Box<dyn Output>> {
        // We bypass Rust's `Stdout`. It's line-buffered, so it would search all of our output for
        // line feeds.
        Ok(Box::new(Stream(File::from(io::stdout().as_fd().try_clone_to_owned()?))))
    }
}

impl Output for Stream {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.write_all(lines)
    }

    // There is nothing to rename or sync, because the rows have already been passed to the reader.
    fn finish(self: Box<Self>, _complete: bool) -> io::Result<()> {
        Ok(())
    }
}

/// An existing pipe or device that was given by name.
struct Device {
    stream: Stream,
    path: PathBuf,
}

impl Output for Device {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.stream.write(lines).map_err(|error| at(&self.path, &error))
    }

    fn finish(self: Box<Self>, _complete: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Files, one for each task. A symbolic link is replaced, unless it leads to a pipe or device.
pub(crate) struct Files(pub(crate) Vec<PathBuf>);

impl Outputs for Files {
    fn open(&self, task: usize) -> io::Result<Box<dyn Output>> {
        let path = self.0.get(task).ok_or(io::ErrorKind::NotFound)?;
        let named = |error| at(path, &error);
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(path).map_err(named)?;
                return Ok(Box::new(Device { stream: Stream(file), path: path.clone() }));
            }
            _ => {}
        }
        Ok(Box::new(PartialFile::create(path.clone())?))
    }
}

/// The name of a table's file, such as `public.accounts.copy`.
///
/// We replace slashes, dots, percent signs and control characters in names with `%` and two hex
/// digits. If the resulting file name would be too long, or if `with_oid` is set, we append `%~`
/// and the table's OID, after truncating the name if necessary.
fn file_name(table: &TableName<'_>, with_oid: bool, extension: &str) -> OsString {
    let mut name = Vec::new();
    for part in [&*table.schema, table.name] {
        for &byte in part {
            if byte < b' ' || matches!(byte, b'/' | b'%' | b'.' | 127) {
                name.extend_from_slice(format!("%{byte:02X}").as_bytes());
            } else {
                name.push(byte);
            }
        }
        name.push(b'.');
    }
    if with_oid || name.len() + extension.len() > NAME_MAX - ".incomplete".len() {
        // The dot after the table's name.
        name.pop();
        let end = format!("%~{}.", table.oid);
        let most = NAME_MAX - ".incomplete".len() - extension.len() - end.len();
        // Do not cut within a UTF-8 sequence.
        let is_boundary = |at: &usize| name.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
        name.truncate((0..=most).rev().find(is_boundary).unwrap_or(most));
        name.extend_from_slice(end.as_bytes());
    }
    name.extend_from_slice(extension.as_bytes());
    OsString::from_vec(name)
}

/// The name of a table.
pub(super) struct TableName<'t> {
    pub(super) schema: Vec<u8>,
    pub(super) name: &'t [u8],
    pub(super) oid: Oid,
}

/// The name of a table's file. If several tables have the same name, their files need different
/// names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileName {
    /// No other table has this name.
    Unique(OsString),
    /// Other tables have the same name, so the file's name contains the OID.
    WithOid(OsString),
    /// Other tables have the same name and the same OID, so there is no name for the file.
    Ambiguous,
}

/// Returns the names of the tables' files. If a cluster was not shut down cleanly, two rows of
/// `pg_class` can have the same name. If we wrote both tables to the same file, a later run would
/// mistake the mixture for a complete copy.
pub(super) fn file_names(tables: &[TableName<'_>], extension: &str) -> Vec<FileName> {
    let counted = |with_oid: bool| {
        let mut tables_by_file: BTreeMap<OsString, usize> = BTreeMap::new();
        for table in tables {
            *tables_by_file.entry(file_name(table, with_oid, extension)).or_default() += 1;
        }
        move |name: &OsString| tables_by_file.get(name) == Some(&1)
    };
    let (is_unique, is_unique_with_oid) = (counted(false), counted(true));
    let names = tables.iter().map(|table| {
        let [name, with_oid] = [false, true].map(|oid| file_name(table, oid, extension));
        match (is_unique(&name), is_unique_with_oid(&with_oid)) {
            (true, _) => FileName::Unique(name),
            (false, true) => FileName::WithOid(with_oid),
            (false, false) => FileName::Ambiguous,
        }
    });
    names.collect()
}

/// A directory of copies, locked against other processes.
///
/// The copy holds a file lock on the manifest, much as a PostgreSQL server locks its data
/// directory. There is no process id in the file, so there can be no stale locks: the kernel
/// releases the lock when the process ends, even if it is killed. The manifest describes the
/// cluster, its moment, the database and all options that affect the contents of the files. If a
/// directory has a different manifest, we refuse to use it, because it would otherwise end up with
/// files from two different states of a cluster.
pub(super) struct CopyDirectory {
    _manifest: File,
}

/// Why a directory cannot be used for copies.
#[derive(Debug)]
pub(super) enum CopyDirectoryError {
    /// It contains copies of something else. The text says of what.
    Other(&'static str),
    /// It contains this file, but no manifest that says what the file is a copy of.
    Unknown(PathBuf),
    /// Another process is writing to it.
    Busy,
    /// It cannot be created, locked or read.
    Io(io::Error),
}

impl CopyDirectory {
    /// Opens or creates a directory for `files`, which are copies described by `contents`, and locks
    /// it.
    ///
    /// # Errors
    /// [`CopyDirectoryError`]; in this case the directory is unchanged, or contains a new and empty
    /// manifest.
    pub(super) fn open(
        path: &Path,
        contents: &str,
        files: &[PathBuf],
    ) -> Result<Self, CopyDirectoryError> {
        if path.exists() && !path.is_dir() {
            return Err(io::Error::from(Errno::NOTDIR).into());
        }
        fs::create_dir_all(path)?;
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        // We must not follow a symbolic link, because it could lead to a file that isn't ours. And
        // opening a pipe must not wait for a writer.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let place = path.join(MANIFEST);
        let manifest = options.custom_flags(flags.bits() as i32).open(&place);
        let mut manifest = manifest.map_err(|error| at(&place, &error))?;
        if !manifest.metadata()?.is_file() {
            return Err(at(&place, &io::Error::other("not a regular file")).into());
        }
        // If the file system doesn't support locks, we continue without one.
        if try_lock(&manifest).map_err(|error| at(&place, &error))? == Lock::Busy {
            return Err(CopyDirectoryError::Busy);
        }
        let mut found = Vec::new();
        // We try to read one byte more than expected, so that we notice if the file is longer.
        Read::by_ref(&mut manifest).take(contents.len() as u64 + 1).read_to_end(&mut found)?;
        if found != contents.as_bytes() {
            // If the file contains only the beginning of the manifest, an earlier run was killed
            // while it was writing the manifest. In that case it can't have copied any tables yet,
            // so we can use the directory.
            if !contents.as_bytes().starts_with(&found) {
                return Err(CopyDirectoryError::Other(difference(&found, contents)));
            }
            // Otherwise, we would take any file of the right name for a complete copy.
            if let Some(unknown) = files.iter().find(|file| file.exists()) {
                return Err(CopyDirectoryError::Unknown(unknown.clone()));
            }
            manifest.rewind()?;
            manifest.write_all(contents.as_bytes())?;
            manifest.sync_data()?;
        }
        Ok(Self { _manifest: manifest })
    }
}

/// Says what the copies in a directory with the manifest `found` are, other than `wanted`. A manifest
/// begins with lines for the cluster, its last checkpoint and the database. The second line also says
/// how the cluster was read: without its log, or with the log replayed to some place.
fn difference(found: &[u8], wanted: &str) -> &'static str {
    let found = found.split(|&byte| byte == b'\n');
    let lines = found.zip(wanted.lines().map(str::as_bytes));
    let is_replayed = |line: &[u8]| String::from_utf8_lossy(line).contains(", replayed to ");
    match lines.enumerate().find(|(_, (found, wanted))| found != wanted) {
        Some((0, _)) => "of another cluster",
        // The last checkpoint may be one in the log.
        Some((1, (found, wanted))) if is_replayed(found) || is_replayed(wanted) => {
            "of another moment, with the log replayed to another place or not at all"
        }
        Some((1, _)) => "from before a server ran on this cluster again",
        Some((2, _)) => "of another database",
        _ => "with other options",
    }
}

impl From<io::Error> for CopyDirectoryError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Whether `path`, which need not exist, is inside `directory`.
pub(super) fn is_inside(path: &Path, directory: &Path) -> bool {
    let Ok(directory) = fs::canonicalize(directory) else { return false };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = absolute.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok());
    existing.is_some_and(|existing| existing.starts_with(directory))
}

/// Returns true if `path` is inside a cluster: in its data directory, in a tablespace, or in a WAL
/// directory that `pg_wal` links to.
pub(crate) fn is_inside_cluster(path: &Path, dir: &DataDir) -> bool {
    let links = fs::read_dir(dir.path().join("pg_tblspc")).into_iter().flatten().flatten();
    let links = links.map(|entry| entry.path());
    let moved = dir.moved_tablespaces().iter().map(|(_, to)| to.clone());
    let own = [dir.path().to_owned(), dir.path().join("pg_wal")];
    own.into_iter().chain(links).chain(moved).any(|directory| is_inside(path, &directory))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind::NotADirectory;

    use super::*;
    use crate::data_dir::resolve_link;

    #[test]
    fn file_names_are_escaped_and_cut() {
        let name = |schema: &str, name: &str| {
            let (schema, name) = (schema.as_bytes().to_vec(), name.as_bytes());
            let name = file_name(&TableName { schema, name, oid: Oid(16384) }, false, "copy");
            name.into_string().expect("UTF-8")
        };
        assert_eq!(name("public", "accounts"), "public.accounts.copy");
        assert_eq!(name("s.1", "a/b %\n"), "s%2E1.a%2Fb %25%0A.copy");
        assert_eq!(name("..", "é"), "%2E%2E.é.copy");
        // The longest prefix ends within a UTF-8 sequence.
        let long = name(&"/".repeat(63), &format!("x{}", "é".repeat(31)));
        assert_eq!(long.len(), 244 - 1);
        assert!(long.starts_with("%2F%2F") && long.ends_with("é%~16384.copy"), "{long}");
        let longest = name(&"x".repeat(63), &"y".repeat(63));
        assert_eq!(longest, format!("{}.{}.copy", "x".repeat(63), "y".repeat(63)));
    }

    #[test]
    fn pipes_are_written_to_directly_and_links_stay() {
        let home = tempfile::tempdir().expect("a directory");
        let (pipe, link) = (home.path().join("pipe"), home.path().join("link"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
        assert!(made.success());
        std::os::unix::fs::symlink(home.path().join("target"), &link).expect("linked");
        fs::write(home.path().join("target"), "old").expect("written");
        // Opened for reading and writing, so that neither end waits for the other.
        let mut reader = File::options().read(true).write(true).open(&pipe).expect("opened");
        let files = Files(vec![pipe.clone(), resolve_link(&link), home.path().join("no/file")]);
        for task in 0..2 {
            let mut output = files.open(task).expect("opened");
            output.write(b"1\n").expect("written");
            output.finish(true).expect("finished");
        }
        let mut found = [0; 2];
        io::Read::read_exact(&mut reader, &mut found).expect("read");
        assert_eq!(&found, b"1\n");
        assert!(!fs::metadata(&pipe).expect("there").is_file());
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read(home.path().join("target")).expect("read"), b"1\n");
        let error = files.open(2).err().expect("no directory").to_string();
        assert!(error.contains("no/file\": No such file"), "{error}");
    }

    #[test]
    fn tables_of_one_name_get_files_of_their_own() {
        let table = |name: &'static str, oid| TableName {
            schema: b"s".to_vec(),
            name: name.as_bytes(),
            oid: Oid(oid),
        };
        let tables = [table("t", 1), table("u", 2), table("t", 3), table("v", 4), table("v", 4)];
        assert_eq!(
            file_names(&tables, "csv"),
            [
                FileName::WithOid("s.t%~1.csv".into()),
                FileName::Unique("s.u.csv".into()),
                FileName::WithOid("s.t%~3.csv".into()),
                FileName::Ambiguous,
                FileName::Ambiguous,
            ]
        );
    }

    #[test]
    fn a_directory_is_locked_and_keeps_its_contents() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("t.copy");
        let open = |contents: &str| {
            CopyDirectory::open(home.path(), contents, std::slice::from_ref(&file))
        };
        let manifest = home.path().join(MANIFEST);
        let first = open("ab").expect("made");
        assert!(matches!(open("ab"), Err(CopyDirectoryError::Busy)));
        assert!(matches!(open("b"), Err(CopyDirectoryError::Busy)));
        drop(first);
        drop(open("ab").expect("found"));
        assert!(matches!(open("b"), Err(CopyDirectoryError::Other(_))));
        assert!(matches!(open("a"), Err(CopyDirectoryError::Other(_))));
        // An incomplete manifest.
        fs::write(&manifest, "a").expect("written");
        drop(open("ab").expect("found"));
        assert_eq!(fs::read(&manifest).expect("read"), b"ab");
        // A copy is kept only if the manifest says that it is one.
        fs::write(&file, "").expect("written");
        drop(open("ab").expect("found"));
        for unfinished in ["a", ""] {
            fs::write(&manifest, unfinished).expect("written");
            assert!(matches!(open("ab"), Err(CopyDirectoryError::Unknown(found)) if found == file));
            assert_eq!(fs::read(&manifest).expect("read"), unfinished.as_bytes());
        }
        fs::remove_file(&file).expect("removed");
        let error = CopyDirectory::open(&manifest, "ab", &[]).err().expect("a file");
        assert!(matches!(error, CopyDirectoryError::Io(error) if error.kind() == NotADirectory));
        // The link is not followed, and opening the pipe doesn't wait for a writer.
        let victim = home.path().join("victim");
        fs::write(&victim, "").expect("written");
        fs::remove_file(&manifest).expect("removed");
        std::os::unix::fs::symlink(&victim, &manifest).expect("linked");
        assert!(matches!(open("ab"), Err(CopyDirectoryError::Io(_))));
        assert_eq!(fs::read(&victim).expect("read"), b"");
        fs::remove_file(&manifest).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&manifest).status().expect("runs");
        assert!(made.success());
        assert!(matches!(open("ab"), Err(CopyDirectoryError::Io(_))));
    }

    #[test]
    fn the_first_line_that_differs_says_what_a_directory_contains() {
        let clean = "system 1\ncheckpoint 2\ndatabase 3\nctid\n";
        let replayed = "system 1\ncheckpoint 2, replayed to 3\ndatabase 3\nctid\n";
        for (wanted, found, expected) in [
            (clean, "system 0\ncheckpoint 2\n", "of another cluster"),
            (clean, "system 1\ncheckpoint 1\ndatabase 1\n", "from before a server ran"),
            (clean, "system 1\ncheckpoint 2\ndatabase 1\n", "of another database"),
            (clean, "system 1\ncheckpoint 2\ndatabase 3\n\n", "with other options"),
            (clean, "system 1\ncheckpoint 2\ndatabase 3\nctid\nmore", "with other options"),
            (clean, replayed, "of another moment"),
            (replayed, clean, "of another moment"),
            (replayed, "system 1\ncheckpoint 2, replayed to 4\n", "of another moment"),
            (replayed, "system 1\ncheckpoint 1, replayed to 1\n", "of another moment"),
            (replayed, "system 1\ncheckpoint 2, not shut down cleanly\n", "of another moment"),
            (replayed, "system 1\ncheckpoint 2, replayed to 3\n\n", "of another database"),
        ] {
            let said = difference(found.as_bytes(), wanted);
            assert!(said.starts_with(expected), "{found}: {said}");
        }
    }

    #[test]
    fn a_path_that_does_not_exist_can_be_inside_a_directory() {
        let home = tempfile::tempdir().expect("a directory");
        assert!(is_inside(&home.path().join("x/y"), home.path()));
        assert!(!is_inside(home.path(), &home.path().join("x")));
    }
}
