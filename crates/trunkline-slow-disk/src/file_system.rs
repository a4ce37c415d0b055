//! **The file system**: passes requests of the kernel on to the directory below, and delays the
//! replies to those that a disk would have to carry out.
//!
//! | Request | Takes the time of |
//! |---|---|
//! | read that the page cache can't serve, read-ahead | one request of that size |
//! | writeback of dirty pages, direct write | one request of that size |
//! | `fsync`, `fdatasync`, of files and directories | one request without data |
//! | lookup, `stat`, rename and other metadata | nothing: a real file system has it in its cache or log |
//!
//! The kernel keeps its page cache as it does for a disk: reads that hit it never reach us, and a
//! buffered write returns at once and is written back later. `O_DIRECT` bypasses it. The kernel also
//! checks permissions and keeps file locks.
//!
//! [`crate::operations`] carries the requests out in the directory below.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;
use rustix::io::Result;
use trunkline_aio::clock;
use trunkline_aio::facade::Arc;

use crate::open_files::OpenFile;
use crate::operations::{Change, Operations, Owner};
use crate::probe;
use crate::simulated_disk::{Purpose, SimulatedDisk};

/// How long the kernel may use names and attributes without asking again. No other program changes
/// the directory while it is mounted, and the kernel knows its own changes.
const CACHED: Duration = Duration::from_secs(60);

/// Requests of the page cache and asynchronous direct I/O that the kernel sends at a time. Its
/// default of 12 would be the queue depth of the disk.
const IN_FLIGHT_MAX: u16 = 4096;

/// Largest request: 1 MiB, which is also the kernel's own limit.
const REQUEST_MAX: u32 = 1 << 20;

/// `O_DSYNC`, which `O_SYNC` includes. rustix's flag of that name is `O_SYNC` on Linux.
const O_DSYNC: i32 = 0o10000;

/// A directory that is mounted as a slow disk.
pub(crate) struct FileSystem {
    operations: Operations,
    disk: Arc<SimulatedDisk>,
    /// Whether the kernel keeps direct I/O and its page cache consistent if we ask for direct I/O.
    has_direct_io: bool,
}

impl FileSystem {
    pub(crate) fn new(operations: Operations, disk: Arc<SimulatedDisk>) -> FileSystem {
        FileSystem { operations, disk, has_direct_io: false }
    }

    /// How to open a file.
    ///
    /// The page cache is kept from one open to the next, as for a disk. A file opened with `O_DIRECT`
    /// could be left to the kernel's generic code, but that would serialize its writes.
    fn open_flags(&self, flags: i32) -> FopenFlags {
        let is_direct = OFlags::from_bits_retain(flags as u32).contains(OFlags::DIRECT);
        match is_direct && self.has_direct_io {
            true => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES,
            false => FopenFlags::FOPEN_KEEP_CACHE,
        }
    }
}

fn error(error: rustix::io::Errno) -> Errno {
    Errno::from_i32(error.raw_os_error())
}

fn owner(request: &Request) -> Owner {
    Owner { user: request.uid(), group: request.gid() }
}

fn reply_entry(reply: ReplyEntry, found: Result<FileAttr>) {
    match found {
        Ok(attributes) => reply.entry(&CACHED, &attributes, Generation(0)),
        Err(failed) => reply.error(error(failed)),
    }
}

fn reply_empty(reply: ReplyEmpty, done: Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(failed) => reply.error(error(failed)),
    }
}

fn reply_attributes(reply: ReplyAttr, found: Result<FileAttr>) {
    match found {
        Ok(attributes) => reply.attr(&CACHED, &attributes),
        Err(failed) => reply.error(error(failed)),
    }
}

fn reply_value(reply: ReplyXattr, size: u32, value: Result<Vec<u8>>) {
    match value {
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(failed) => reply.error(error(failed)),
    }
}

impl Filesystem for FileSystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in [
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_WRITEBACK_CACHE,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_CACHE_SYMLINKS,
            // Without it the kernel asks for an extended attribute before each write.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        ] {
            // A kernel that lacks one of them works, but is slower.
            let _ = config.add_capabilities(wanted);
        }
        let mapped = InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        self.has_direct_io = config.add_capabilities(mapped).is_ok();
        // These refuse only zero, and a size above their own limit.
        let _ = config.set_max_write(REQUEST_MAX);
        let _ = config.set_max_background(IN_FLIGHT_MAX);
        let _ = config.set_congestion_threshold(IN_FLIGHT_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.operations.probe().find(parent.0, name) {
            Some(attributes) => reply.entry(&Duration::ZERO, &attributes, Generation(0)),
            None => reply_entry(reply, self.operations.look_up(parent.0, name)),
        }
    }

    fn forget(&self, _: &Request, inode: INodeNo, references: u64) {
        self.operations.forget(inode.0, references);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply_attributes(reply, self.operations.attributes(inode.0));
    }

    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change { mode, user, group, size, accessed, modified };
        let handle = handle.map(|handle| handle.0);
        let changed = self.operations.change(inode.0, handle, owner(request), change);
        reply_attributes(reply, changed);
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.operations.read_link(inode.0) {
            Ok(target) => reply.data(&target),
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let made = self.operations.make_node(parent.0, name, owner(request), mode, device.into());
        reply_entry(reply, made);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let made = self.operations.make_directory(parent.0, name, owner(request), mode);
        reply_entry(reply, made);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.operations.remove(parent.0, name, false));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.operations.remove(parent.0, name, true));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        reply_entry(reply, self.operations.make_symlink(parent.0, name, owner(request), target));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let to = (new_parent.0, new_name);
        reply_empty(reply, self.operations.rename((parent.0, name), to, flags.bits()));
    }

    fn link(
        &self,
        _: &Request,
        inode: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        reply_entry(reply, self.operations.link(inode.0, new_parent.0, new_name));
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if inode.0 == probe::INODE {
            return reply
                .opened(FileHandle(self.operations.open_probe()), FopenFlags::FOPEN_DIRECT_IO);
        }
        match self.operations.open(inode.0, flags.0) {
            Ok(handle) => reply.opened(FileHandle(handle), self.open_flags(flags.0)),
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.operations.create(parent.0, name, owner(request), mode, flags) {
            Ok((attributes, handle)) => {
                let (handle, flags) = (FileHandle(handle), self.open_flags(flags));
                reply.created(&CACHED, &attributes, Generation(0), handle, flags);
            }
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let arrival = clock::now();
        let read = self.operations.file(handle.0).and_then(|file| match &*file {
            OpenFile::Probe => Ok((vec![0; size as usize], Purpose::Probe)),
            OpenFile::File(file) => {
                Operations::read(file, offset, size).map(|data| (data, Purpose::File))
            }
        });
        match read {
            // There is nothing to read at the end of the file.
            Ok((data, _)) if data.is_empty() => reply.data(&[]),
            Ok((data, purpose)) => {
                let bytes = data.len() as u64;
                if purpose == Purpose::File {
                    self.disk.counters().count_read(bytes);
                }
                let due = self.disk.admit(purpose, arrival, bytes);
                self.disk.complete(due, move || reply.data(&data));
            }
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let arrival = clock::now();
        // The kernel follows writeback of its cache with an fsync if the file needs it.
        let is_writeback = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let is_durable = !is_writeback && flags.0 & O_DSYNC != 0;
        let written = self.operations.write(handle.0, offset, data, is_durable).and_then(|()| {
            match write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
                true => self.operations.drop_privileges(inode.0),
                false => Ok(()),
            }
        });
        match written {
            Ok(()) => {
                let bytes = data.len() as u64;
                self.disk.counters().count_write(bytes);
                if is_durable {
                    self.disk.counters().count_flush();
                }
                let due = self.disk.admit(Purpose::File, arrival, bytes);
                // A request has at most 1 MiB.
                let count = data.len() as u32;
                self.disk.complete(due, move || reply.written(count));
            }
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, data: bool, reply: ReplyEmpty) {
        let arrival = clock::now();
        self.flush_to_disk(arrival, self.operations.sync_file(handle.0, data), reply);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, handle: FileHandle, data: bool, reply: ReplyEmpty) {
        let arrival = clock::now();
        self.flush_to_disk(arrival, self.operations.sync_directory(handle.0, data), reply);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.operations.close(handle.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.operations.open_directory(inode.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = match self.operations.entries(handle.0, offset) {
            Ok(entries) => entries,
            Err(failed) => return reply.error(error(failed)),
        };
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        for (at, entry) in entries.iter().enumerate().skip(skipped) {
            let number = INodeNo(self.operations.shown_number(entry.number));
            if reply.add(number, at as u64 + 1, entry.kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.operations.close_directory(handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.operations.statfs() {
            Ok(stat) => reply.statfs(
                stat.f_blocks,
                stat.f_bfree,
                stat.f_bavail,
                stat.f_files,
                stat.f_ffree,
                stat.f_bsize as u32,
                stat.f_namemax as u32,
                stat.f_frsize as u32,
            ),
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        inode: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        reply_empty(reply, self.operations.set_attribute(inode.0, name, value, flags as u32));
    }

    fn getxattr(&self, _: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        reply_value(reply, size, self.operations.get_attribute(inode.0, name));
    }

    fn listxattr(&self, _: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        reply_value(reply, size, self.operations.list_attributes(inode.0));
    }

    fn removexattr(&self, _: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.operations.remove_attribute(inode.0, name));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        reply_empty(reply, self.operations.allocate(handle.0, offset, length, mode as u32));
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.operations.seek(handle.0, offset, whence) {
            Ok(offset) => reply.offset(offset),
            Err(failed) => reply.error(error(failed)),
        }
    }
}

impl FileSystem {
    /// Replies to a flush when it completes.
    fn flush_to_disk(&self, arrival: clock::Time, synced: Result<()>, reply: ReplyEmpty) {
        match synced {
            Ok(()) => {
                self.disk.counters().count_flush();
                let due = self.disk.admit(Purpose::File, arrival, 0);
                self.disk.complete(due, move || reply.ok());
            }
            Err(failed) => reply.error(error(failed)),
        }
    }
}
