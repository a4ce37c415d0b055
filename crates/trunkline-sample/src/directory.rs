//! The directory of a sample. This module determines whether we may overwrite the directory, and
//! whether the sample in it is complete.
//!
//! ```text
//!   empty ─ claim ─▶ MARKER.new, files ─ complete ─▶ MARKER, files ─ remove ─▶ gone
//!                        ▲                               │
//!                        └──────── claim anew ───────────┘
//! ```
//!
//! Each kind of sample has a different marker file. If a directory is not empty and doesn't contain
//! the right marker file, we refuse to use it, because it might contain a cluster, another kind of
//! sample, or other files that must not be overwritten.
//!
//! We write all of the sample's files first and make sure that they and their directory entries are
//! durable. Only then do we rename the marker file into place, as in `durable_rename`. If we crash
//! while writing a new sample, the marker is therefore not there. The marker alone doesn't prove
//! that nothing has happened to the files since: `remove` deletes it after the files. Before we
//! reuse a sample, we therefore also check the files themselves (`entries`).

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, OFlags};
use trunkline_engine::datadir::FileEntry;
use trunkline_format::{BLOCK_SIZE, Fork, Oid, RelationFile};

use crate::page_writer::NewFile;

/// The tablespace of all samples: `pg_default`.
pub(super) const TABLESPACE: Oid = Oid(1663);
/// The database of all samples: `postgres`.
pub(super) const DATABASE: Oid = Oid(5);

/// A directory for one kind of sample.
pub(super) struct Directory<'a> {
    path: &'a Path,
    /// Exists if the sample is complete.
    marker: PathBuf,
    /// Exists while the sample is being written: the marker's name before the rename.
    claim: PathBuf,
}

impl<'a> Directory<'a> {
    pub(super) fn new(path: &'a Path, marker: &str) -> Self {
        Self { path, marker: path.join(marker), claim: path.join(format!("{marker}.new")) }
    }

    /// The directory that contains the relation files.
    pub(super) fn base(&self) -> PathBuf {
        self.path.join("base").join(DATABASE.to_string())
    }

    /// Whether the directory contains a complete sample with the description `text`.
    pub(super) fn is_complete(&self, text: &str) -> bool {
        fs::read_to_string(&self.marker).is_ok_and(|found| found == text)
    }

    /// Claims the directory for a new sample, which is described by `text`. After this, an older
    /// sample in the same directory is treated as incomplete.
    pub(super) fn claim(&self, text: &str) -> io::Result<()> {
        fs::create_dir_all(self.path)?;
        self.check_ours()?;
        let file = fs::File::create(&self.claim)?;
        io::Write::write_all(&mut &file, text.as_bytes())?;
        file.sync_all()?;
        // The claim is now durable, so we will recognise the directory as ours even without the
        // marker. Removing the marker makes an older sample in it incomplete.
        unlink(&self.marker)?;
        fs::create_dir_all(self.base())
    }

    /// Marks the sample as complete. All its files must already be durable.
    pub(super) fn complete(&self) -> io::Result<()> {
        // The names of the files must be durable before the marker is.
        for directory in [self.base(), self.path.join("base")] {
            fs::File::open(directory)?.sync_all()?;
        }
        fs::rename(&self.claim, &self.marker)?;
        fs::File::open(self.path)?.sync_all()
    }

    /// Removes all files that `files` finds below the base directory, then the marker file, and
    /// finally all directories that are now empty.
    pub(super) fn remove(&self, files: impl FnOnce(&Path) -> Vec<PathBuf>) -> io::Result<()> {
        self.check_ours()?;
        for path in files(&self.base()) {
            truncate(&path);
            unlink(&path)?;
        }
        unlink(&self.marker)?;
        unlink(&self.claim)?;
        // Remove directories from the innermost outwards. Stop at the first one that contains other
        // files.
        for directory in [self.base(), self.path.join("base"), self.path.to_owned()] {
            match fs::remove_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => break,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Returns an error unless the directory is empty or contains a sample of this kind.
    fn check_ours(&self) -> io::Result<()> {
        let ours = self.marker.is_file() || self.claim.is_file();
        if ours || fs::read_dir(self.path)?.next().is_none() {
            return Ok(());
        }
        let text = format!("\"{}\" is not empty and contains no sample", self.path.display());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    }
}

/// Truncates a file to length 0, as the server does before it removes a relation. Another thread may
/// still be in an fsync of the file, and the process can't exit until that fsync completes. Once the
/// file is truncated, its pages no longer have to be written. We leave the file alone if we can't
/// truncate it, or if it has other names.
fn truncate(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let Ok(file) = fs::File::options().write(true).custom_flags(flags).open(path) else { return };
    if file.metadata().is_ok_and(|found| found.is_file() && found.nlink() == 1) {
        let _ = file.set_len(0);
    }
}

/// Removes a file if it exists.
pub(super) fn unlink(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns a `FileEntry` for each file that the sample should have. Returns an error if one of the
/// files is missing or does not have its full size.
pub(super) fn entries(plan: &[NewFile]) -> io::Result<Vec<FileEntry>> {
    plan.iter().map(entry).collect()
}

fn entry(new: &NewFile) -> io::Result<FileEntry> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(&new.path)?;
    let bytes = u64::from(new.blocks) * BLOCK_SIZE as u64;
    let name = new.path.file_name().and_then(|name| name.to_str());
    let Some(name) = name.and_then(RelationFile::parse) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    // A truncated segment means that something has changed the sample since it was completed.
    if !metadata.is_file() || metadata.len() != bytes {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(FileEntry {
        path: new.path.clone(),
        tablespace: TABLESPACE,
        database: DATABASE,
        relfilenode: name.relfilenode,
        fork: Fork::Main,
        segment: name.segment,
        bytes,
        device: metadata.dev(),
    })
}

/// Drops the files from the page cache. `POSIX_FADV_DONTNEED` skips dirty pages, so we fsync the
/// files first.
pub(super) fn evict(files: &[FileEntry]) -> io::Result<()> {
    for file in files {
        let file = fs::File::open(&file.path)?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

/// Returns the number of bytes that a sample in `directory` may use, which is half the free
/// space on its file system.
///
/// # Errors
/// As statvfs(3), for the nearest parent that exists.
pub fn room(directory: &Path) -> io::Result<u64> {
    let existing = directory.ancestors().find(|path| path.is_dir());
    let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stat = rustix::fs::statvfs(existing)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize) / 2)
}
