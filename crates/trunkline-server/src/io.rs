//! The two directions of a connection.
//!
//! A task of the network's runtime reads what the client sends into a buffer of a limited size, whatever
//! the session is doing. So the end of the client is noticed even if a statement keeps all threads of
//! the other runtime busy. [`Incoming`] takes from that buffer until a message is complete. [`Outgoing`]
//! collects messages, and writes them when there are 64 KiB, or when the client is to have them.
//!
//! ```text
//!   socket ──▶ task that reads ──▶ up to 64 KiB ──▶ Incoming      messages
//!                  │ the client has gone
//!                  ▼
//!              SessionCanceller, while a statement runs
//! ```

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use trunkline_aio::facade::Mutex;
use trunkline_query::SessionCanceller;

/// The reading half of a connection, of any kind.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// The writing half.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Messages are written when this many bytes have been collected.
const WRITE_BYTES: usize = 64 << 10;

/// This many bytes of later messages are read ahead.
const READ_AHEAD_BYTES: usize = 64 << 10;

/// How much is read at once.
const READ_BYTES: usize = 16 << 10;

/// A client that hasn't taken anything for this long is slow.
const SLOW: Duration = Duration::from_millis(50);

/// What the client sends.
pub(crate) struct Incoming {
    pipe: Arc<Pipe>,
    /// What was taken from the pipe.
    buffer: BytesMut,
    reading: AbortHandle,
}

impl Incoming {
    /// Starts to read, in a task of the current runtime.
    pub(crate) fn new(reader: Reader) -> Self {
        let pipe = Arc::new(Pipe::default());
        let reading = tokio::spawn(read(reader, Arc::clone(&pipe))).abort_handle();
        Self { pipe, buffer: BytesMut::new(), reading }
    }

    /// Waits until there are `length` bytes, and returns whether there are. The buffer grows with what
    /// arrives, not with what a message claims to be.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) async fn fill(&mut self, length: usize) -> io::Result<bool> {
        while self.buffer.len() < length {
            let arrived = self.pipe.take().await?;
            if arrived.is_empty() {
                return Ok(false);
            }
            self.buffer.unsplit(arrived);
        }
        Ok(true)
    }

    /// The bytes that have arrived.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Adds to the bytes what has arrived meanwhile, without waiting.
    pub(crate) fn collect(&mut self) {
        if let Some(arrived) = self.pipe.try_take_bytes() {
            self.buffer.unsplit(arrived);
        }
    }

    /// Takes the first bytes, which must have arrived.
    pub(crate) fn take(&mut self, length: usize) -> BytesMut {
        let taken = self.buffer.split_to(length.min(self.buffer.len()));
        // The memory of a large message goes with the message.
        if self.buffer.is_empty() || taken.len() > READ_AHEAD_BYTES {
            self.buffer = BytesMut::from(&*self.buffer);
        }
        taken
    }

    /// Terminates the session if the client goes before the result is dropped, or has gone already.
    pub(crate) fn watch(&self, session: &SessionCanceller) -> Watch {
        let mut state = self.pipe.state.lock();
        let has_gone = state.ended.is_some();
        state.watcher = Some(session.clone());
        drop(state);
        if has_gone {
            session.terminate();
        }
        Watch(Arc::clone(&self.pipe))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// While this exists, a session ends with its client.
pub(crate) struct Watch(Arc<Pipe>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.state.lock().watcher = None;
    }
}

/// What was read and not taken yet.
#[derive(Default)]
struct Pipe {
    state: Mutex<PipeState>,
    /// There are bytes, or the client has gone.
    arrived: Notify,
    /// Bytes were taken.
    taken: Notify,
}

#[derive(Default)]
struct PipeState {
    bytes: BytesMut,
    /// How the stream has ended. The error is taken by the one that reads it.
    ended: Option<io::Result<()>>,
    /// The session to terminate when the stream ends.
    watcher: Option<SessionCanceller>,
}

impl Pipe {
    /// Takes all bytes, and waits for some if there are none. The result is empty at the end.
    async fn take(&self) -> io::Result<BytesMut> {
        loop {
            if let Some(taken) = self.try_take() {
                return taken;
            }
            // The session is the only one that waits, so a notification before this is kept for it.
            self.arrived.notified().await;
        }
    }

    /// Takes all bytes, if there are any.
    fn try_take_bytes(&self) -> Option<BytesMut> {
        let bytes = self.state.lock().bytes.split();
        if bytes.is_empty() {
            return None;
        }
        self.taken.notify_one();
        Some(bytes)
    }

    /// Takes all bytes, if there are any or there won't be any more.
    fn try_take(&self) -> Option<io::Result<BytesMut>> {
        let mut state = self.state.lock();
        let bytes = state.bytes.split();
        if !bytes.is_empty() {
            self.taken.notify_one();
            return Some(Ok(bytes));
        }
        let ended = state.ended.as_mut()?;
        Some(std::mem::replace(ended, Ok(())).map(|()| bytes))
    }

    /// Waits until more may be read.
    async fn room(&self) {
        while self.state.lock().bytes.len() >= READ_AHEAD_BYTES {
            self.taken.notified().await;
        }
    }
}

/// Reads until the client goes.
async fn read(mut reader: Reader, pipe: Arc<Pipe>) {
    let mut bytes = BytesMut::new();
    let ended = loop {
        pipe.room().await;
        bytes.reserve(READ_BYTES);
        match reader.read_buf(&mut bytes).await {
            Ok(0) => break Ok(()),
            Ok(_) => pipe.state.lock().bytes.unsplit(bytes.split()),
            Err(error) => break Err(error),
        }
        pipe.arrived.notify_one();
    };
    let mut state = pipe.state.lock();
    state.ended = Some(ended);
    let watcher = state.watcher.take();
    drop(state);
    pipe.arrived.notify_one();
    if let Some(watcher) = watcher {
        watcher.terminate();
    }
}

/// What the client receives.
pub(crate) struct Outgoing {
    writer: Writer,
    /// Messages that haven't been written.
    pub(crate) buffer: Vec<u8>,
    /// True once the server stops.
    stopping: watch::Receiver<bool>,
}

impl Outgoing {
    pub(crate) fn new(writer: Writer, stopping: watch::Receiver<bool>) -> Self {
        Self { writer, buffer: Vec::new(), stopping }
    }

    /// Writes what has been collected, and ends the stream; inside TLS, with close_notify.
    pub(crate) async fn close(&mut self) {
        // The client may have gone.
        if self.flush().await.is_ok() {
            let _ended = self.writer.shutdown().await;
        }
    }

    /// Whether there is so much that it should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() >= WRITE_BYTES
    }

    /// Writes what has been collected.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.write(|| {}).await
    }

    /// Writes what has been collected. `slow` is called if the client doesn't take it for a while.
    ///
    /// # Errors
    /// The connection is broken, or the server stops while the client takes nothing.
    pub(crate) async fn write(&mut self, mut slow: impl FnMut()) -> io::Result<()> {
        let mut written = 0;
        while let Some(rest) = self.buffer.get(written..).filter(|rest| !rest.is_empty()) {
            let count = match tokio::time::timeout(SLOW, self.writer.write(rest)).await {
                Ok(count) => count?,
                Err(_elapsed) => {
                    slow();
                    tokio::select! {
                        biased;
                        count = self.writer.write(rest) => count?,
                        _ = self.stopping.wait_for(|stopping| *stopping) => {
                            return Err(io::ErrorKind::ConnectionAborted.into());
                        }
                    }
                }
            };
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            written += count;
        }
        self.buffer.clear();
        // A row of a gigabyte shouldn't keep its memory.
        self.buffer.shrink_to(4 * WRITE_BYTES);
        self.writer.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_leaves_a_small_buffer() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(1 << 20);
            let mut incoming = Incoming::new(Box::new(server));
            let long = vec![7; 1 << 20];
            client.write_all(&long).await.unwrap();
            assert!(incoming.fill(long.len()).await.unwrap());
            client.write_all(b"next").await.unwrap();
            assert!(incoming.fill(long.len() + 4).await.unwrap());
            assert_eq!(incoming.take(long.len()), long);
            assert_eq!(incoming.bytes(), b"next");
            assert!(incoming.buffer.capacity() <= READ_BYTES, "{}", incoming.buffer.capacity());
        });
    }
}
