//! **Reply queue**: holds each reply back until its request completes on the simulated disk.
//!
//! A single thread sends the delayed replies, in the order of their completion times. No thread waits
//! for a request, so any number of requests can be in flight. Errors, replies about metadata, and
//! replies that are due already are sent by the FUSE thread.
//!
//! ```text
//!   FUSE thread ── read DIR, then push(due, reply) ──▶ heap ── at `due` ──▶ reply to the kernel
//! ```
//! If reading or writing DIR took longer than the disk should take, the reply is late. It is sent at
//! once and counted, because the disk was then slower than its profile says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;

use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::{Arc, Futex, Mutex, thread};

/// Sends a reply.
pub(crate) type Send = Box<dyn FnOnce() + core::marker::Send>;

/// Replies that are due later. Clones share the queue.
#[derive(Clone)]
pub(crate) struct ReplyQueue(Arc<Shared>);

struct Shared {
    replies: Mutex<Replies>,
    /// Signalled when the thread has to look at the queue again.
    changed: Futex,
}

#[derive(Default)]
struct Replies {
    heap: BinaryHeap<Reverse<Held>>,
    /// Number of replies pushed so far: those due at the same time are sent in this order.
    pushed: u64,
    closed: bool,
}

struct Held {
    due: Time,
    number: u64,
    send: Send,
}

impl Held {
    fn key(&self) -> (Time, u64) {
        (self.due, self.number)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl ReplyQueue {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system refuses to start a thread.
    pub(crate) fn start() -> io::Result<ReplyQueue> {
        let queue = ReplyQueue::without_thread();
        let runner = queue.clone();
        thread::spawn("disk-timer", move || runner.run())?;
        Ok(queue)
    }

    fn without_thread() -> ReplyQueue {
        let replies = Mutex::new(Replies::default());
        ReplyQueue(Arc::new(Shared { replies, changed: Futex::new(0) }))
    }

    /// Sends a reply at `due`, or now if that has passed.
    pub(crate) fn push(&self, due: Time, send: impl FnOnce() + core::marker::Send + 'static) {
        let mut replies = self.0.replies.lock();
        let number = replies.pushed;
        replies.pushed += 1;
        let is_next = replies.heap.peek().is_none_or(|Reverse(next)| due < next.due);
        replies.heap.push(Reverse(Held { due, number, send: Box::new(send) }));
        drop(replies);
        // The thread sleeps until the next reply is due. Only an earlier one changes that.
        if is_next {
            self.0.changed.signal();
        }
    }

    /// Ends the thread. Replies that are still held back are dropped; the kernel has no use for them
    /// after the unmount.
    pub(crate) fn close(&self) {
        self.0.replies.lock().closed = true;
        self.0.changed.signal();
    }

    fn run(&self) {
        // The kernel may delay a timer by 50 µs to wake up less often. We want the exact time, and
        // without the permission the only effect is an error of that size.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            let epoch = self.0.changed.epoch();
            let Some(next) = self.send_due() else { return };
            let timeout = next.map(|due| due.since(clock::now()));
            if timeout.is_none_or(|timeout| !timeout.is_zero()) {
                self.0.changed.wait(epoch, timeout);
            }
        }
    }

    /// Sends the replies that are due, and returns when the next one is due. `None` means that the
    /// queue is closed.
    fn send_due(&self) -> Option<Option<Time>> {
        loop {
            let mut replies = self.0.replies.lock();
            if replies.closed {
                return None;
            }
            let now = clock::now();
            match replies.heap.peek() {
                None => return Some(None),
                Some(Reverse(next)) if next.due > now => return Some(Some(next.due)),
                Some(_) => {}
            }
            let held = replies.heap.pop();
            // Sending copies the data into the kernel. FUSE threads must be able to push meanwhile.
            drop(replies);
            if let Some(Reverse(held)) = held {
                (held.send)();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn replies_are_sent_in_the_order_of_their_times() {
        let queue = ReplyQueue::without_thread();
        let sent = Arc::new(Mutex::new(Vec::new()));
        for (name, nanos) in [("late", 3), ("early", 1), ("second", 3), ("first", 0)] {
            let sent = Arc::clone(&sent);
            queue.push(Time::from_nanos(nanos), move || sent.lock().push(name));
        }
        assert_eq!(queue.send_due(), Some(None));
        assert_eq!(*sent.lock(), ["first", "early", "late", "second"]);
        queue.close();
        assert_eq!(queue.send_due(), None);
    }

    #[test]
    fn no_reply_is_sent_before_it_is_due() {
        let queue = ReplyQueue::start().expect("started");
        let (sent, done) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Futex::new(0)));
        let begin = clock::now();
        for (name, millis) in [("late", 30), ("early", 10), ("second", 30), ("now", 0)] {
            let (sent, done) = (Arc::clone(&sent), Arc::clone(&done));
            let due = begin.after(Duration::from_millis(millis));
            queue.push(due, move || {
                assert!(clock::now() >= due, "{name} was sent before it was due");
                sent.lock().push(name);
                done.signal();
            });
        }
        while sent.lock().len() < 4 {
            let epoch = done.epoch();
            if sent.lock().len() < 4 {
                done.wait(epoch, None);
            }
        }
        queue.close();
    }
}
