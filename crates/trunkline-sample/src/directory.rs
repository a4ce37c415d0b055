//! A sample's directory: detects whether we may overwrite it, and whether its sample is complete.
//!
//! ```text
//!   empty ─ claim ─▶ MARKER.new, files ─ complete ─▶ MARKER, files ─ remove ─▶ gone
//!                        ▲                               │
//!                        └──────── claim anew ───────────┘
//! ```
//!
//! Each kind of sample has its own marker file. We refuse a directory that is not empty and lacks
//! that marker, because it may contain a cluster, other files, or a sample of another kind.
//!
//! The marker is renamed into place after all files and their directory entries are durable, as in
//! `durable_rename`. So a crash never leaves a marker beside an incomplete sample.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
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

    /// Claims the directory for a sample with the description `text`. From then on, an older sample
    /// there counts as incomplete.
    pub(super) fn claim(&self, text: &str) -> io::Result<()> {
        fs::create_dir_all(self.path)?;
        self.check_ours()?;
        let file = fs::File::create(&self.claim)?;
        io::Write::write_all(&mut &file, text.as_bytes())?;
        file.sync_all()?;
        // Now that the claim is durable, the directory is recognised as ours, and an older sample
        // counts as incomplete.
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

    /// Removes the files that `files` finds below the base directory, the marker, and then every
    /// empty directory.
    pub(super) fn remove(&self, files: impl FnOnce(&Path) -> Vec<PathBuf>) -> io::Result<()> {
        self.check_ours()?;
        files(&self.base()).iter().try_for_each(|path| unlink(path))?;
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

/// Removes a file if it exists.
pub(super) fn unlink(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns one `FileEntry` for each planned file. Fails if a file is missing or doesn't have its
/// full size.
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

/// The number of bytes a sample in `directory` may use: half of its file system's free space.
///
/// # Errors
/// As statvfs(3), for the nearest parent that exists.
pub fn room(directory: &Path) -> io::Result<u64> {
    let existing = directory.ancestors().find(|path| path.is_dir());
    let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stat = rustix::fs::statvfs(existing)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize) / 2)
}
