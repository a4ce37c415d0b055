//! The two directions of a connection.
//!
//! [`Incoming`] collects bytes until a message is complete. While a statement runs, it goes on
//! collecting, up to a limit, because that is how the end of the client is noticed. [`Outgoing`]
//! collects messages, and writes them when there are 64 KiB, or when the client is to have them.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The reading half of a connection, of any kind.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// The writing half.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Messages are written when this many bytes have been collected.
const WRITE_BYTES: usize = 64 << 10;

/// While a statement runs, this many bytes of later messages are read ahead.
const READ_AHEAD_BYTES: usize = 64 << 10;

/// A client that hasn't taken anything for this long is slow.
const SLOW: Duration = Duration::from_millis(50);

/// What the client sends.
pub(crate) struct Incoming {
    reader: Reader,
    buffer: BytesMut,
}

impl Incoming {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, buffer: BytesMut::with_capacity(8 << 10) }
    }

    /// Waits until there are `length` bytes, and returns whether there are. The buffer grows with what
    /// arrives, not with what a message claims to be.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) async fn fill(&mut self, length: usize) -> io::Result<bool> {
        while self.buffer.len() < length {
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The bytes that have arrived.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes the first bytes, which must have arrived.
    pub(crate) fn take(&mut self, length: usize) -> BytesMut {
        self.buffer.split_to(length.min(self.buffer.len()))
    }

    /// Returns when the client has gone.
    pub(crate) async fn gone(&mut self) {
        while self.buffer.len() < READ_AHEAD_BYTES {
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        // A client that sends so much is there. What it does next is noticed when it is written to.
        std::future::pending().await
    }
}

/// What the client receives.
pub(crate) struct Outgoing {
    writer: Writer,
    /// Messages that haven't been written.
    pub(crate) buffer: Vec<u8>,
}

impl Outgoing {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer, buffer: Vec::new() }
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
    /// The connection is broken.
    pub(crate) async fn write(&mut self, mut slow: impl FnMut()) -> io::Result<()> {
        let mut written = 0;
        while let Some(rest) = self.buffer.get(written..).filter(|rest| !rest.is_empty()) {
            let count = match tokio::time::timeout(SLOW, self.writer.write(rest)).await {
                Ok(count) => count?,
                Err(_elapsed) => {
                    slow();
                    self.writer.write(rest).await?
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
