//! A bounded channel for messages between threads, with many senders and one receiver.
//!
//! Messages are received in the order they were sent. A sender blocks if the channel is full. For
//! that reason the I/O path, which must never block, doesn't use channels. It uses bitmaps, and
//! queues that have room for every handle.

use super::futex::Futex;
use super::mutex::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    /// Incremented on every change. Both senders and receivers sleep on this word. A thread must
    /// read the word before it checks the queue, so that it won't go to sleep if the queue changes
    /// in between.
    changed: Futex,
    capacity: usize,
}

/// The queue, and whether the senders and the receiver still exist. Once one side is gone, the
/// other side no longer waits.
#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    senders: usize,
    has_receiver: bool,
}

/// The sending side. Clone it for more senders.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// The receiving side.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Shared<T>>);

/// The other side is gone. Returns the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnected<T>(pub T);

/// Creates a channel that holds up to `capacity` messages (at least 1).
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.max(1);
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            queue: VecDeque::with_capacity(capacity),
            senders: 1,
            has_receiver: true,
        }),
        changed: Futex::new(0),
        capacity,
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Shared<T> {
    fn notify(&self) {
        // Wake all threads. Senders and receivers sleep on the same word, so if we woke only one
        // thread, it might be on the wrong side.
        self.changed.signal();
    }
}

impl<T> Sender<T> {
    /// Waits for room and sends.
    ///
    /// # Errors
    /// The receiver is gone.
    pub fn send(&self, message: T) -> Result<(), Disconnected<T>> {
        loop {
            // Read this before checking the queue, so that a change in between makes `wait` return
            // immediately.
            let seen = self.0.changed.epoch();
            {
                let mut state = self.0.state.lock();
                if !state.has_receiver {
                    return Err(Disconnected(message));
                }
                if state.queue.len() < self.0.capacity {
                    state.queue.push_back(message);
                    break;
                }
            }
            self.0.changed.wait(seen, None);
        }
        self.0.notify();
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Waits for a message; `None` once every sender is gone and the channel is empty.
    pub fn receive(&self) -> Option<T> {
        loop {
            let seen = self.0.changed.epoch();
            let received = {
                let mut state = self.0.state.lock();
                let received = state.queue.pop_front();
                if received.is_none() && state.senders == 0 {
                    return None;
                }
                received
            };
            if received.is_some() {
                self.0.notify();
                return received;
            }
            self.0.changed.wait(seen, None);
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().senders -= 1;
        self.0.notify();
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.state.lock().has_receiver = false;
        self.0.notify();
    }
}
