//! The two directions of a connection.
//!
//! [`Incoming`] reads what the client sends until a message is complete. [`Outgoing`] collects messages,
//! and writes them when there are 64 KiB, or when the client is to have them.
//!
//! Both are used by the session only, which reads when it has nothing else to do. So a message wakes one
//! thread, and what a client sends too early stays in the kernel.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::watch;
use trunkline_query::SessionCanceller;

use crate::client_ends::{ClientEnd, ClientEnds, Watch};
use crate::socket::Stream;

/// Messages are written when this many bytes have been collected.
const WRITE_BYTES: usize = 64 << 10;

/// This much memory is kept for the next messages. A row of a gigabyte shouldn't keep its own.
const KEPT_BYTES: usize = 4 * WRITE_BYTES;

/// How much is read at once. A longer message doubles it until there is room for it.
const READ_BYTES: usize = 8 << 10;

/// A client that hasn't taken anything for this long is slow.
const SLOW: Duration = Duration::from_millis(50);

/// The two directions of a stream.
///
/// # Errors
/// The system has no room to notice the client's end.
pub(crate) fn directions(
    stream: Stream,
    ends: &ClientEnds,
    stopping: watch::Receiver<bool>,
) -> io::Result<(Incoming, Outgoing)> {
    let end = ends.add(stream.socket().raw())?;
    let (reader, writer) = split(stream);
    let incoming = Incoming { reader, end, buffer: vec![0; READ_BYTES], taken: 0, arrived: 0 };
    Ok((incoming, Outgoing { writer, buffer: Vec::new(), stopping }))
}

/// Moves a stream to the current runtime, which waits for it from now on.
///
/// # Errors
/// The system has no room for it.
pub(crate) fn move_here(
    incoming: Incoming,
    outgoing: Outgoing,
) -> io::Result<(Incoming, Outgoing)> {
    let mut stream = incoming.reader.unsplit(outgoing.writer);
    stream.move_here()?;
    let (reader, writer) = split(stream);
    Ok((Incoming { reader, ..incoming }, Outgoing { writer, ..outgoing }))
}

/// What the client sends.
pub(crate) struct Incoming {
    reader: ReadHalf<Stream>,
    end: ClientEnd,
    /// Of these bytes, some were taken, some more have arrived, and the rest is free.
    buffer: Vec<u8>,
    taken: usize,
    arrived: usize,
}

impl Incoming {
    /// Waits until there are `length` bytes, and returns whether there are. The buffer grows with what
    /// arrives, not with what a message claims to be.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) async fn fill(&mut self, length: usize) -> io::Result<bool> {
        while self.bytes().len() < length {
            self.make_room();
            let Self { reader, buffer, arrived, .. } = self;
            let count = reader.read(buffer.get_mut(*arrived..).unwrap_or_default()).await?;
            if count == 0 {
                return Ok(false);
            }
            *arrived += count;
        }
        Ok(true)
    }

    /// The bytes that have arrived and weren't taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.taken..self.arrived).unwrap_or_default()
    }

    /// Takes the first bytes, which must have arrived.
    pub(crate) fn take(&mut self, length: usize) {
        self.taken = self.arrived.min(self.taken + length);
        if self.taken == self.arrived {
            (self.taken, self.arrived) = (0, 0);
        }
        // A long message shouldn't keep its memory.
        if self.taken >= 4 * READ_BYTES || self.arrived == 0 && self.buffer.len() > 8 * READ_BYTES {
            self.move_down();
            self.buffer.truncate(self.arrived.max(READ_BYTES));
            self.buffer.shrink_to_fit();
        }
    }

    /// Makes free bytes.
    fn make_room(&mut self) {
        if self.arrived < self.buffer.len() {
            return;
        }
        if self.taken > 0 {
            self.move_down();
        } else {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
    }

    /// Moves what wasn't taken to the beginning.
    fn move_down(&mut self) {
        self.buffer.copy_within(self.taken..self.arrived, 0);
        (self.taken, self.arrived) = (0, self.arrived - self.taken);
    }

    /// Terminates the session if the client goes before the result is dropped, or has gone already.
    pub(crate) fn watch(&self, session: &SessionCanceller) -> Watch {
        self.end.watch(session)
    }
}

/// What the client receives.
pub(crate) struct Outgoing {
    writer: WriteHalf<Stream>,
    /// Messages that haven't been written.
    pub(crate) buffer: Vec<u8>,
    /// True once the server stops.
    stopping: watch::Receiver<bool>,
}

impl Outgoing {
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

    /// Writes what has been collected, if the client takes it at once. Returns whether it has.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) async fn write_at_once(&mut self) -> io::Result<bool> {
        let Self { writer, buffer, .. } = self;
        let mut writer = Pin::new(writer);
        poll_fn(|context| {
            match writer.as_mut().poll_write(context, buffer) {
                Poll::Pending => return Poll::Ready(Ok(false)),
                Poll::Ready(Ok(count)) => drop(buffer.drain(..count)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
            if !buffer.is_empty() {
                return Poll::Ready(Ok(false));
            }
            buffer.shrink_to(KEPT_BYTES);
            match writer.as_mut().poll_flush(context) {
                Poll::Pending => Poll::Ready(Ok(false)),
                Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| true)),
            }
        })
        .await
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
        self.buffer.shrink_to(KEPT_BYTES);
        self.writer.flush().await
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::socket::{RawSocket, Socket};

    fn in_runtime(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test);
    }

    /// A client, and the two directions of the server.
    fn connected() -> (UnixStream, Incoming, Outgoing) {
        let (client, server) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let socket = Socket::new(RawSocket::Unix(server)).unwrap();
        let (_, stopping) = watch::channel(false);
        let ends = ClientEnds::new().unwrap();
        let (incoming, outgoing) = directions(Stream::Plain(socket), &ends, stopping).unwrap();
        (client, incoming, outgoing)
    }

    #[test]
    fn a_long_message_leaves_a_small_buffer() {
        in_runtime(async {
            let (mut client, mut incoming, _outgoing) = connected();
            let long = vec![7; 1 << 20];
            let sent = long.clone();
            let sending = tokio::task::spawn_blocking(move || {
                client.write_all(&sent).unwrap();
                client.write_all(b"next").unwrap();
                client
            });
            assert!(incoming.fill(long.len() + 4).await.unwrap());
            assert_eq!(incoming.bytes().get(..long.len()), Some(&*long));
            incoming.take(long.len());
            assert_eq!(incoming.bytes(), b"next");
            assert!(incoming.buffer.capacity() <= READ_BYTES, "{}", incoming.buffer.capacity());
            let mut client = sending.await.unwrap();
            client.write_all(b"!").unwrap();
            assert!(incoming.fill(5).await.unwrap());
            assert_eq!(incoming.bytes(), b"next!");
            drop(client);
            assert!(!incoming.fill(6).await.unwrap());
        });
    }

    #[test]
    fn short_messages_stay_in_one_buffer() {
        in_runtime(async {
            let (mut client, mut incoming, _outgoing) = connected();
            let message = [1; 100];
            for _ in 0..10 * READ_BYTES / message.len() {
                client.write_all(&message).unwrap();
                assert!(incoming.fill(message.len() - 1).await.unwrap());
                // The last byte of each is taken with the next one.
                incoming.take(message.len() - 1);
                assert_eq!(incoming.buffer.len(), READ_BYTES);
                assert!(incoming.fill(1).await.unwrap());
                incoming.take(1);
            }
        });
    }

    #[test]
    fn a_client_that_takes_nothing_is_waited_for() {
        use std::io::Read as _;
        in_runtime(async {
            let (mut client, _incoming, mut outgoing) = connected();
            outgoing.buffer = vec![5; 4 << 20];
            assert!(!outgoing.write_at_once().await.unwrap());
            let reading = tokio::task::spawn_blocking(move || {
                let mut read = vec![0; 4 << 20];
                client.read_exact(&mut read).unwrap();
                assert!(read.iter().all(|byte| *byte == 5));
                client
            });
            outgoing.flush().await.unwrap();
            let mut client = reading.await.unwrap();
            outgoing.buffer.extend_from_slice(b"more");
            assert!(outgoing.write_at_once().await.unwrap());
            let mut read = [0; 4];
            client.read_exact(&mut read).unwrap();
            assert_eq!(&read, b"more");
            drop(client);
            outgoing.buffer.extend_from_slice(b"more");
            assert!(outgoing.write_at_once().await.is_err());
        });
    }
}
