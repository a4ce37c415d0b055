//! Where rows go: standard output, a file, or a directory with a file for each table.
//!
//! A file has its name only once it is complete: until then it is `NAME.partial`, and if rows had to
//! be left out it stays `NAME.incomplete`. So a second run knows what is there already.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use trunkline_engine::copy::{Output, Outputs};

/// In a directory of copies: what they are copies of.
const MANIFEST: &str = "copy.manifest";

/// Standard output, for one task.
pub(super) struct Stdout;

struct StdoutLines(File);

impl Outputs for Stdout {
    fn open(&self, _task: usize) -> io::Result<Box<dyn Output>> {
        // The library's own would look for line feeds in what is handed to it.
        Ok(Box::new(StdoutLines(File::from(io::stdout().as_fd().try_clone_to_owned()?))))
    }
}

impl Output for StdoutLines {
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
        let partial = with_suffix(path, ".partial");
        let file = File::create(&partial)?;
        Ok(Box::new(FileLines { file, partial, path: path.clone(), finished: false }))
    }
}

struct FileLines {
    file: File,
    partial: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl Output for FileLines {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)
    }

    fn finish(mut self: Box<Self>, whole: bool) -> io::Result<()> {
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
        self.finished = true;
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
/// and two digits.
pub(super) fn file_name(schema: &[u8], table: &[u8], extension: &str) -> OsString {
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
    name.extend_from_slice(extension.as_bytes());
    OsString::from_vec(name)
}

/// Makes a directory for copies, or finds that it is one with copies of the same.
///
/// # Errors
/// `Ok(false)` if it has copies of something else; the system's error if it cannot be made.
pub(super) fn directory(path: &Path, contents: &str) -> io::Result<bool> {
    fs::create_dir_all(path)?;
    let manifest = path.join(MANIFEST);
    match fs::read(&manifest) {
        Ok(found) => return Ok(found == contents.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let partial = with_suffix(&manifest, ".partial");
    fs::write(&partial, contents)?;
    fs::rename(&partial, &manifest)?;
    Ok(true)
}

/// Whether `path`, which may not exist yet, is inside of `directory`.
pub(super) fn is_inside(path: &Path, directory: &Path) -> bool {
    let Ok(directory) = fs::canonicalize(directory) else { return false };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = absolute.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok());
    existing.is_some_and(|existing| existing.starts_with(directory))
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
            file_name(schema.as_bytes(), table.as_bytes(), "copy").into_string().expect("UTF-8")
        };
        assert_eq!(name("public", "accounts"), "public.accounts.copy");
        assert_eq!(name("s.1", "a/b %\n"), "s%2E1.a%2Fb %25%0A.copy");
        assert_eq!(name("..", "é"), "%2E%2E.é.copy");
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
        assert!(directory(home.path(), "a").expect("made"));
        assert!(directory(home.path(), "a").expect("found"));
        assert!(!directory(home.path(), "b").expect("found"));
        assert!(is_inside(&home.path().join("x/y"), home.path()));
        assert!(!is_inside(home.path(), &home.path().join("x")));
    }
}
