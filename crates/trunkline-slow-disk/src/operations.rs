//! What the requests of the kernel do in the directory below. Nothing here knows about time.
//!
//! New files belong to the user of the calling process, although this process makes them. The kernel
//! holds the lock of their directory meanwhile, so no process that uses the mount sees them with the
//! wrong owner. Another process may rename files in the directory below, and must not gain anything
//! by that, so the owner of a new file is changed through a descriptor of it, not by its name.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use fuser::{FileAttr, TimeOrNow};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Gid, Mode, OFlags, RenameFlags, SeekFrom, Stat,
    StatVfs, Timestamps, Uid, XattrFlags,
};
use rustix::io::{Errno, Result};
use trunkline_aio::facade::Arc;

use crate::attributes::{attributes, timespec};
use crate::inodes::Inodes;
use crate::open_files::{Entry, OpenDirectory, OpenFile, OpenTable};
use crate::probe::{self, Probe};

/// `SEEK_DATA` and `SEEK_HOLE`, the only two that the kernel passes on.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// The user and the group of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// Attributes to change.
pub(crate) struct Change {
    pub(crate) mode: Option<u32>,
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<TimeOrNow>,
    pub(crate) modified: Option<TimeOrNow>,
}

/// The directory below, and what the kernel has open in it.
pub(crate) struct Operations {
    inodes: Inodes,
    files: OpenTable<OpenFile>,
    directories: OpenTable<OpenDirectory>,
    probe: Arc<Probe>,
    /// Only root can give files to other users, and only then do others have access.
    is_root: bool,
}

impl Operations {
    pub(crate) fn new(inodes: Inodes, probe: Arc<Probe>) -> Operations {
        Operations {
            inodes,
            files: OpenTable::default(),
            directories: OpenTable::default(),
            probe,
            is_root: rustix::process::geteuid().is_root(),
        }
    }

    pub(crate) fn probe(&self) -> &Probe {
        &self.probe
    }

    fn shown(&self, stat: &Stat) -> FileAttr {
        attributes(self.inodes.number(stat), stat)
    }

    pub(crate) fn shown_number(&self, number: u64) -> u64 {
        self.inodes.shown_number(number)
    }

    pub(crate) fn look_up(&self, parent: u64, name: &OsStr) -> Result<FileAttr> {
        self.inodes.look_up(parent, name).map(|stat| self.shown(&stat))
    }

    pub(crate) fn forget(&self, inode: u64, references: u64) {
        self.inodes.forget(inode, references);
    }

    pub(crate) fn attributes(&self, inode: u64) -> Result<FileAttr> {
        if inode == probe::INODE {
            return Ok(Probe::attributes());
        }
        self.inodes.get(inode)?.stat().map(|stat| self.shown(&stat))
    }

    /// Changes attributes, and returns all of them.
    pub(crate) fn change(
        &self,
        inode: u64,
        handle: Option<u64>,
        by: Owner,
        change: Change,
    ) -> Result<FileAttr> {
        let file = self.inodes.get(inode)?;
        if change.user.is_some() || change.group.is_some() {
            let (user, group) = (change.user.map(Uid::from_raw), change.group.map(Gid::from_raw));
            rustix::fs::chownat(&file, "", user, group, AtFlags::EMPTY_PATH)?;
        }
        if let Some(mode) = change.mode {
            rustix::fs::chmod(file.link(), Mode::from_raw_mode(mode & 0o7777))?;
        }
        if let Some(size) = change.size {
            match handle.map(|handle| self.file(handle)).transpose()?.as_deref() {
                Some(OpenFile::File(file)) => rustix::fs::ftruncate(file, size)?,
                _ => rustix::fs::ftruncate(file.open(OFlags::RDWR)?, size)?,
            }
            // The file system below would do this for the user, but not for us.
            if by.user != 0 {
                self.drop_privileges(inode)?;
            }
        }
        if change.accessed.is_some() || change.modified.is_some() {
            let times = Timestamps {
                last_access: timespec(change.accessed),
                last_modification: timespec(change.modified),
            };
            rustix::fs::utimensat(CWD, file.link(), &times, AtFlags::empty())?;
        }
        file.stat().map(|stat| self.shown(&stat))
    }

    /// Clears the set-user-ID bit, and the set-group-ID bit of an executable file.
    pub(crate) fn drop_privileges(&self, inode: u64) -> Result<()> {
        let file = self.inodes.get(inode)?;
        let mode = Mode::from_raw_mode(file.stat()?.st_mode & 0o7777);
        let mut dropped = Mode::SUID;
        if mode.contains(Mode::XGRP) {
            dropped |= Mode::SGID;
        }
        match mode.intersects(dropped) {
            true => rustix::fs::chmod(file.link(), mode - dropped),
            false => Ok(()),
        }
    }

    pub(crate) fn read_link(&self, inode: u64) -> Result<Vec<u8>> {
        let file = self.inodes.get(inode)?;
        rustix::fs::readlinkat(&file, "", Vec::new()).map(|target| target.into_bytes())
    }

    pub(crate) fn make_node(
        &self,
        parent: u64,
        name: &OsStr,
        owner: Owner,
        mode: u32,
        device: u64,
    ) -> Result<FileAttr> {
        let kind = FileType::from_raw_mode(mode);
        let directory = self.inodes.get(parent)?;
        if kind == FileType::RegularFile {
            let how = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
            let permissions = Mode::from_raw_mode(mode & 0o7777);
            let file = rustix::fs::openat(&directory, name, how | OFlags::CLOEXEC, permissions)?;
            return self
                .made(parent, name, |operations| operations.give(parent, &file, owner, mode));
        }
        rustix::fs::mknodat(&directory, name, kind, Mode::from_raw_mode(mode & 0o7777), device)?;
        self.made(parent, name, |operations| operations.give_named((parent, name), kind, owner))
    }

    pub(crate) fn make_directory(
        &self,
        parent: u64,
        name: &OsStr,
        owner: Owner,
        mode: u32,
    ) -> Result<FileAttr> {
        let directory = self.inodes.get(parent)?;
        rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(mode & 0o7777))?;
        // The set-group-ID bit of a directory isn't cleared with its owner.
        let kind = FileType::Directory;
        self.made(parent, name, |operations| operations.give_named((parent, name), kind, owner))
    }

    pub(crate) fn make_symlink(
        &self,
        parent: u64,
        name: &OsStr,
        owner: Owner,
        target: &Path,
    ) -> Result<FileAttr> {
        rustix::fs::symlinkat(target, self.inodes.get(parent)?, name)?;
        let kind = FileType::Symlink;
        self.made(parent, name, |operations| operations.give_named((parent, name), kind, owner))
    }

    /// Gives a new file to its owner, and looks it up. If that fails, nothing is left of the file, so
    /// the program can try again.
    fn made(
        &self,
        parent: u64,
        name: &OsStr,
        give: impl FnOnce(&Operations) -> Result<()>,
    ) -> Result<FileAttr> {
        let given = give(self).and_then(|()| self.look_up(parent, name));
        if given.is_err()
            && let Ok(directory) = self.inodes.get(parent)
        {
            // Only one of them fits the file.
            let _ = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
            let _ = rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR);
        }
        given
    }

    /// Gives an open file to its owner.
    fn give(&self, parent: u64, file: impl AsFd, owner: Owner, mode: u32) -> Result<()> {
        if !self.is_root {
            return Ok(());
        }
        let file = file.as_fd();
        // In a directory with the set-group-ID bit, it has the right group already.
        let keeps_group =
            Mode::from_raw_mode(self.inodes.get(parent)?.stat()?.st_mode).contains(Mode::SGID);
        let group = (!keeps_group).then(|| Gid::from_raw(owner.group));
        let user = Some(Uid::from_raw(owner.user));
        rustix::fs::chownat(file, "", user, group, AtFlags::EMPTY_PATH)?;
        if mode & 0o6000 != 0 {
            // Changing the owner has cleared these bits.
            rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o7777))?;
        }
        Ok(())
    }

    /// Gives what can't be opened when it is made, such as a directory, to its owner. A file of
    /// another kind or another owner isn't the one that we have made.
    fn give_named(
        &self,
        (parent, name): (u64, &OsStr),
        kind: FileType,
        owner: Owner,
    ) -> Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.inodes.get(parent)?, name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&file)?;
        let is_ours = FileType::from_raw_mode(found.st_mode) == kind
            && found.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours {
            return Err(Errno::STALE);
        }
        self.give(parent, file, owner, 0)
    }

    pub(crate) fn remove(&self, parent: u64, name: &OsStr, is_directory: bool) -> Result<()> {
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(self.inodes.get(parent)?, name, flags)
    }

    pub(crate) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: u32,
    ) -> Result<()> {
        let (from, to) = (self.inodes.get(parent)?, self.inodes.get(new_parent)?);
        let flags = RenameFlags::from_bits_retain(flags);
        rustix::fs::renameat_with(from, name, to, new_name, flags)
    }

    pub(crate) fn link(&self, inode: u64, parent: u64, name: &OsStr) -> Result<FileAttr> {
        let (file, directory) = (self.inodes.get(inode)?, self.inodes.get(parent)?);
        rustix::fs::linkat(CWD, file.link(), directory, name, AtFlags::SYMLINK_FOLLOW)?;
        self.look_up(parent, name)
    }

    /// Opens a file.
    ///
    /// Even a file opened only for writing is opened for reading too, if we may: to write a part of a
    /// page into its cache, the kernel must read the rest of the page.
    pub(crate) fn open(&self, inode: u64, flags: i32) -> Result<u64> {
        let file = self.inodes.get(inode)?;
        let mode = OFlags::from_bits_retain(flags as u32) & OFlags::RWMODE;
        let opened = match mode {
            OFlags::RDONLY => file.open(OFlags::RDONLY)?,
            _ => match file.open(OFlags::RDWR) {
                Err(Errno::ACCESS) => file.open(mode)?,
                opened => opened?,
            },
        };
        Ok(self.files.add(OpenFile::File(opened)))
    }

    /// Opens a file for `create` that another process has made meanwhile.
    fn open_existing(&self, inode: u64, flags: i32) -> Result<u64> {
        let handle = self.open(inode, flags)?;
        if OFlags::from_bits_retain(flags as u32).contains(OFlags::TRUNC)
            && let Err(failed) = self.with_file(handle, |file| rustix::fs::ftruncate(file, 0))
        {
            self.close(handle);
            return Err(failed);
        }
        Ok(handle)
    }

    pub(crate) fn open_probe(&self) -> u64 {
        self.files.add(OpenFile::Probe)
    }

    /// Creates a file, or opens one that exists if `flags` permit it.
    pub(crate) fn create(
        &self,
        parent: u64,
        name: &OsStr,
        owner: Owner,
        mode: u32,
        flags: i32,
    ) -> Result<(FileAttr, u64)> {
        let directory = self.inodes.get(parent)?;
        let how = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let permissions = Mode::from_raw_mode(mode & 0o7777);
        match rustix::fs::openat(&directory, name, how, permissions) {
            Ok(file) => {
                let give = |operations: &Operations| operations.give(parent, &file, owner, mode);
                let attributes = self.made(parent, name, give)?;
                Ok((attributes, self.files.add(OpenFile::File(file))))
            }
            Err(Errno::EXIST) if !OFlags::from_bits_retain(flags as u32).contains(OFlags::EXCL) => {
                let attributes = self.look_up(parent, name)?;
                match self.open_existing(attributes.ino.0, flags) {
                    Ok(handle) => Ok((attributes, handle)),
                    Err(failed) => {
                        // The kernel doesn't know that it has a reference.
                        self.forget(attributes.ino.0, 1);
                        Err(failed)
                    }
                }
            }
            Err(failed) => Err(failed),
        }
    }

    /// The file with this handle.
    pub(crate) fn file(&self, handle: u64) -> Result<Arc<OpenFile>> {
        self.files.get(handle)
    }

    pub(crate) fn close(&self, handle: u64) {
        self.files.remove(handle);
    }

    /// Reads until `size` bytes or the end of the file.
    pub(crate) fn read(file: &OwnedFd, offset: u64, size: u32) -> Result<Vec<u8>> {
        let mut data = vec![0; size as usize];
        let mut filled = 0;
        while filled < data.len() {
            match rustix::io::pread(file, &mut data[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(failed) => return Err(failed),
            }
        }
        data.truncate(filled);
        Ok(data)
    }

    /// Writes all of `data`, durably if asked to.
    pub(crate) fn write(&self, handle: u64, offset: u64, data: &[u8], durable: bool) -> Result<()> {
        self.with_file(handle, |file| {
            let mut written = 0;
            while written < data.len() {
                match rustix::io::pwrite(file, &data[written..], offset + written as u64) {
                    Ok(0) => return Err(Errno::IO),
                    Ok(count) => written += count,
                    Err(Errno::INTR) => {}
                    Err(failed) => return Err(failed),
                }
            }
            if durable { rustix::fs::fdatasync(file) } else { Ok(()) }
        })
    }

    pub(crate) fn sync_file(&self, handle: u64, only_data: bool) -> Result<()> {
        self.with_file(handle, |file| sync(file, only_data))
    }

    pub(crate) fn allocate(&self, handle: u64, offset: u64, length: u64, mode: u32) -> Result<()> {
        let mode = FallocateFlags::from_bits_retain(mode);
        self.with_file(handle, |file| rustix::fs::fallocate(file, mode, offset, length))
    }

    pub(crate) fn seek(&self, handle: u64, offset: i64, whence: i32) -> Result<i64> {
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let to = match whence {
            SEEK_DATA => SeekFrom::Data(offset),
            SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        // All other I/O names its offset, so the position of the descriptor doesn't matter.
        let found = self.with_file(handle, |file| rustix::fs::seek(file, to))?;
        i64::try_from(found).map_err(|_| Errno::OVERFLOW)
    }

    fn with_file<T>(&self, handle: u64, body: impl FnOnce(&OwnedFd) -> Result<T>) -> Result<T> {
        match &*self.file(handle)? {
            OpenFile::File(file) => body(file),
            OpenFile::Probe => Err(Errno::BADF),
        }
    }

    pub(crate) fn open_directory(&self, inode: u64) -> Result<u64> {
        let opened = self.inodes.get(inode)?.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(self.directories.add(OpenDirectory::new(opened)))
    }

    pub(crate) fn entries(&self, handle: u64, offset: u64) -> Result<Arc<Vec<Entry>>> {
        self.directories.get(handle)?.entries(offset)
    }

    pub(crate) fn sync_directory(&self, handle: u64, only_data: bool) -> Result<()> {
        sync(self.directories.get(handle)?.descriptor(), only_data)
    }

    pub(crate) fn close_directory(&self, handle: u64) {
        self.directories.remove(handle);
    }

    pub(crate) fn statfs(&self) -> Result<StatVfs> {
        rustix::fs::fstatvfs(self.inodes.get(fuser::INodeNo::ROOT.0)?)
    }

    pub(crate) fn set_attribute(
        &self,
        inode: u64,
        name: &OsStr,
        value: &[u8],
        flags: u32,
    ) -> Result<()> {
        let flags = XattrFlags::from_bits_retain(flags);
        rustix::fs::setxattr(self.inodes.get(inode)?.link(), name, value, flags)
    }

    pub(crate) fn get_attribute(&self, inode: u64, name: &OsStr) -> Result<Vec<u8>> {
        let link = self.inodes.get(inode)?.link();
        grown(|value| rustix::fs::getxattr(link.as_str(), name, value))
    }

    pub(crate) fn list_attributes(&self, inode: u64) -> Result<Vec<u8>> {
        let link = self.inodes.get(inode)?.link();
        grown(|list| rustix::fs::listxattr(link.as_str(), list))
    }

    pub(crate) fn remove_attribute(&self, inode: u64, name: &OsStr) -> Result<()> {
        rustix::fs::removexattr(self.inodes.get(inode)?.link(), name)
    }
}

/// Makes a file or a directory durable in the file system below.
fn sync(file: impl AsFd, only_data: bool) -> Result<()> {
    if only_data { rustix::fs::fdatasync(file) } else { rustix::fs::fsync(file) }
}

/// Reads a value into a buffer of the kernel's largest size for it.
fn grown(read: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut value = vec![0; 1 << 16];
    let length = read(&mut value)?;
    value.truncate(length);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::open_files::OpenFile;

    const ROOT: u64 = 1;

    fn operations(path: &Path) -> Operations {
        let root = rustix::fs::open(path, OFlags::PATH, Mode::empty()).expect("opened");
        Operations::new(Inodes::new(root).expect("a table"), Arc::default())
    }

    fn caller() -> Owner {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Owner { user: user.as_raw(), group: group.as_raw() }
    }

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_be_made() {
        let home = tempfile::tempdir().expect("a directory");
        let operations = operations(home.path());
        fs::write(home.path().join("file"), "").expect("written");
        fs::create_dir(home.path().join("directory")).expect("made");
        for name in ["file", "directory"] {
            let failed = operations.made(ROOT, name.as_ref(), |_| Err(Errno::MFILE));
            assert_eq!(failed.map(|_| ()), Err(Errno::MFILE));
            assert!(!home.path().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn what_another_process_put_there_is_not_given_away() {
        let home = tempfile::tempdir().expect("a directory");
        let operations = operations(home.path());
        std::os::unix::fs::symlink("/", home.path().join("name")).expect("linked");
        let given = operations.give_named((ROOT, "name".as_ref()), FileType::Directory, caller());
        assert_eq!(given, Err(Errno::STALE));
    }

    #[test]
    fn a_file_that_was_made_meanwhile_is_cut_off_if_asked_for() {
        let home = tempfile::tempdir().expect("a directory");
        let operations = operations(home.path());
        fs::write(home.path().join("file"), "old").expect("written");
        let create = |flags: OFlags| {
            let flags = flags.bits().cast_signed();
            operations.create(ROOT, "file".as_ref(), caller(), 0o100_644, flags)
        };
        let (_, handle) = create(OFlags::RDWR | OFlags::CREATE).expect("opened");
        let file = operations.file(handle).expect("open");
        let OpenFile::File(file) = &*file else { panic!("a file of the directory") };
        assert_eq!(Operations::read(file, 0, 10).expect("read"), b"old");
        create(OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC).expect("opened");
        assert_eq!(Operations::read(file, 0, 10).expect("read"), b"");
        let refused = create(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL);
        assert_eq!(refused.map(|_| ()), Err(Errno::EXIST));
    }
}
