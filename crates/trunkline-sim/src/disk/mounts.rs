//! Mounts that hang, and who waits at them: whatever is given to one stays there until it is released.
//!
//! Two kinds of I/O get stuck: those of a blocking executor, whose threads stand before the mount, and
//! those of a device, which keeps them and says how many. Everybody waits on the disk's bell, which
//! rings with every change and every operation.

use super::{Disk, State};
use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::sync::atomic::Ordering;

/// How long an overtaken I/O waits for another one to overtake it.
const OVERTAKEN_WITHIN: Duration = Duration::from_millis(2);

const EVERYBODY: u32 = u32::MAX >> 1;

impl Disk {
    /// Makes a mount hang: nothing given to it ends until [`Disk::release`].
    pub fn hold(&self, device: u64) {
        self.state.lock().held.insert(device);
        self.ring();
    }

    /// The mount works again.
    pub fn release(&self, device: u64) {
        self.state.lock().held.remove(&device);
        self.ring();
    }

    /// Every mount works again.
    pub fn release_all(&self) {
        self.state.lock().held.clear();
        self.ring();
    }

    /// Waits until `count` I/Os have got stuck at mounts that hang.
    pub fn wait_stuck(&self, count: usize) {
        self.wait(|state| state.stuck + state.held_in_device >= count);
    }

    /// For a device: how many of its I/Os are stuck.
    pub(crate) fn set_held_in_device(&self, count: usize) {
        let changed = std::mem::replace(&mut self.state.lock().held_in_device, count) != count;
        if changed {
            self.ring();
        }
    }

    /// Whether the mount of an open file hangs.
    pub(crate) fn is_held(&self, file_id: u64) -> bool {
        self.state.lock().is_held(file_id)
    }

    /// For a blocking executor: stands before a mount that hangs.
    pub(crate) fn pass(&self, file_id: u64) {
        if !self.is_held(file_id) {
            return;
        }
        self.state.lock().stuck += 1;
        self.ring();
        self.wait(|state| !state.is_held(file_id));
        self.state.lock().stuck -= 1;
        self.ring();
    }

    /// For a blocking executor: lets another operation go first, if there is one.
    pub(crate) fn be_overtaken(&self) {
        let before = self.performed();
        let until = clock::now().after(OVERTAKEN_WITHIN);
        loop {
            let seen = self.bell_value();
            let left = until.since(clock::now());
            if self.performed() != before || left.is_zero() {
                return;
            }
            self.bell.wait(seen, Some(left));
        }
    }

    /// For a blocking executor: takes time.
    pub(crate) fn delay(time: Duration) {
        pause(time);
    }

    /// For a device: sleeps until the bell rings after `seen`, or for `timeout`.
    pub(crate) fn wait_bell(&self, seen: u32, timeout: Option<Duration>) {
        self.bell.wait(seen, timeout);
    }

    pub(crate) fn bell_value(&self) -> u32 {
        self.bell.word().load(Ordering::SeqCst)
    }

    pub(crate) fn ring(&self) {
        self.bell.word().fetch_add(1, Ordering::SeqCst);
        self.bell.wake(EVERYBODY);
    }

    fn wait(&self, done: impl Fn(&State) -> bool) {
        loop {
            let seen = self.bell_value();
            if done(&self.state.lock()) {
                return;
            }
            self.bell.wait(seen, None);
        }
    }
}

impl State {
    fn is_held(&self, file_id: u64) -> bool {
        let name = self.open.get(&file_id);
        let image = name.and_then(|name| self.files.get(name));
        image.is_some_and(|image| self.held.contains(&image.device))
    }
}
