//! A connection after its start: messages are read and answered until the client goes, in a thread of the
//! session's own ([`crate::session_thread`]).
//!
//! The simple protocol sends texts of statements ([`crate::simple`]), the extended protocol prepares,
//! binds and executes in separate messages ([`crate::extended`]). After an error in the extended
//! protocol, messages are skipped until `Sync`. Skipped messages aren't even decoded.
//!
//! Answers are collected. They are written at ReadyForQuery and `Flush`, when there are many, and before
//! the connection waits for the client.

use std::future::poll_fn;
use std::io;
use std::pin::pin;

use tokio::runtime::Handle;
use tokio::sync::watch;
use trunkline_query::encode::ClientEncoding;
use trunkline_query::{Session, SessionCanceller};
use trunkline_sql::{SqlError, SqlState};

use crate::io::{Incoming, Outgoing};
use crate::message::{
    Message, RawMessage, ReadError, has_message, protocol_violation, read_message,
};
use crate::reply;

/// A client and its session.
pub(crate) struct Connection {
    pub(crate) session: Session,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    /// Messages are skipped until `Sync`.
    pub(crate) skips: bool,
    /// The last answer was ReadyForQuery, so the session is idle until the next message.
    pub(crate) is_ready: bool,
    /// True once the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
    /// Where the tasks of statements run.
    pub(crate) statements: Handle,
}

/// Why a connection ends although its client hasn't asked for it.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The client can't be read from or written to.
    Io,
    /// The server has said why.
    Ended,
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

impl Connection {
    /// Answers messages until the client goes.
    ///
    /// # Errors
    /// The connection can't go on.
    pub(crate) async fn run(&mut self) -> Result<(), Broken> {
        self.ready().await?;
        loop {
            let must_write = self.outgoing.is_full() || !has_message(&self.incoming);
            if must_write && !self.outgoing.buffer.is_empty() {
                self.flush().await?;
            }
            let Some(message) = self.next_message().await? else { return Ok(()) };
            self.is_ready = false;
            if message.is_copy() || (self.skips && !message.ends_skipping()) {
                message.skip(&mut self.incoming);
                continue;
            }
            match message.decode(&mut self.incoming) {
                Ok(Message::Terminate) => return Ok(()),
                Ok(decoded) => self.answer(decoded).await?,
                Err(error) => self.refuse(message, &error).await?,
            }
        }
    }

    /// Answers a message that doesn't have the format of its kind.
    async fn refuse(&mut self, message: RawMessage, error: &SqlError) -> Result<(), Broken> {
        if message.is_extended() {
            return self.failed(error, "");
        }
        self.skips = false;
        self.session.fail();
        self.report(error, "")?;
        self.ready().await
    }

    /// The next message; `None` if there is none, because the client has gone.
    async fn next_message(&mut self) -> Result<Option<RawMessage>, Broken> {
        let read = match has_message(&self.incoming) {
            // If the session is terminated, its next statement says so.
            true => read_message(&mut self.incoming).await,
            false => self.arriving_message().await,
        };
        match read {
            Ok(message) => Ok(message),
            Err(ReadError::Io(error)) => Err(error.into()),
            Err(ReadError::Fatal(error)) => {
                self.send_error("FATAL", &error, "");
                self.flush().await?;
                Err(Broken::Ended)
            }
        }
    }

    /// Waits for the next message, or until the session must end.
    async fn arriving_message(&mut self) -> Result<Option<RawMessage>, ReadError> {
        let limit = if self.is_ready { self.session.idle_limit() } else { None };
        let expired = async {
            match limit {
                Some((time, error)) => {
                    tokio::time::sleep(time).await;
                    error
                }
                None => std::future::pending().await,
            }
        };
        let canceller = self.session.canceller();
        let Self { incoming, stopping, .. } = self;
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => Err(terminated()),
            () = canceller.terminated() => Err(terminated()),
            read = read_message(incoming) => read,
            error = expired => Err(ReadError::Fatal(error)),
        }
    }

    async fn answer(&mut self, message: Message) -> Result<(), Broken> {
        match message {
            Message::Query(text) => {
                self.simple(&text).await?;
                self.ready().await
            }
            Message::Sync => {
                self.skips = false;
                self.session.sync();
                self.ready().await
            }
            Message::Flush => self.flush().await,
            Message::FunctionCall => {
                let error = SqlError::unsupported("function calls are not supported by trunkline");
                self.send_error("ERROR", &error, "");
                self.session.fail();
                self.ready().await
            }
            Message::Terminate | Message::Copy => Ok(()),
            message => self.extended(message).await,
        }
    }

    /// Reports an error of the extended protocol.
    ///
    /// # Errors
    /// The session has ended.
    pub(crate) fn failed(&mut self, error: &SqlError, statement: &str) -> Result<(), Broken> {
        self.skips = true;
        self.session.fail();
        self.report(error, statement)
    }

    /// Sends an error.
    ///
    /// # Errors
    /// The session has ended, because the server stops.
    pub(crate) fn report(&mut self, error: &SqlError, statement: &str) -> Result<(), Broken> {
        if error.code() == SqlState::ADMIN_SHUTDOWN {
            self.send_error("FATAL", error, "");
            return Err(Broken::Ended);
        }
        self.send_error("ERROR", error, statement);
        Ok(())
    }

    fn send_error(&mut self, severity: &str, error: &SqlError, statement: &str) {
        let encoding = self.encoding();
        reply::error(&mut self.outgoing.buffer, &encoding, severity, error, statement);
    }

    /// The end of a query or of a series of messages.
    async fn ready(&mut self) -> Result<(), Broken> {
        self.send_parameters();
        reply::ready(&mut self.outgoing.buffer, self.session.transaction_status());
        self.is_ready = true;
        self.flush().await
    }

    /// Writes what has been collected, unless the session is terminated while the client takes nothing.
    async fn flush(&mut self) -> Result<(), Broken> {
        if self.outgoing.write_at_once().await? {
            return Ok(());
        }
        let canceller = self.session.canceller();
        Ok(until_terminated(&canceller, self.outgoing.flush()).await?)
    }

    /// Ends the stream.
    pub(crate) async fn end(&mut self) {
        let canceller = self.session.canceller();
        let outgoing = &mut self.outgoing;
        let closed = async {
            outgoing.close().await;
            Ok(())
        };
        // The client may not take the rest.
        let _closed = until_terminated(&canceller, closed).await;
    }

    /// Sends the parameters that have changed.
    fn send_parameters(&mut self) {
        let encoding = self.encoding();
        for (name, value) in self.session.take_changed_parameters() {
            reply::parameter(&mut self.outgoing.buffer, &encoding, &name, &value);
        }
    }

    /// Sends the notices that have come up.
    pub(crate) fn send_notices(&mut self, statement: &str) {
        let notices = self.session.take_notices();
        if notices.is_empty() {
            return;
        }
        let encoding = self.encoding();
        for notice in notices {
            reply::notice(&mut self.outgoing.buffer, &encoding, &notice, statement);
        }
    }

    /// How text is converted.
    pub(crate) fn encoding(&self) -> ClientEncoding {
        self.session.client_encoding().unwrap_or(ClientEncoding::UTF8)
    }

    /// A text of the client.
    ///
    /// # Errors
    /// 22021: it isn't valid in the client's encoding.
    pub(crate) fn decode(&self, text: &[u8]) -> Result<String, SqlError> {
        self.session.client_encoding()?.decode(text)
    }

    /// A name of the client's, such as that of a portal.
    ///
    /// # Errors
    /// As for [`Connection::decode`].
    pub(crate) fn name(&self, text: &[u8]) -> Result<String, SqlError> {
        if text.is_empty() {
            return Ok(String::new());
        }
        self.decode(text).map_err(|error| protocol_violation(error.message()))
    }
}

/// The error of a session that is ended from outside.
fn terminated() -> ReadError {
    let message = "terminating connection due to administrator command";
    ReadError::Fatal(SqlError::new(SqlState::ADMIN_SHUTDOWN, message))
}

/// Writes to a client, which other sessions see. If the session is terminated while the client takes
/// nothing, there is no way to report that.
pub(crate) async fn until_terminated(
    canceller: &SessionCanceller,
    written: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    let _writing = canceller.write_to_client();
    tokio::select! {
        biased;
        written = written => written,
        () = canceller.terminated() => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Does some work of a session, and cancels it if the client goes away meanwhile. The work then ends
/// with an error. Its tasks are spawned in the runtime of statements.
pub(crate) async fn watched<T>(
    incoming: &Incoming,
    statements: &Handle,
    canceller: &SessionCanceller,
    work: impl Future<Output = T>,
) -> T {
    let _watch = incoming.watch(canceller);
    let mut work = pin!(work);
    poll_fn(|context| {
        let _entered = statements.enter();
        work.as_mut().poll(context)
    })
    .await
}
