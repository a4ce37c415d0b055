//! Sessions that wait for a free handle.
//!
//! Each freed handle wakes one waiter, the most important class first. A waiter that was woken and
//! goes away without taking the handle passes the wake on, so none is lost.

use crate::session::{CLASSES, Class, SessionSlot};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, Ordering};
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Capacity {
    /// Handles that each class may bring the total in use up to.
    limits: [u32; CLASSES.len()],
    count: AtomicU32,
    queues: Mutex<[VecDeque<u32>; CLASSES.len()]>,
}

impl Capacity {
    pub(crate) fn new(limits: [u32; CLASSES.len()], sessions: usize) -> Self {
        let queues = std::array::from_fn(|_| VecDeque::with_capacity(sessions));
        Self { limits, count: AtomicU32::new(0), queues: Mutex::new(queues) }
    }

    pub(crate) fn limit(&self, class: Class) -> u32 {
        self.limits[class as usize]
    }

    /// A session says that it will sleep for want of a handle, and tries once more after this. One
    /// that is queued already keeps its place.
    pub(crate) fn register(&self, class: Class, session: u32) {
        let mut queues = self.queues.lock();
        let queue = &mut queues[class as usize];
        if !queue.contains(&session) {
            queue.push_back(session);
            self.count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The session no longer waits.
    pub(crate) fn deregister(&self, class: Class, session: u32, sessions: &[SessionSlot]) {
        let still_queued = {
            let mut queues = self.queues.lock();
            let queue = &mut queues[class as usize];
            let at = queue.iter().position(|&waiter| waiter == session);
            let found = at.is_some_and(|at| queue.remove(at).is_some());
            if found {
                self.count.fetch_sub(1, Ordering::SeqCst);
            }
            found
        };
        // Somebody woke us for a handle. That may be one that we leave to others, even if we took
        // one: it may have been another. Who is woken in vain goes back to sleep and wakes nobody.
        if !still_queued {
            self.freed(sessions);
        }
    }

    /// A handle was freed: wakes one waiter.
    pub(crate) fn freed(&self, sessions: &[SessionSlot]) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let next = {
            let mut queues = self.queues.lock();
            let next = queues.iter_mut().find_map(VecDeque::pop_front);
            if next.is_some() {
                self.count.fetch_sub(1, Ordering::SeqCst);
            }
            next
        };
        if let Some(session) = next {
            sessions[session as usize].event.signal();
        }
    }
}
