//! The thread that flushes the WAL when no session waits for it: PostgreSQL's WAL writer.
//!
//! It makes asynchronous commits durable after `wal_writer_delay`, creates segments ahead, and flushes for tasks,
//! which must not block. Sessions that may block flush themselves, because handing the flush to another thread can
//! cost as much as the flush on a fast disk.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::facade::thread;
use trunkline_aio::{Aio, Canceller, Session};

use super::writer::LogWriter;

/// The WAL writer (`walwriter`). Dropping it stops the thread without a final flush; tasks that wait in
/// [`Log::poll_flush`](crate::log::Log::poll_flush) get an error.
pub struct LogFlusher {
    log: Arc<LogWriter>,
    stopping: Arc<AtomicBool>,
    canceller: Canceller,
    thread: Option<thread::JoinHandle>,
}

impl LogFlusher {
    /// Starts the thread for a log. `delay` is `wal_writer_delay`: how long an asynchronous commit may wait.
    ///
    /// # Errors
    /// The kernel can't create another thread, or all sessions of the instance are in use.
    pub fn start(aio: &Aio, log: &Arc<LogWriter>, delay: Duration) -> io::Result<Self> {
        let session = aio.session().map_err(io::Error::other)?;
        let canceller = session.canceller();
        let stopping = Arc::new(AtomicBool::new(false));
        let (theirs, is_stopping) = (Arc::clone(log), Arc::clone(&stopping));
        let body = move || run(&theirs, session, delay, &is_stopping);
        log.requests.set_served(true);
        let thread = thread::spawn("log flusher", body);
        let thread = thread.inspect_err(|_| log.requests.set_served(false))?;
        Ok(Self { log: Arc::clone(log), stopping, canceller, thread: Some(thread) })
    }
}

fn run(log: &LogWriter, mut session: Session, delay: Duration, stopping: &AtomicBool) {
    while !stopping.load(Ordering::SeqCst) {
        let epoch = log.requests.epoch();
        // After a failed flush, current and later waiters get the error from the log.
        let _ = log.flush_up_to(&mut session, log.requests.wanted());
        // A session that needs a segment creates it itself if this fails, and gets the error.
        let _ = log.create_segments_ahead();
        if !stopping.load(Ordering::SeqCst) && log.requests.wait(epoch, delay) {
            let _ = log.flush_up_to(&mut session, log.complete());
        }
    }
}

impl Drop for LogFlusher {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.log.requests.signal();
        self.canceller.cancel();
        if let Some(thread) = self.thread.take() {
            // The thread itself has already printed its panic.
            let _ = thread.join();
        }
        self.log.requests.set_served(false);
    }
}

impl fmt::Debug for LogFlusher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogFlusher({:?})", self.log)
    }
}
