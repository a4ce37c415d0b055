//! Compares the files of a backup with its manifest, as `pg_verifybackup` does.
//!
//! ```text
//!   manifest ──┬─▶ missing │ other size │ right size ─▶ read ─▶ other checksum
//!   directory ─┴─▶ not listed
//! ```
//! A few files are neither expected nor surprising, because they are changed before a backup is
//! started, or checked by other means: see [`is_ignored`].
//!
//! Files are read once from start to end, several at a time, so that the reads of one overlap with the
//! checksums of another.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use trunkline_aio::facade::atomic::{AtomicU64, AtomicUsize, Ordering};
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_engine::job::Observer;

use super::checksum::{Algorithm, to_hex};
use super::finding::{Finding, MANIFEST};
use super::manifest::Manifest;
use crate::exit::Failure;
use crate::monitor::JobMonitor;

/// How much of a file is read at once.
const READ_BYTES: usize = 1 << 20;

/// Bounds of the number of files that are read at the same time. Even one processor waits for several
/// reads.
const READERS: (usize, usize) = (4, 16);

/// What the comparison has found.
#[derive(Debug, Default)]
pub(super) struct FilesReport {
    /// Files in the manifest that must be in the directory.
    pub(super) listed: usize,
    /// Of those, the files whose checksum was compared.
    pub(super) compared: usize,
    /// Bytes that were read for it.
    pub(super) bytes: u64,
    pub(super) findings: Vec<Finding>,
    /// Files and directories that we had no permission to read.
    pub(super) denied: u64,
}

/// Whether a file may be there or not, and may have any contents. The list is that of
/// `pg_verifybackup`: the log is checked by reading it, and the other files are how a user configures
/// recovery.
pub(super) fn is_ignored(path: &Path) -> bool {
    let files = [MANIFEST, "postgresql.auto.conf", "recovery.signal", "standby.signal"];
    path.starts_with("pg_wal") || files.iter().any(|name| path == Path::new(name))
}

/// Compares the files in `root` with the manifest. `mappings` are tablespaces that lie elsewhere: the
/// target of the link, and the directory to read instead.
pub(super) fn check_files(
    root: &Path,
    mappings: &[(PathBuf, PathBuf)],
    manifest: &Manifest,
    monitor: &Arc<JobMonitor>,
) -> Result<FilesReport, Failure> {
    let mut found = Listing::of(root, mappings);
    let mut report = FilesReport::default();
    let mut contents = Vec::new();
    for (path, expected) in manifest.files.iter().filter(|(path, _)| !is_ignored(path)) {
        report.listed += 1;
        let Some((place, size)) = found.files.remove(path) else {
            if !found.hidden.iter().any(|folder| path.starts_with(folder)) {
                let text = format!("does not exist, expected {} bytes", expected.size);
                report.findings.push(Finding::new(path, "missing_file", text));
            }
            continue;
        };
        if size != expected.size {
            let text = format!("has {size} bytes, expected {}", expected.size);
            report.findings.push(Finding::new(path, "file_size", text));
        } else if let Some((algorithm, expected)) = &expected.checksum {
            let (path, expected) = (path.clone(), expected.clone());
            contents.push(Contents { path, place, size, algorithm: *algorithm, expected });
        }
    }
    for path in found.files.keys() {
        let text = "is not listed in backup_manifest";
        report.findings.push(Finding::new(path, "extra_file", text));
    }
    report.findings.append(&mut found.findings);
    report.denied = found.denied;
    report.compared = contents.len();
    compare_contents(contents, monitor, &mut report)?;
    report.findings.sort();
    Ok(report)
}

/// The files in a directory.
#[derive(Debug, Default)]
struct Listing {
    /// By path relative to the directory: where the file is, and its size.
    files: BTreeMap<PathBuf, (PathBuf, u64)>,
    /// Directories that could not be read, so nothing is known about their files.
    hidden: Vec<PathBuf>,
    findings: Vec<Finding>,
    denied: u64,
}

impl Listing {
    fn of(root: &Path, mappings: &[(PathBuf, PathBuf)]) -> Listing {
        let mut listing = Listing::default();
        let mut folders = vec![(PathBuf::new(), root.to_owned())];
        while let Some((path, place)) = folders.pop() {
            let read = fs::read_dir(&place).and_then(|entries| {
                entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()
            });
            match read {
                Ok(names) => {
                    for name in names {
                        let (path, place) = (path.join(&name), place.join(&name));
                        if !is_ignored(&path) {
                            folders.extend(listing.add(path, place, mappings));
                        }
                    }
                }
                Err(error) => listing.hide(path, &error),
            }
        }
        listing
    }

    /// Adds an entry. Returns it if it is a directory.
    fn add(
        &mut self,
        path: PathBuf,
        place: PathBuf,
        mappings: &[(PathBuf, PathBuf)],
    ) -> Option<(PathBuf, PathBuf)> {
        let kind = match fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_dir() => return Some((path, place)),
            Ok(metadata) if metadata.is_file() => {
                self.files.insert(path, (place, metadata.len()));
                return None;
            }
            Ok(metadata) => metadata.file_type(),
            Err(error) => {
                self.hide(path, &error);
                return None;
            }
        };
        let is_tablespace = path.parent() == Some(Path::new("pg_tblspc"));
        if !kind.is_symlink() || !is_tablespace {
            let found = if kind.is_symlink() { "a symbolic link" } else { "a special file" };
            let text = format!("is {found}, expected a regular file or a directory");
            self.findings.push(Finding::new(&path, "file_type", text));
            return None;
        }
        match tablespace(&place, mappings) {
            Ok(target) => return Some((path, target)),
            Err(error) => self.hide(path, &error),
        }
        None
    }

    /// Nothing is known about a file, or about the files in a directory.
    fn hide(&mut self, path: PathBuf, error: &io::Error) {
        self.denied += u64::from(error.kind() == io::ErrorKind::PermissionDenied);
        self.findings.push(Finding::new(
            &path,
            "unreadable",
            format!("could not be read: {error}"),
        ));
        self.hidden.push(path);
    }
}

/// The directory of a tablespace. A relative link, which no server makes, starts at the link's folder.
fn tablespace(link: &Path, mappings: &[(PathBuf, PathBuf)]) -> io::Result<PathBuf> {
    let target = fs::read_link(link)?;
    let mapped = mappings.iter().find(|(old, _)| *old == target).map(|(_, new)| new.clone());
    let place = mapped.unwrap_or_else(|| link.to_owned());
    match fs::metadata(&place)?.is_dir() {
        true => Ok(place),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// A file that is read.
#[derive(Debug)]
struct Contents {
    path: PathBuf,
    place: PathBuf,
    size: u64,
    algorithm: Algorithm,
    expected: Vec<u8>,
}

/// What the readers share.
struct Readers {
    contents: Vec<Contents>,
    next: AtomicUsize,
    bytes: AtomicU64,
    denied: AtomicU64,
    findings: Mutex<Vec<Finding>>,
    monitor: Arc<JobMonitor>,
}

/// Reads all files and compares their checksums.
fn compare_contents(
    contents: Vec<Contents>,
    monitor: &Arc<JobMonitor>,
    report: &mut FilesReport,
) -> Result<(), Failure> {
    let total = contents.iter().map(|contents| contents.size).sum();
    monitor.begins(contents.len(), total);
    let count = thread::available_parallelism().clamp(READERS.0, READERS.1).min(contents.len());
    let readers = Arc::new(Readers {
        contents,
        next: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
        denied: AtomicU64::new(0),
        findings: Mutex::default(),
        monitor: Arc::clone(monitor),
    });
    let start = |_| {
        let readers = Arc::clone(&readers);
        thread::spawn("backup files", move || readers.run()).map_err(Failure::cannot_run)
    };
    let started = (0..count).map(start).collect::<Result<Vec<_>, _>>()?;
    for reader in started {
        reader.join().map_err(|_| Failure::cannot_run("a worker thread panicked"))?;
    }
    monitor.clear();
    report.bytes = readers.bytes.load(Ordering::Relaxed);
    report.denied += readers.denied.load(Ordering::Relaxed);
    report.findings.append(&mut readers.findings.lock());
    Ok(())
}

impl Readers {
    /// Takes files until there is none left, or the user interrupts.
    fn run(&self) {
        let mut buffer = vec![0; READ_BYTES];
        while !self.monitor.cancelled() {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(contents) = self.contents.get(next) else { return };
            let finding = match self.check(contents, &mut buffer) {
                Ok(finding) => finding,
                Err(error) => {
                    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
                    self.denied.fetch_add(u64::from(is_denied), Ordering::Relaxed);
                    let text = format!("could not be read: {error}");
                    Some(Finding::new(&contents.path, "unreadable", text))
                }
            };
            self.findings.lock().extend(finding);
        }
    }

    /// Compares the checksum of a file.
    fn check(&self, contents: &Contents, buffer: &mut [u8]) -> io::Result<Option<Finding>> {
        let Contents { path, place, size, algorithm, expected } = contents;
        let mut file = File::open(place)?;
        // Only a hint; some file systems don't take it.
        let _ = fadvise(&file, 0, None, Advice::Sequential);
        let (mut hasher, mut found) = (algorithm.hasher(), 0);
        loop {
            let count = match file.read(buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if count == 0 {
                break;
            }
            hasher.update(buffer.get(..count).unwrap_or_default());
            found += count as u64;
            let bytes = self.bytes.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
            self.monitor.progressed(bytes);
            if self.monitor.cancelled() {
                return Ok(None);
            }
        }
        if found != *size {
            let text = format!("had {size} bytes, but {found} when it was read");
            return Ok(Some(Finding::new(path, "file_size", text)));
        }
        let computed = hasher.finish();
        if computed == *expected {
            return Ok(None);
        }
        let (name, computed, expected) = (algorithm.name(), to_hex(&computed), to_hex(expected));
        let text = format!("has the {name} {computed}, expected {expected}");
        Ok(Some(Finding::new(path, "file_checksum", text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_recovery_and_the_log_are_ignored() {
        for (path, expected) in [
            ("backup_manifest", true),
            ("pg_wal/000000010000000000000002", true),
            ("pg_wal", true),
            ("postgresql.auto.conf", true),
            ("recovery.signal", true),
            ("standby.signal", true),
            ("postgresql.conf", false),
            ("pg_walx/a", false),
            ("base/5/recovery.signal", false),
            ("backup_manifest.old", false),
        ] {
            assert_eq!(is_ignored(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn only_links_of_tablespaces_are_followed() {
        let (root, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let at = |path: &str| root.path().join(path);
        for folder in ["pg_tblspc", "base", "pg_wal"] {
            fs::create_dir(at(folder)).expect("made");
        }
        fs::write(other.path().join("a"), "12").expect("written");
        fs::write(at("base/b"), "1").expect("written");
        fs::write(at("pg_wal/c"), "").expect("written");
        std::os::unix::fs::symlink("/moved", at("pg_tblspc/1")).expect("linked");
        std::os::unix::fs::symlink(other.path(), at("base/5")).expect("linked");
        std::os::unix::fs::symlink("/nowhere/at/all", at("pg_tblspc/2")).expect("linked");
        let mappings = [("/moved".into(), other.path().to_owned())];
        let found = Listing::of(root.path(), &mappings);
        let sizes: Vec<_> =
            found.files.iter().map(|(path, (_, size))| (path.to_str(), *size)).collect();
        assert_eq!(sizes, [(Some("base/b"), 1), (Some("pg_tblspc/1/a"), 2)]);
        let mut texts: Vec<_> = found.findings.iter().map(ToString::to_string).collect();
        texts.sort();
        assert_eq!(
            texts,
            [
                "base/5: is a symbolic link, expected a regular file or a directory",
                "pg_tblspc/2: could not be read: No such file or directory",
            ]
        );
        assert_eq!((found.hidden, found.denied), (vec!["pg_tblspc/2".into()], 0));
    }
}
