//! Simulates mounts that hang, as an NFS mount does when its server is down. I/O to such a mount
//! neither completes nor fails until the mount is released.
//!
//! There are two ways to wait for a hung mount. A blocking executor blocks the thread that is
//! executing the I/O. The simulated device just keeps the I/O in its queue, and reports how many of
//! its I/Os are blocked. All threads that are waiting for something sleep on the same futex. We
//! wake all of them after every operation and every other change, and each thread must then recheck
//! its own condition.

use super::{Disk, DiskState};
use std::time::Duration;
use trunkline_aio::clock;

/// How long a reordered I/O waits for another I/O to be executed first. We need a timeout, because
/// it is possible that there is no other I/O.
const OVERTAKEN_WITHIN: Duration = Duration::from_millis(2);

impl Disk {
    /// Makes a mount hang: its I/O does not complete until [`Disk::release`].
    pub fn hold(&self, device: u64) {
        self.state.lock().held.insert(device);
        self.notify();
    }

    /// Makes a hung mount respond again.
    pub fn release(&self, device: u64) {
        self.state.lock().held.remove(&device);
        self.notify();
    }

    /// Makes all hung mounts respond again.
    pub fn release_all(&self) {
        self.state.lock().held.clear();
        self.notify();
    }

    /// Waits until hung mounts block at least `count` I/Os.
    pub fn wait_stuck(&self, count: usize) {
        self.wait(|state| state.stuck + state.held_in_device >= count);
    }

    /// The simulated device calls this to report how many of its I/Os are blocked. We only wake the
    /// waiting threads if the number has changed. Otherwise, the device would keep waking itself,
    /// because it is one of the threads that wait here.
    pub(crate) fn set_held_in_device(&self, count: usize) {
        let changed = std::mem::replace(&mut self.state.lock().held_in_device, count) != count;
        if changed {
            self.notify();
        }
    }

    /// Whether an open file's mount hangs.
    pub(crate) fn is_held(&self, file_id: u64) -> bool {
        self.state.lock().is_held(file_id)
    }

    /// Called by a blocking executor: waits while the file's mount hangs.
    pub(crate) fn pass(&self, file_id: u64) {
        if !self.is_held(file_id) {
            return;
        }
        self.state.lock().stuck += 1;
        self.notify();
        self.wait(|state| !state.is_held(file_id));
        self.state.lock().stuck -= 1;
        self.notify();
    }

    /// Called by a blocking executor: waits until another operation has executed, or for at most
    /// [`OVERTAKEN_WITHIN`].
    pub(crate) fn be_overtaken(&self) {
        let before = self.performed();
        let until = clock::now().after(OVERTAKEN_WITHIN);
        loop {
            let seen = self.change_count();
            let left = until.since(clock::now());
            if self.performed() != before || left.is_zero() {
                return;
            }
            self.changed.wait(seen, Some(left));
        }
    }

    /// Called by the device: sleeps until a change after `seen`, or for `timeout`.
    pub(crate) fn wait_for_change(&self, seen: u32, timeout: Option<Duration>) {
        self.changed.wait(seen, timeout);
    }

    /// The event count. A waiter must read it before checking its condition.
    pub(crate) fn change_count(&self) -> u32 {
        self.changed.current()
    }

    pub(crate) fn notify(&self) {
        self.changed.signal();
    }

    /// Sleeps until `done` returns true.
    fn wait(&self, done: impl Fn(&DiskState) -> bool) {
        self.changed.wait_until(|| done(&self.state.lock()));
    }
}

impl DiskState {
    fn is_held(&self, file_id: u64) -> bool {
        let name = self.open.get(&file_id);
        let image = name.and_then(|name| self.files.get(name));
        image.is_some_and(|image| self.held.contains(&image.device))
    }
}
