//! A client's socket, as tasks read and write it.
//!
//! tokio's own streams ask the kernel for two kinds of events. A unix socket is writable again each time
//! its client has read something, so every answer would wake the session for nothing. Here, the kernel is
//! asked for what the client sends. Only if a client takes nothing, it is asked when there is room again.
//!
//! A socket belongs to the runtime in which it was created, whose thread waits for it. It can be moved
//! to another one ([`Socket::move_here`]).

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio_rustls::server::TlsStream;

/// The socket itself, which doesn't block.
#[derive(Debug)]
pub(crate) enum RawSocket {
    Unix(UnixStream),
    Tcp(std::net::TcpStream),
}

impl RawSocket {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&*stream).read(buffer),
            Self::Tcp(stream) => (&*stream).read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&*stream).write(bytes),
            Self::Tcp(stream) => (&*stream).write(bytes),
        }
    }

    fn shutdown(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl AsRawFd for RawSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// A socket that a runtime waits for.
#[derive(Debug)]
pub(crate) struct Socket {
    readable: AsyncFd<Arc<RawSocket>>,
    /// While the client takes nothing: the same socket, which a runtime can't wait for twice under the
    /// same number.
    writable: Option<AsyncFd<OwnedFd>>,
}

impl Socket {
    /// A socket that the current runtime waits for.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn new(socket: RawSocket) -> io::Result<Self> {
        let readable = register(Arc::new(socket), Interest::READABLE)?;
        Ok(Self { readable, writable: None })
    }

    /// From now on, the current runtime waits for it. Nothing may wait for it now.
    ///
    /// # Errors
    /// As for [`Socket::new`].
    pub(crate) fn move_here(&mut self) -> io::Result<()> {
        let Self { readable, writable } = self;
        *writable = None;
        *readable = register(Arc::clone(readable.get_ref()), Interest::READABLE)?;
        Ok(())
    }

    /// The socket itself.
    pub(crate) fn raw(&self) -> &Arc<RawSocket> {
        self.readable.get_ref()
    }

    /// Waits until the client has taken something.
    fn poll_writable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let writable = match &mut self.writable {
            Some(writable) => writable,
            None => {
                let copy = self.readable.get_ref().as_fd().try_clone_to_owned()?;
                self.writable.insert(register(copy, Interest::WRITABLE)?)
            }
        };
        let _room = ready!(writable.poll_write_ready(context))?;
        self.writable = None;
        Poll::Ready(Ok(()))
    }
}

/// Something that keeps one descriptor open as long as it exists.
pub(crate) trait Descriptor: AsRawFd {}

impl Descriptor for OwnedFd {}
impl Descriptor for Arc<RawSocket> {}

/// Lets the current runtime wait for a descriptor.
///
/// # Errors
/// The system has no room for it.
pub(crate) fn register<T: Descriptor>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    #[expect(deprecated, reason = "it is unsound for types that may close their descriptor only")]
    AsyncFd::with_interest(inner, interest)
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.readable.poll_read_ready(context))?;
            let space = buffer.initialize_unfilled();
            match guard.try_io(|socket| socket.get_ref().read(space)) {
                Ok(Ok(count)) => {
                    // There was no more, so the next read would only find that out.
                    if 0 < count && count < space.len() {
                        guard.clear_ready();
                    }
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.raw().write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.poll_writable(context))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.raw().shutdown())
    }
}

/// A connection, with or without TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

impl Stream {
    /// The socket.
    pub(crate) fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    /// As [`Socket::move_here`].
    ///
    /// # Errors
    /// As for [`Socket::new`].
    pub(crate) fn move_here(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.move_here(),
            Self::Tls(stream) => stream.get_mut().0.move_here(),
        }
    }

    /// Whether it is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
