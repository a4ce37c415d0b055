//! **A mounted slow disk.**
//!
//! ```text
//!   program ──▶ page cache ──▶ FUSE ──▶ 16 threads ──▶ directory below
//!                                │          │
//!                                │          └── reply, completion time ──▶ queue
//!                                └◀────────────── at that time ─────────── timer thread
//! ```
//! The FUSE threads do only the I/O in the directory below. A reply that has to wait is passed to
//! the timer thread, so the number of threads doesn't limit how many requests are in flight.
//!
//! A request arrives when a FUSE thread takes it. If the directory below is so slow that all threads
//! wait for it, later requests wait in the kernel first, and that time isn't counted as late.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trunkline_aio::facade::{Arc, Futex, Mutex, thread};

use crate::file_system::FileSystem;
use crate::inodes::Inodes;
use crate::mount_point::{self, MountError};
use crate::mount_table::{Mounted, SOURCE, mounted_at};
use crate::operations::Operations;
use crate::probe::Probe;
use crate::profile::Profile;
use crate::reply_queue::ReplyQueue;
use crate::simulated_disk::SimulatedDisk;
use crate::statistics::Statistics;

/// Threads that do I/O in the directory below. Their number limits only how many requests wait for
/// it at a time.
const THREADS: usize = 16;

/// A directory that is mounted as a slow disk. It stays mounted until it is unmounted, even if this
/// value is dropped.
///
/// The process that serves a mount must not use it. If it is killed while one of its threads waits
/// for a reply, that thread never ends, because no thread is left to reply, and it keeps the
/// connection to the kernel open. So another process has to [`measure`](crate::measure) and to
/// [`unmount`](crate::unmount).
pub struct SlowDisk {
    mount_point: PathBuf,
    /// Major and minor number of the mounted file system.
    device: String,
    profile: Profile,
    disk: Arc<SimulatedDisk>,
    probe: Arc<Probe>,
    session: Arc<SessionState>,
    cleaned: u32,
}

/// The state of the thread that serves the mount.
struct SessionState {
    /// Signalled when the mount has ended.
    ended: Arc<Futex>,
    result: Mutex<Option<io::Result<()>>>,
}

impl SlowDisk {
    /// Mounts `directory` at `mount_point`. `ended` is signalled when the mount has ended, also if
    /// another program unmounts it.
    ///
    /// Removes mounts there that killed processes have left. Raises this process's limit on open
    /// files and clears its umask.
    ///
    /// # Errors
    /// The directories aren't suitable, or FUSE isn't available.
    pub fn mount(
        directory: &Path,
        mount_point: &Path,
        profile: Profile,
        ended: Arc<Futex>,
    ) -> Result<SlowDisk, MountError> {
        let mount_point = mount_point::absolute(mount_point)?;
        // The lock comes first: of two starts at the same time, only one may remove a stale mount.
        let root = mount_point::lock(directory)?;
        let cleaned = mount_point::clean(&mount_point)?;
        mount_point::check(directory, &mount_point)?;
        prepare_process();
        let open = |error: io::Error| MountError::io("open", directory, error);
        let lock = root.try_clone().map_err(open)?;
        let inodes = Inodes::new(root).map_err(|error| open(error.into()))?;
        let queue = ReplyQueue::start()
            .map_err(|error| MountError::io("start a thread for", &mount_point, error))?;
        let disk = Arc::new(SimulatedDisk::new(&profile, queue));
        let probe = Arc::new(Probe::default());
        let operations = Operations::new(inodes, Arc::clone(&probe));
        let file_system = FileSystem::new(operations, Arc::clone(&disk));
        let fuse = |error| MountError::Fuse { path: mount_point.clone(), error };
        let session = Session::new(file_system, &mount_point, &config()).map_err(|error| {
            disk.close();
            fuse(error)
        })?;
        let mounted = mounted_at(&mount_point)
            .and_then(|it| {
                it.filter(Mounted::is_slow_disk).ok_or_else(|| io::ErrorKind::NotFound.into())
            })
            .map_err(fuse)?;
        let (serving, rest) = started(session).map_err(fuse)?;
        // It would unmount whatever is mounted at the mount point when the session has ended.
        std::mem::forget(rest);
        let state = Arc::new(SessionState { ended, result: Mutex::new(None) });
        let served = Arc::clone(&state);
        thread::spawn("fuse", move || {
            let result =
                serving.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            let result = result.or_else(ended_meanwhile);
            // A process that was forked meanwhile may have a copy of the descriptor for a moment, so
            // closing ours is not enough.
            let _ = flock(&lock, FlockOperation::Unlock);
            *served.result.lock() = Some(result);
            served.ended.signal();
        })
        .map_err(fuse)?;
        relax_writeback(&mounted.device);
        let device = mounted.device;
        Ok(SlowDisk { mount_point, device, profile, disk, probe, session: state, cleaned })
    }

    /// The absolute path of the mount point.
    pub fn mount_point(&self) -> &Path {
        &self.mount_point
    }

    /// Major and minor number of the mounted file system, such as `0:45`. It identifies this mount
    /// among others at the same mount point.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How many mounts of killed processes were removed from the mount point.
    pub fn cleaned(&self) -> u32 {
        self.cleaned
    }

    /// The most files that the kernel can know at a time. Programs get `EMFILE` beyond that.
    pub fn files_max(&self) -> u64 {
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }

    /// What the disk has done so far.
    pub fn statistics(&self) -> Statistics {
        self.disk.statistics()
    }

    /// Whether the mount has ended.
    pub fn has_ended(&self) -> bool {
        self.session.result.lock().is_some()
    }

    /// Adds the file that [`measure`](crate::measure) reads, or removes it.
    pub fn show_probe(&self, shown: bool) {
        self.probe.set_exists(shown);
    }

    /// Waits until the mount has ended, and returns what the disk has done.
    ///
    /// # Errors
    /// Serving the mount failed.
    pub fn wait(self) -> io::Result<Statistics> {
        let ended = &self.session.ended;
        loop {
            let epoch = ended.epoch();
            if let Some(result) = self.session.result.lock().take() {
                self.disk.close();
                return result.map(|()| self.disk.statistics());
            }
            ended.wait(epoch, None);
        }
    }
}

/// A thread of `fuser`, and what must be kept for it.
type Started = (std::thread::JoinHandle<io::Result<()>>, BackgroundSession);

/// Starts to serve. The session's handle can be waited for without the rest.
fn started(session: Session<FileSystem>) -> io::Result<Started> {
    let mut started = session.spawn()?;
    // The handle can't be moved out without dropping the rest, which unmounts, so we put the handle of
    // a thread that does nothing in its place.
    #[expect(clippy::disallowed_methods, reason = "fuser wants a handle of the standard library")]
    let empty = std::thread::Builder::new().spawn(|| Ok(()))?;
    let serving = std::mem::replace(&mut started.guard, empty);
    Ok((serving, started))
}

/// A thread that took a request while the mount ended, such as the last `close` after a detach, gets
/// this error instead of the ordinary one.
fn ended_meanwhile(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::ConnectionAborted { Ok(()) } else { Err(error) }
}

/// Lets the kernel keep as many dirty pages as for a disk. By default, FUSE gets 1 % of the amount,
/// after which each write waits. Only root may change that, and only some kernels have both
/// settings, so a failure is ignored.
fn relax_writeback(device: &str) {
    let settings = Path::new("/sys/class/bdi").join(device);
    let _ = fs::write(settings.join("strict_limit"), "0");
    let _ = fs::write(settings.join("max_ratio"), "100");
}

fn config() -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(SOURCE.to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    // Other users need a mount by root, or a line in the configuration of FUSE.
    let is_root = rustix::process::geteuid().is_root();
    config.acl = if is_root { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(THREADS);
    config
}

/// Every file that the kernel knows has a descriptor, so we need as many as we may have. New files
/// get exactly the mode that the kernel passes, from which it has removed the user's umask.
fn prepare_process() {
    let limit = getrlimit(Resource::Nofile);
    // Raising it up to the maximum is always permitted.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    rustix::process::umask(Mode::empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn the_end_of_a_mount_is_no_error() {
        assert!(ended_meanwhile(Errno::CONNABORTED.into()).is_ok());
        assert!(ended_meanwhile(Errno::IO.into()).is_err());
    }
}
