//! A file that gets its final name only when it is complete.
//!
//! While it is being written, it is called `NAME.partial`. If rows had to be skipped, it is renamed
//! to `NAME.incomplete` instead of its final name:
//!
//! ```text
//!   NAME.partial ──▶ fsync ──▶ rename to NAME              complete: a later run keeps it
//!        │                └──▶ rename to NAME.incomplete   rows were skipped: copied again
//!        └──▶ removed on error
//! ```
//! If a process is killed, `NAME.partial` is left behind, and the next process replaces it. We must
//! not write into an existing file of that name, because it could be a link to another file, or the
//! file of a copy that is still running. Instead, we always create a new file with `O_EXCL` and lock
//! it. We only remove an existing file if it is a regular file that no other copy has locked.
//!
//! Some file systems don't support locks. There, we can't distinguish a file that was left behind
//! from one that is being written, so we leave it to the user to remove it. In any case, before we
//! rename or remove our own file by its name, we check that it still has that name.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::Errno;
use trunkline_engine::copy::Output;

use crate::config_file::at;

/// How many bytes we write before the kernel starts to write them to the disk.
const WINDOW: u64 = 16 << 20;
/// How many windows have time to reach the disk before they stay in the page cache.
const WINDOWS: u64 = 4;

/// A file that gets its final name when it is complete.
#[derive(Debug)]
pub(super) struct PartialFile {
    /// Locked while it is open, if the file system supports locks.
    file: File,
    partial: PathBuf,
    path: PathBuf,
    /// Whether we must not remove the file any more.
    finished: bool,
    /// Bytes written.
    written: u64,
}

impl PartialFile {
    /// Creates the file that will be called `path`.
    ///
    /// # Errors
    /// The errors of open(2). Another copy is writing the file, or something other than a regular
    /// file has its name.
    pub(super) fn create(path: PathBuf) -> io::Result<PartialFile> {
        Self::create_with(path, try_lock)
    }

    fn create_with(path: PathBuf, try_lock: TryLock) -> io::Result<PartialFile> {
        let partial = with_suffix(&path, ".partial");
        // We try again if another process removes the file before we have locked it.
        loop {
            // create_new is O_EXCL, which doesn't follow links either.
            match File::options().write(true).create_new(true).open(&partial) {
                Ok(file) => {
                    let (partial, path) = (partial.clone(), path.clone());
                    let mut created =
                        PartialFile { file, partial, path, finished: false, written: 0 };
                    let lock = try_lock(&created.file);
                    match lock.map_err(|error| at(&created.partial, &error))? {
                        Lock::Acquired if !is_named(&created.file, &created.partial)? => {}
                        Lock::Acquired | Lock::Unsupported => return Ok(created),
                        Lock::Busy => {
                            // The process that has locked our file will remove it.
                            created.finished = true;
                            return Err(busy(&created.partial));
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    remove_abandoned(&partial, try_lock)?;
                }
                Err(error) => return Err(at(&path, &error)),
            }
        }
    }

    /// Makes the kernel start to write the last window to the disk, and drop the windows before it
    /// from the page cache if it has written them. Otherwise a large copy would fill the cache with
    /// pages that are not read again soon, at the expense of the tables that it reads, and all
    /// of them would be written at the end, while [`Output::sync`] waits (decision 0018).
    fn write_behind(&mut self) {
        // Pages that were not written in time stay in the cache. We look at the last windows only,
        // because if the disk is slow, there may be many such pages.
        let start = self.written.saturating_sub(WINDOWS * WINDOW);
        let length = NonZeroU64::new(self.written - start);
        // This doesn't report errors of the disk, and if it fails, the only effect is on speed.
        let _ = fadvise(&self.file, start, length, Advice::DontNeed);
    }

    /// Renames the file to its final name. If `NAME.partial` is no longer our file, we must not
    /// rename it, because it may be a file that another copy is still writing.
    fn rename(&self, complete: bool) -> io::Result<()> {
        if !is_named(&self.file, &self.partial)? {
            let text = "was replaced or removed while it was being written";
            return Err(at(&self.partial, &io::Error::other(text)));
        }
        let incomplete = incomplete(&self.path);
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

impl Output for PartialFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines).map_err(|error| at(&self.path, &error))?;
        let windows = self.written / WINDOW;
        self.written += lines.len() as u64;
        if self.written / WINDOW > windows {
            self.write_behind();
        }
        Ok(())
    }

    // This is the first half of PostgreSQL's durable_rename. If we renamed an unsynced file, a crash
    // could leave an empty file under the final name. Unlike durable_rename, we don't sync the
    // directory afterwards. If a crash undoes the rename, the next run just copies the table again.
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| at(&self.path, &error))
    }

    fn finish(mut self: Box<Self>, complete: bool) -> io::Result<()> {
        let renamed = self.rename(complete);
        self.finished = renamed.is_ok();
        renamed.map_err(|error| at(&self.path, &error))
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.finished && is_named(&self.file, &self.partial).unwrap_or(false) {
            // If this fails, the file's suffix still shows that it's incomplete.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Removes a partial file that was left behind by another process, if it exists.
fn remove_abandoned(partial: &Path, try_lock: TryLock) -> io::Result<()> {
    let named = |error: io::Error| at(partial, &error);
    match fs::symlink_metadata(partial) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(named(io::Error::other("not a regular file"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(named(error)),
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match File::options().write(true).custom_flags(flags.bits() as i32).open(partial) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(named(error)),
    };
    match try_lock(&file).map_err(named)? {
        Lock::Busy => Err(busy(partial)),
        Lock::Unsupported => {
            let text = "exists, and may still be written by another copy; if not, remove it";
            Err(named(io::Error::other(text)))
        }
        // Another process may have removed the file that we locked, and created its own.
        Lock::Acquired if is_named(&file, partial)? => remove(partial).map_err(named),
        Lock::Acquired => Ok(()),
    }
}

fn busy(partial: &Path) -> io::Error {
    at(partial, &io::Error::other("another copy is writing this file"))
}

/// The result of an attempt to lock a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// We have locked it.
    Acquired,
    /// Another process, or another task of this process, has locked it.
    Busy,
    /// The file system doesn't support locks, for example NFS without a lock daemon.
    Unsupported,
}

/// How to lock a file. Tests replace it, because flock(2) works on all of our own file systems.
type TryLock = fn(&File) -> io::Result<Lock>;

/// Tries to lock a file.
pub(super) fn try_lock(file: &File) -> io::Result<Lock> {
    match file.try_lock() {
        Ok(()) => Ok(Lock::Acquired),
        Err(TryLockError::WouldBlock) => Ok(Lock::Busy),
        Err(TryLockError::Error(error)) if is_unsupported(&error) => Ok(Lock::Unsupported),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether flock(2) failed because the file system doesn't support locks.
fn is_unsupported(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP))
}

/// Whether `path` is the name of an open file.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(identity(found) == identity(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at(path, &error)),
    }
}

/// Removes a file if it exists.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The name of an output in which rows are missing.
pub(super) fn incomplete(path: &Path) -> PathBuf {
    with_suffix(path, ".incomplete")
}

/// Appends to the whole name. `Path::with_extension` would replace the last part of it.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::{Builder, MethodKind, OpenOptions, residency};

    #[test]
    fn only_a_complete_file_gets_its_name() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("t.copy");
        let open = || PartialFile::create(path.clone()).map(Box::new);
        let names = || {
            let mut names: Vec<_> = fs::read_dir(home.path())
                .expect("a directory")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
                .collect();
            names.sort();
            names
        };
        let mut output = open().expect("opened");
        output.write(b"1\n").expect("written");
        assert_eq!(names(), ["t.copy.partial"]);
        drop(output);
        assert_eq!(names(), [""; 0]);
        let output = open().expect("opened");
        output.finish(false).expect("finished");
        assert_eq!(names(), ["t.copy.incomplete"]);
        let mut output = open().expect("opened");
        output.write(b"2\n").expect("written");
        output.finish(true).expect("finished");
        assert_eq!(names(), ["t.copy"]);
        assert_eq!(fs::read(&path).expect("read"), b"2\n");
    }

    #[test]
    fn only_an_abandoned_file_is_replaced() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("t.copy");
        let partial = home.path().join("t.copy.partial");
        let refused = |expected: &str| {
            let error = PartialFile::create(path.clone()).expect_err(expected).to_string();
            assert!(error.contains(&format!("t.copy.partial\": {expected}")), "{error}");
        };
        // A symbolic link is neither followed nor removed, even if its target doesn't exist.
        let victim = home.path().join("victim");
        std::os::unix::fs::symlink(&victim, &partial).expect("linked");
        refused("not a regular file");
        fs::write(&victim, "precious").expect("written");
        refused("not a regular file");
        fs::remove_file(&partial).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&partial).status().expect("runs");
        assert!(made.success());
        refused("not a regular file");
        fs::remove_file(&partial).expect("removed");
        // If a killed process has left the file behind, it is removed. It must not be truncated,
        // because it may have other names.
        fs::hard_link(&victim, &partial).expect("linked");
        let mut first = PartialFile::create(path.clone()).expect("created");
        assert_eq!(fs::read(&victim).expect("read"), b"precious");
        // The file of a running copy is not removed.
        refused("another copy is writing this file");
        first.write(b"1\n").expect("written");
        Box::new(first).finish(true).expect("finished");
        assert_eq!(fs::read(&path).expect("read"), b"1\n");
        drop(PartialFile::create(path.clone()).expect("created"));
        assert!(!partial.exists());
    }

    #[test]
    fn what_has_reached_the_disk_leaves_the_page_cache() {
        let aio = Builder::new().method(MethodKind::Sync).start().expect("started");
        // Not in /tmp, which may be a tmpfs.
        let program = std::env::current_exe().expect("a program");
        let home = tempfile::tempdir_in(program.parent().expect("its directory"));
        let home = home.expect("a directory");
        let path = home.path().join("t.copy");
        let cached = || {
            let partial = with_suffix(&path, ".partial");
            let file = aio.open(&partial, OpenOptions::default()).expect("opened");
            residency(&file).expect("measured").cached
        };
        let mut output = PartialFile::create(path.clone()).expect("created");
        let window = vec![b'x'; WINDOW as usize];
        let (end, rest) = window.split_last().expect("not empty");
        output.write(rest).expect("written");
        output.file.sync_data().expect("on disk");
        assert_eq!(cached(), WINDOW);
        output.write(&[*end]).expect("written");
        // The kernel keeps a page that it is using at this moment.
        assert!(cached() < WINDOW / 2, "{} bytes are cached", cached());
    }

    /// Without locks, another copy could replace our file while we write it.
    #[test]
    fn only_our_own_file_is_renamed_or_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("t.copy");
        let partial = home.path().join("t.copy.partial");
        let replaced = || {
            let created = PartialFile::create(path.clone()).expect("created");
            fs::remove_file(&partial).expect("removed");
            fs::write(&partial, "of another copy").expect("written");
            created
        };
        for complete in [true, false] {
            let error = Box::new(replaced()).finish(complete).expect_err("replaced").to_string();
            assert!(error.contains("t.copy.partial\": was replaced or removed"), "{error}");
            drop(replaced());
            assert_eq!(fs::read(&partial).expect("read"), b"of another copy");
            assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 1);
        }
    }

    /// Without locks, a file that was left behind looks like one that is being written.
    #[test]
    fn without_locks_no_existing_file_is_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("t.copy");
        let partial = home.path().join("t.copy.partial");
        let create = || PartialFile::create_with(path.clone(), |_| Ok(Lock::Unsupported));
        let refused = || {
            let error = create().expect_err("refused").to_string();
            let text =
                "t.copy.partial\": exists, and may still be written by another copy; if not, ";
            assert!(error.contains(text), "{error}");
        };
        let mut first = create().expect("created");
        first.write(b"1\n").expect("written");
        refused();
        assert_eq!(fs::read(&partial).expect("still there"), b"1\n");
        Box::new(first).finish(true).expect("finished");
        assert_eq!(fs::read(&path).expect("read"), b"1\n");
        fs::write(&partial, "left behind").expect("written");
        refused();
        assert_eq!(fs::read(&partial).expect("still there"), b"left behind");
        fs::remove_file(&partial).expect("removed by the user");
        drop(create().expect("created"));
        assert!(!partial.exists());
    }

    #[test]
    fn file_systems_without_locks_are_recognized() {
        let is_unsupported = |errno: Errno| is_unsupported(&errno.into());
        for errno in [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP] {
            assert!(is_unsupported(errno), "{errno}");
        }
        assert!(!is_unsupported(Errno::IO));
    }
}
