//! Where rows go: standard output, a file, or a directory with a file for each table.
//!
//! A file has its name only once it is complete: until then it is `NAME.partial`, and if rows had to
//! be left out it stays `NAME.incomplete`. So a second run knows what is there already.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use trunkline_engine::copy::{Output, Outputs};
use trunkline_engine::datadir::DataDir;
use trunkline_format::Oid;

/// In a directory of copies: what they are copies of.
const MANIFEST: &str = "copy.manifest";

/// Bytes of the longest name that file systems take.
const NAME_MAX: usize = 255;

/// Standard output, for one task.
pub(super) struct Stdout;

/// Goes straight to where it is for: a pipe or a device cannot be replaced by a whole file.
struct Straight(File);

impl Outputs for Stdout {
    fn open(&self, _task: usize) -> io::Result<Box<dyn Output>> {
        // The library's own would look for line feeds in what is handed to it.
        Ok(Box::new(Straight(File::from(io::stdout().as_fd().try_clone_to_owned()?))))
    }
}

impl Output for Straight {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.write_all(lines)
    }

    fn finish(self: Box<Self>, _whole: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Files by the numbers of their tasks.
pub(super) struct Files(pub(super) Vec<PathBuf>);

impl Outputs for Files {
    fn open(&self, task: usize) -> io::Result<Box<dyn Output>> {
        let path = self.0.get(task).ok_or(io::ErrorKind::NotFound)?;
        let named = |error| at(path, &error);
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(path).map_err(named)?;
                return Ok(Box::new(Straight(file)));
            }
            _ => {}
        }
        // What a link leads to is replaced, and not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let partial = with_suffix(&path, ".partial");
        let file = File::create(&partial).map_err(named)?;
        Ok(Box::new(FileLines { file, partial, path, finished: false }))
    }
}

/// The error with the file that it is about.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("\"{}\": {error}", path.display()))
}

struct FileLines {
    file: File,
    partial: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl Output for FileLines {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines).map_err(|error| at(&self.path, &error))
    }

    fn finish(mut self: Box<Self>, whole: bool) -> io::Result<()> {
        let kept = self.keep(whole);
        self.finished = kept.is_ok();
        kept.map_err(|error| at(&self.path, &error))
    }
}

impl FileLines {
    /// Gives the file the name that it is to have.
    fn keep(&self, whole: bool) -> io::Result<()> {
        let incomplete = with_suffix(&self.path, ".incomplete");
        // The name must not survive a crash without the bytes.
        self.file.sync_data()?;
        if whole {
            fs::rename(&self.partial, &self.path)?;
            remove(&incomplete)?;
        } else {
            fs::rename(&self.partial, incomplete)?;
            // An older copy would be taken for this one.
            remove(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for FileLines {
    fn drop(&mut self) {
        if !self.finished {
            // It can be made again, and says itself that it is no whole.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The name of a table's file: `public.accounts.copy`. What could be misread in it is written as `%`
/// and two digits; a name that becomes too long for a file is cut, and `%~` and the table's OID follow.
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
        // Not within a letter of UTF-8.
        let is_cut = |at: &usize| name.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
        name.truncate((0..=most).rev().find(is_cut).unwrap_or(most));
        name.extend_from_slice(end.as_bytes());
    }
    name.extend_from_slice(extension.as_bytes());
    OsString::from_vec(name)
}

/// A directory of copies that nobody else writes to while this is there.
///
/// The lock is the system's, on the open manifest: it goes with the process, however that ends.
pub(super) struct Directory {
    _manifest: File,
}

/// Why a directory cannot take copies.
#[derive(Debug)]
pub(super) enum DirectoryError {
    /// It has copies of something else.
    Other,
    /// Another process is writing to it.
    Busy,
    /// The system says no.
    Io(io::Error),
}

impl Directory {
    /// Makes a directory for copies of what `contents` names, or finds that it is one, and locks it.
    ///
    /// # Errors
    /// [`DirectoryError`]; then nothing in it has changed.
    pub(super) fn open(path: &Path, contents: &str) -> Result<Self, DirectoryError> {
        fs::create_dir_all(path)?;
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut manifest = options.open(path.join(MANIFEST))?;
        match manifest.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DirectoryError::Busy),
            // A file system without locks is no reason to have no copies.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let mut found = Vec::new();
        manifest.read_to_end(&mut found)?;
        if found != contents.as_bytes() {
            // A part of it: whoever wrote it did not come to its end, and not to a copy.
            if !contents.as_bytes().starts_with(&found) {
                return Err(DirectoryError::Other);
            }
            manifest.rewind()?;
            manifest.write_all(contents.as_bytes())?;
            manifest.sync_data()?;
        }
        Ok(Self { _manifest: manifest })
    }
}

impl From<io::Error> for DirectoryError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Whether `path`, which may not exist yet, is inside of `directory`.
pub(super) fn is_inside(path: &Path, directory: &Path) -> bool {
    let Ok(directory) = fs::canonicalize(directory) else { return false };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = absolute.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok());
    existing.is_some_and(|existing| existing.starts_with(directory))
}

/// Whether `path` is inside of a cluster: of its directory, or of what its links lead to, which are
/// tablespaces and perhaps the WAL.
pub(super) fn is_inside_cluster(path: &Path, dir: &DataDir) -> bool {
    let links = fs::read_dir(dir.path().join("pg_tblspc")).into_iter().flatten().flatten();
    let links = links.map(|entry| entry.path());
    let moved = dir.moved_tablespaces().iter().map(|(_, to)| to.clone());
    let own = [dir.path().to_owned(), dir.path().join("pg_wal")];
    own.into_iter().chain(links).chain(moved).any(|directory| is_inside(path, &directory))
}

/// Text of a command line as bytes.
pub(super) fn bytes(text: &OsStr) -> &[u8] {
    text.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        let name = |schema: &str, table: &str| {
            let name = file_name(schema.as_bytes(), table.as_bytes(), Oid(16384), "copy");
            name.into_string().expect("UTF-8")
        };
        assert_eq!(name("public", "accounts"), "public.accounts.copy");
        assert_eq!(name("s.1", "a/b %\n"), "s%2E1.a%2Fb %25%0A.copy");
        assert_eq!(name("..", "é"), "%2E%2E.é.copy");
        // The place of the cut is in the middle of a letter.
        let long = name(&"/".repeat(63), &format!("x{}", "é".repeat(31)));
        assert_eq!(long.len(), 244 - 1);
        assert!(long.starts_with("%2F%2F") && long.ends_with("é%~16384.copy"), "{long}");
        let longest = name(&"x".repeat(63), &"y".repeat(63));
        assert_eq!(longest, format!("{}.{}.copy", "x".repeat(63), "y".repeat(63)));
    }

    #[test]
    fn pipes_are_written_to_and_links_stay() {
        let home = tempfile::tempdir().expect("a directory");
        let (pipe, link) = (home.path().join("pipe"), home.path().join("link"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
        assert!(made.success());
        std::os::unix::fs::symlink(home.path().join("target"), &link).expect("linked");
        fs::write(home.path().join("target"), "old").expect("written");
        // Opened for both, so that nobody waits for the other end.
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
    fn only_what_is_whole_has_its_name() {
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
    fn a_directory_is_for_one_and_for_the_same() {
        let home = tempfile::tempdir().expect("a directory");
        let open = |contents: &str| Directory::open(home.path(), contents);
        let manifest = home.path().join(MANIFEST);
        let first = open("ab").expect("made");
        assert!(matches!(open("ab"), Err(DirectoryError::Busy)));
        assert!(matches!(open("b"), Err(DirectoryError::Busy)));
        drop(first);
        drop(open("ab").expect("found"));
        assert!(matches!(open("b"), Err(DirectoryError::Other)));
        assert!(matches!(open("a"), Err(DirectoryError::Other)));
        // Written by halves.
        fs::write(&manifest, "a").expect("written");
        drop(open("ab").expect("found"));
        assert_eq!(fs::read(&manifest).expect("read"), b"ab");
        assert!(matches!(Directory::open(&manifest, "ab"), Err(DirectoryError::Io(_))));
    }

    #[test]
    fn what_is_inside_of_a_directory() {
        let home = tempfile::tempdir().expect("a directory");
        assert!(is_inside(&home.path().join("x/y"), home.path()));
        assert!(!is_inside(home.path(), &home.path().join("x")));
    }
}
