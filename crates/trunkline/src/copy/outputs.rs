//! Where a copy writes its rows: to standard output, to a file, or to a directory with one file per
//! table.
//!
//! A file gets its final name only when it's complete. While it is being written, it is called
//! `NAME.partial`. If rows had to be skipped, it is renamed to `NAME.incomplete` instead. A later
//! run can therefore tell from the file names alone which tables don't have to be copied again:
//!
//! ```text
//!   NAME.partial ──▶ fsync ──▶ rename to NAME              complete: a later run keeps it
//!        │                └──▶ rename to NAME.incomplete   rows were skipped: copied again
//!        └──▶ removed on error
//! ```

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use trunkline_engine::copy::{Output, Outputs};
use trunkline_engine::datadir::DataDir;
use trunkline_format::Oid;

/// Name of the manifest file, which records the source of the copies in a directory.
const MANIFEST: &str = "copy.manifest";

/// Maximum length of a file name in bytes.
const NAME_MAX: usize = 255;

/// Standard output, for one task.
pub(super) struct Stdout;

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

/// Files, one for each task.
pub(super) struct Files(pub(super) Vec<PathBuf>);

impl Outputs for Files {
    fn open(&self, task: usize) -> io::Result<Box<dyn Output>> {
        let path = self.0.get(task).ok_or(io::ErrorKind::NotFound)?;
        let named = |error| at(path, &error);
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(path).map_err(named)?;
                return Ok(Box::new(Stream(file)));
            }
            _ => {}
        }
        // If the path is a symbolic link, replace its target and not the link itself.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let partial = with_suffix(&path, ".partial");
        let file = File::create(&partial).map_err(named)?;
        Ok(Box::new(PartialFile { file, partial, path, finished: false }))
    }
}

/// Adds the file's name to an error.
pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("\"{}\": {error}", path.display()))
}

/// A file that gets its final name when it is complete.
struct PartialFile {
    file: File,
    partial: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl Output for PartialFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines).map_err(|error| at(&self.path, &error))
    }

    fn finish(mut self: Box<Self>, complete: bool) -> io::Result<()> {
        let renamed = self.rename(complete);
        self.finished = renamed.is_ok();
        renamed.map_err(|error| at(&self.path, &error))
    }
}

impl PartialFile {
    /// Renames the file to its final name.
    fn rename(&self, complete: bool) -> io::Result<()> {
        let incomplete = with_suffix(&self.path, ".incomplete");
        // Sync before renaming, as PostgreSQL's durable_rename does. Otherwise a crash could leave
        // an empty file under the final name.
        self.file.sync_data()?;
        if complete {
            fs::rename(&self.partial, &self.path)?;
            remove(&incomplete)?;
        } else {
            fs::rename(&self.partial, incomplete)?;
            // Otherwise, a complete file left by an earlier copy could be mistaken for the result
            // of this run.
            remove(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.finished {
            // If this fails, the file's suffix still shows that it's incomplete.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Removes a file if it exists.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Appends to the whole name. `Path::with_extension` would replace the last part of it.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The name of a table's file, such as `public.accounts.copy`.
///
/// We replace slashes, dots, percent signs and control characters in names with `%` and two hex
/// digits. If the resulting file name would be too long, we truncate it and append `%~` and the
/// table's OID.
pub(super) fn file_name(schema: &[u8], table: &[u8], oid: Oid, extension: &str) -> OsString {
    let mut name = Vec::new();
    for part in [schema, table] {
        for &byte in part {
            if byte < b' ' || matches!(byte, b'/' | b'%' | b'.' | 127) {
                name.extend_from_slice(format!("%{byte:02X}").as_bytes());
            } else {
                name.push(byte);
            }
        }
        name.push(b'.');
    }
    if name.len() + extension.len() > NAME_MAX - ".incomplete".len() {
        let end = format!("%~{oid}.");
        let most = NAME_MAX - ".incomplete".len() - extension.len() - end.len();
        // Do not cut within a UTF-8 sequence.
        let is_boundary = |at: &usize| name.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
        name.truncate((0..=most).rev().find(is_boundary).unwrap_or(most));
        name.extend_from_slice(end.as_bytes());
    }
    name.extend_from_slice(extension.as_bytes());
    OsString::from_vec(name)
}

/// A directory of copies, locked against other processes.
///
/// The copy holds a file lock on the manifest, much as a PostgreSQL server locks its data
/// directory. There is no process id in the file, so there can be no stale locks: the kernel
/// releases the lock when the process ends, even if it is killed. The manifest describes the
/// cluster, the database and all options that affect the contents of the files. If a directory has
/// a different manifest, we refuse to use it, because it would otherwise end up with files from two
/// different states of a cluster.
pub(super) struct CopyDirectory {
    _manifest: File,
}

/// Why a directory cannot be used for copies.
#[derive(Debug)]
pub(super) enum CopyDirectoryError {
    /// It contains copies of something else.
    Other,
    /// Another process is writing to it.
    Busy,
    /// It cannot be created, locked or read.
    Io(io::Error),
}

impl CopyDirectory {
    /// Opens or creates a directory for copies described by `contents`, and locks it.
    ///
    /// # Errors
    /// [`CopyDirectoryError`]; in this case the directory is unchanged.
    pub(super) fn open(path: &Path, contents: &str) -> Result<Self, CopyDirectoryError> {
        fs::create_dir_all(path)?;
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut manifest = options.open(path.join(MANIFEST))?;
        match manifest.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CopyDirectoryError::Busy),
            // If the file system doesn't support locks, continue without one.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let mut found = Vec::new();
        manifest.read_to_end(&mut found)?;
        if found != contents.as_bytes() {
            // If the file contains only the beginning of the manifest, an earlier run was killed
            // while it was writing the manifest. In that case it can't have copied any tables yet,
            // so we can use the directory.
            if !contents.as_bytes().starts_with(&found) {
                return Err(CopyDirectoryError::Other);
            }
            manifest.rewind()?;
            manifest.write_all(contents.as_bytes())?;
            manifest.sync_data()?;
        }
        Ok(Self { _manifest: manifest })
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
pub(super) fn is_inside_cluster(path: &Path, dir: &DataDir) -> bool {
    let links = fs::read_dir(dir.path().join("pg_tblspc")).into_iter().flatten().flatten();
    let links = links.map(|entry| entry.path());
    let moved = dir.moved_tablespaces().iter().map(|(_, to)| to.clone());
    let own = [dir.path().to_owned(), dir.path().join("pg_wal")];
    own.into_iter().chain(links).chain(moved).any(|directory| is_inside(path, &directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_escaped_and_cut() {
        let name = |schema: &str, table: &str| {
            let name = file_name(schema.as_bytes(), table.as_bytes(), Oid(16384), "copy");
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
        let files = Files(vec![pipe.clone(), link.clone(), home.path().join("no/file")]);
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
    fn only_a_complete_file_gets_its_name() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("t.copy");
        let files = Files(vec![path.clone()]);
        let names = || {
            let mut names: Vec<_> = fs::read_dir(home.path())
                .expect("a directory")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
                .collect();
            names.sort();
            names
        };
        let mut output = files.open(0).expect("opened");
        output.write(b"1\n").expect("written");
        assert_eq!(names(), ["t.copy.partial"]);
        drop(output);
        assert_eq!(names(), [""; 0]);
        let output = files.open(0).expect("opened");
        output.finish(false).expect("finished");
        assert_eq!(names(), ["t.copy.incomplete"]);
        let mut output = files.open(0).expect("opened");
        output.write(b"2\n").expect("written");
        output.finish(true).expect("finished");
        assert_eq!(names(), ["t.copy"]);
        assert_eq!(fs::read(&path).expect("read"), b"2\n");
    }

    #[test]
    fn a_directory_is_locked_and_keeps_its_contents() {
        let home = tempfile::tempdir().expect("a directory");
        let open = |contents: &str| CopyDirectory::open(home.path(), contents);
        let manifest = home.path().join(MANIFEST);
        let first = open("ab").expect("made");
        assert!(matches!(open("ab"), Err(CopyDirectoryError::Busy)));
        assert!(matches!(open("b"), Err(CopyDirectoryError::Busy)));
        drop(first);
        drop(open("ab").expect("found"));
        assert!(matches!(open("b"), Err(CopyDirectoryError::Other)));
        assert!(matches!(open("a"), Err(CopyDirectoryError::Other)));
        // An incomplete manifest.
        fs::write(&manifest, "a").expect("written");
        drop(open("ab").expect("found"));
        assert_eq!(fs::read(&manifest).expect("read"), b"ab");
        assert!(matches!(CopyDirectory::open(&manifest, "ab"), Err(CopyDirectoryError::Io(_))));
    }

    #[test]
    fn a_path_that_does_not_exist_can_be_inside_a_directory() {
        let home = tempfile::tempdir().expect("a directory");
        assert!(is_inside(&home.path().join("x/y"), home.path()));
        assert!(!is_inside(home.path(), &home.path().join("x")));
    }
}
