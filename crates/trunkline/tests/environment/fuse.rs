//! In-process FUSE file system that serves files from memory and injects faults.
//!
//! To simulate a hang, the file system doesn't reply to a request. Only the kernel and the process
//! that reads the file have to wait, so the test itself can go on. It can end all of these waits by
//! releasing the replies.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, Request, SessionACL,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::mount::{UnmountFlags, unmount};
use trunkline_aio::clock;
use trunkline_aio::facade::{Arc, Mutex};

/// Time limit for each wait. The machine may be busy, so this is far longer than any wait should
/// take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long the kernel may cache attributes. We turn this cache off. Otherwise, the kernel would
/// replace a wrong file size in its cache with the correct one, and the fault would occur only
/// once.
const BELIEF: Duration = Duration::ZERO;

/// A fault to inject into a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault.
    None,
    /// Reading the file, or listing the directory, hangs until [`Mount::release`] and then fails.
    HangRead,
    /// Opening the file hangs until [`Mount::release`] and then fails.
    HangOpen,
    /// Reading the file hangs until [`Mount::release`] and then succeeds.
    AnswersLate,
    /// Reads that include these bytes fail.
    Eio(Range<u64>),
    /// `stat` reports this size.
    Claims(u64),
    /// The file can't be opened for direct I/O.
    NoDirect,
}

enum Content {
    Directory(BTreeMap<String, usize>),
    File(Vec<u8>),
}

struct Node {
    content: Content,
    fault: Fault,
}

/// The files and directories. The kernel's inode numbers start at 1, so a node's index is its inode
/// number minus one.
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree { nodes: vec![Node::directory()] }
    }

    /// Adds a file and its parent directories.
    pub(crate) fn file(mut self, path: &str, bytes: Vec<u8>, fault: Fault) -> Tree {
        let at = self.node(path);
        self.nodes[at] = Node { content: Content::File(bytes), fault };
        self
    }

    /// Adds a directory with a fault.
    pub(crate) fn directory(mut self, path: &str, fault: Fault) -> Tree {
        let at = self.node(path);
        self.nodes[at].fault = fault;
        self
    }

    /// Index of the node at `path`. Missing nodes are created as directories.
    fn node(&mut self, path: &str) -> usize {
        let mut at = 0;
        for name in path.split('/') {
            let fresh = self.nodes.len();
            let Content::Directory(entries) = &mut self.nodes[at].content else {
                panic!("{path}: below a file")
            };
            at = *entries.entry(name.to_owned()).or_insert(fresh);
            if at == fresh {
                self.nodes.push(Node::directory());
            }
        }
        at
    }
}

impl Node {
    fn directory() -> Node {
        Node { content: Content::Directory(BTreeMap::new()), fault: Fault::None }
    }

    fn attributes(&self, at: usize) -> FileAttr {
        let (kind, perm, size) = match &self.content {
            Content::Directory(_) => (FileType::Directory, 0o755, 4096),
            Content::File(bytes) => (FileType::RegularFile, 0o644, bytes.len() as u64),
        };
        let size = if let Fault::Claims(claim) = self.fault { claim } else { size };
        FileAttr {
            ino: INodeNo(at as u64 + 1),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

/// Replies being held back; `None` once they have been released.
type Held = Arc<Mutex<Option<Vec<Box<dyn FnOnce() + Send>>>>>;

struct Server {
    tree: Tree,
    held: Held,
    /// Nodes that were read to the end but not yet closed.
    finished: Mutex<BTreeSet<usize>>,
    /// Receives one byte per event.
    events: PipeWriter,
}

/// An event that a test can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Event {
    /// A reply was held back.
    Hung,
    /// The end of a file was read.
    End,
    /// A file was read to the end and closed.
    Finished,
}

impl Server {
    fn get(&self, number: INodeNo) -> Option<(usize, &Node)> {
        let at = usize::try_from(number.0).ok()?.checked_sub(1)?;
        Some((at, self.tree.nodes.get(at)?))
    }

    fn hold(&self, reply: impl FnOnce() + Send + 'static) {
        match self.held.lock().as_mut() {
            Some(held) => held.push(Box::new(reply)),
            None => return reply(),
        }
        self.notify(Event::Hung);
    }

    fn notify(&self, event: Event) {
        // Fails if the test is over and has closed the pipe.
        let _ = (&self.events).write(&[event as u8]);
    }

    fn open_node(&self, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let Some((_, node)) = self.get(number) else { return reply.error(Errno::ENOENT) };
        let direct = flags.0 as u32 & OFlags::DIRECT.bits() != 0;
        match node.fault {
            Fault::HangOpen => self.hold(move || reply.error(Errno::EIO)),
            Fault::NoDirect if direct => reply.error(Errno::EINVAL),
            // We bypass the page cache here. With the page cache, the kernel would trust the file
            // size we report, and return zeros for the missing part.
            Fault::Claims(_) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            _ => reply.opened(FileHandle(0), FopenFlags::empty()),
        }
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // This works around a bug in some kernels (such as 6.18). If a direct read through io_uring
        // reaches the end of a file that is shorter than its reported size, they fill the rest of
        // the buffer with data from the start of the file.
        let lies = |node: &Node| matches!(node.fault, Fault::Claims(_));
        if self.tree.nodes.iter().any(lies) {
            config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).expect("an old capability");
        }
        Ok(())
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
        if self.get(number).is_some_and(|(at, _)| self.finished.lock().remove(&at)) {
            self.notify(Event::Finished);
        }
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.get(parent).and_then(|(_, node)| match &node.content {
            Content::Directory(entries) => entries.get(name.to_str()?).copied(),
            Content::File(_) => None,
        });
        match found {
            Some(at) => {
                reply.entry(&BELIEF, &self.tree.nodes[at].attributes(at), Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.get(number) {
            Some((at, node)) => reply.attr(&BELIEF, &node.attributes(at)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.open_node(number, flags, reply);
    }

    fn opendir(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.open_node(number, flags, reply);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some((at, Node { content: Content::File(bytes), fault })) = self.get(number) else {
            return reply.error(Errno::EISDIR);
        };
        let end = (offset + u64::from(size)).min(bytes.len() as u64);
        let wanted = bytes.get(offset as usize..end as usize).unwrap_or_default();
        match fault {
            Fault::HangRead => self.hold(move || reply.error(Errno::EIO)),
            Fault::AnswersLate => {
                let wanted = wanted.to_vec();
                self.hold(move || reply.data(&wanted));
            }
            Fault::Eio(range) if offset < range.end && range.start < end => {
                reply.error(Errno::EIO);
            }
            _ => {
                if end == bytes.len() as u64 {
                    self.finished.lock().insert(at);
                    self.notify(Event::End);
                }
                reply.data(wanted);
            }
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some((_, Node { content: Content::Directory(entries), fault })) = self.get(number)
        else {
            return reply.error(Errno::ENOTDIR);
        };
        if *fault == Fault::HangRead {
            return self.hold(move || reply.error(Errno::EIO));
        }
        for (position, (name, &at)) in entries.iter().enumerate().skip(offset as usize) {
            let attributes = self.tree.nodes[at].attributes(at);
            if reply.add(attributes.ino, position as u64 + 1, attributes.kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// A mounted file system. It is unmounted when this struct is dropped, even if some reads hang. If
/// this process is killed, `fusermount3` unmounts it instead.
pub(crate) struct Mount {
    path: PathBuf,
    held: Held,
    events: PipeReader,
    session: Option<BackgroundSession>,
}

impl Mount {
    /// Creates the directory `path` and mounts `tree` there.
    pub(crate) fn new(path: PathBuf, tree: Tree) -> Mount {
        fs::create_dir(&path).expect("directory made");
        let held: Held = Arc::new(Mutex::new(Some(Vec::new())));
        let (reader, writer) = io::pipe().expect("pipe");
        let finished = Mutex::default();
        let server = Server { tree, held: Arc::clone(&held), finished, events: writer };
        let mut config = Config::default();
        let name = MountOption::FSName("trunkline-test".into());
        config.mount_options = vec![name, MountOption::RO, MountOption::AutoUnmount];
        // `AutoUnmount` requires this.
        config.acl = SessionACL::All;
        let session = fuser::spawn_mount(server, &path, &config).expect("mounted");
        Mount { path, held, events: reader, session: Some(session) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until `event` has happened `count` times since the last wait.
    pub(crate) fn wait_for(&mut self, event: Event, count: usize) {
        let deadline = clock::now().after(PATIENCE);
        let mut seen = 0;
        while seen < count {
            let left = Timespec::try_from(deadline.since(clock::now())).expect("a short time");
            let ready = poll(&mut [PollFd::new(&self.events, PollFlags::IN)], Some(&left));
            let happened = ready.expect("polled") == 1;
            assert!(happened, "{seen} of {count} times {event:?} within {PATIENCE:?}");
            let mut byte = [0];
            self.events.read_exact(&mut byte).expect("read");
            seen += usize::from(byte[0] == event as u8);
        }
    }

    /// Number of replies that are being held back.
    pub(crate) fn held(&self) -> usize {
        self.held.lock().as_ref().map_or(0, Vec::len)
    }

    /// Releases all held replies. From now on, replies are no longer held back.
    pub(crate) fn release(&self) {
        let held = self.held.lock().take();
        held.into_iter().flatten().for_each(|reply| reply());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.release();
        // We force the unmount, so that further open requests fail and the session's thread exits.
        // We also detach the mount, because a reader may still have a file open.
        let unmounted = unmount(&self.path, UnmountFlags::FORCE | UnmountFlags::DETACH);
        if let Some(session) = self.session.take().filter(|_| unmounted.is_ok()) {
            // The session reports that it was aborted.
            let _ = session.join();
        }
    }
}
