//! What the requests of the kernel do in the directory below. Nothing here knows about time.
//!
//! New files belong to the user of the calling process, although this process makes them. The kernel
//! holds the lock of their directory meanwhile, so no other process sees them with the wrong owner.

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
        rustix::fs::mknodat(&directory, name, kind, Mode::from_raw_mode(mode & 0o7777), device)?;
        self.give(parent, name, owner, mode)
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
        self.give(parent, name, owner, mode & 0o1777)
    }

    pub(crate) fn make_symlink(
        &self,
        parent: u64,
        name: &OsStr,
        owner: Owner,
        target: &Path,
    ) -> Result<FileAttr> {
        rustix::fs::symlinkat(target, self.inodes.get(parent)?, name)?;
        self.give(parent, name, owner, 0)
    }

    /// Gives a new file to its owner, and looks it up. In a directory with the set-group-ID bit, it
    /// has the right group already.
    fn give(&self, parent: u64, name: &OsStr, owner: Owner, mode: u32) -> Result<FileAttr> {
        if self.is_root {
            let directory = self.inodes.get(parent)?;
            let keeps_group = Mode::from_raw_mode(directory.stat()?.st_mode).contains(Mode::SGID);
            let group = (!keeps_group).then(|| Gid::from_raw(owner.group));
            let user = Some(Uid::from_raw(owner.user));
            rustix::fs::chownat(&directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
            if mode & 0o6000 != 0 {
                // Changing the owner has cleared these bits.
                let mode = Mode::from_raw_mode(mode & 0o7777);
                rustix::fs::chmodat(&directory, name, mode, AtFlags::empty())?;
            }
        }
        self.look_up(parent, name)
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
                let attributes = self.give(parent, name, owner, mode)?;
                Ok((attributes, self.files.add(OpenFile::File(file))))
            }
            Err(Errno::EXIST) if !OFlags::from_bits_retain(flags as u32).contains(OFlags::EXCL) => {
                let attributes = self.look_up(parent, name)?;
                let handle = self.open(attributes.ino.0, flags)?;
                Ok((attributes, handle))
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
