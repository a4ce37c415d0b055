//! The start of a connection: TLS, the startup packet, the user, the session.
//!
//! ```text
//!   client                server
//!   request for TLS       S, and the handshake; or N
//!   startup packet        (passwords)  AuthenticationOk
//!                         ParameterStatus…  BackendKeyData  ReadyForQuery
//! ```
//!
//! All of this must happen within a minute. The client learns why it has failed, and the connection ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use trunkline_query::encode::ClientEncoding;
use trunkline_query::{Session, Startup};
use trunkline_sql::catalog::Addresses;
use trunkline_sql::{SqlError, SqlState};

use crate::authentication::{authenticate, request};
use crate::cancel_keys::CancelKey;
use crate::connection::{Broken, Connection};
use crate::io::{Incoming, Outgoing, directions};
use crate::message::{ReadError, protocol_violation};
use crate::reply;
use crate::session_thread;
use crate::shared::Shared;
use crate::socket::{RawSocket, Socket, Stream};
use crate::startup_packet::{MINOR, Packet, Start, read_packet};
use crate::tls::{ALPN, TlsIdentity};

/// `authentication_timeout`, at its default.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// A connection as it was accepted.
pub(crate) enum Accepted {
    Unix(UnixStream),
    Tcp(TcpStream, SocketAddr),
}

/// A connection whose startup packet has arrived.
struct Opened {
    stream: Stream,
    packet: Result<Start, SqlError>,
}

/// Serves a connection from its start to its end. The session runs in a thread of its own, and the tasks
/// of its statements in the runtime `statements`.
///
/// `starting` is its place among the connections that haven't started yet.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    accepted: Accepted,
    starting: OwnedSemaphorePermit,
    statements: Handle,
) {
    let mut stopping = shared.stopping.subscribe();
    let started = tokio::select! {
        biased;
        _ = stopping.wait_for(|stopping| *stopping) => return,
        started = tokio::time::timeout(TIME_LIMIT, start(&shared, accepted, &statements)) => started,
    };
    drop(starting);
    let Ok(Ok(Some((connection, started)))) = started else { return };
    session_thread::run(connection, started, &statements).await;
}

/// Starts a session; `None` if the client wanted something else.
async fn start(
    shared: &Shared,
    accepted: Accepted,
    statements: &Handle,
) -> Result<Option<(Connection, Registration)>, Broken> {
    let (opened, addresses) = match accepted {
        // Others aren't listened to: they could keep places of starting connections.
        Accepted::Unix(mut stream) if !is_own_user(&stream) => {
            let error = SqlError::new(
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                "the socket is only for the user that runs the server",
            );
            let mut answer = Vec::new();
            reply::error(&mut answer, &ClientEncoding::UTF8, "FATAL", &error, "");
            stream.write_all(&answer).await?;
            return Ok(None);
        }
        Accepted::Unix(stream) => {
            let socket = Socket::new(RawSocket::Unix(stream.into_std()?))?;
            (negotiate(socket, None, shared).await?, None)
        }
        Accepted::Tcp(stream, client) => {
            let server = stream.local_addr()?;
            let tls = shared.options.tls.as_ref();
            let mut first = [0];
            let is_direct = stream.peek(&mut first).await? == 1 && first == [HANDSHAKE];
            let socket = Socket::new(RawSocket::Tcp(stream.into_std()?))?;
            let opened = match tls.filter(|_| is_direct) {
                Some(tls) => {
                    let stream = tls.acceptor().accept(socket).await?;
                    if stream.get_ref().1.alpn_protocol() != Some(ALPN) {
                        return Ok(None);
                    }
                    negotiate_encrypted(stream, shared).await?
                }
                None => negotiate(socket, tls, shared).await?,
            };
            (opened, Some(Addresses { client, server }))
        }
    };
    let Some(Opened { stream, packet }) = opened else { return Ok(None) };
    let is_encrypted = stream.is_encrypted();
    let (mut incoming, mut outgoing) =
        directions(stream, &shared.ends, shared.stopping.subscribe())?;
    let started = match packet {
        Ok(packet) => {
            let client = Client { shared, packet, addresses, is_encrypted };
            client.start(&mut incoming, &mut outgoing).await?
        }
        Err(error) => Err(error),
    };
    match started {
        Ok((session, registration)) => {
            let stopping = shared.stopping.subscribe();
            let connection = Connection {
                session,
                incoming,
                outgoing,
                skips: false,
                is_ready: false,
                stopping,
                statements: statements.clone(),
            };
            Ok(Some((connection, registration)))
        }
        Err(error) => {
            let utf8 = ClientEncoding::UTF8;
            reply::error(&mut outgoing.buffer, &utf8, "FATAL", &error, "");
            outgoing.close().await;
            Ok(None)
        }
    }
}

/// Whether the other side of a local connection is the user that runs this program, or root.
fn is_own_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

/// Reads first messages until a startup packet; `None` if the client wanted something else.
async fn negotiate(
    mut socket: Socket,
    tls: Option<&TlsIdentity>,
    shared: &Shared,
) -> Result<Option<Opened>, Broken> {
    loop {
        match read_packet(&mut socket).await {
            Ok(Some(Packet::Tls)) => match tls {
                Some(tls) => {
                    socket.write_all(b"S").await?;
                    let stream = tls.acceptor().accept(socket).await?;
                    return negotiate_encrypted(stream, shared).await;
                }
                None => socket.write_all(b"N").await?,
            },
            Ok(Some(Packet::Gss)) => socket.write_all(b"N").await?,
            other => return Ok(opened(Stream::Plain(socket), other, shared)),
        }
    }
}

/// As [`negotiate`], inside TLS.
async fn negotiate_encrypted(
    mut stream: TlsStream<Socket>,
    shared: &Shared,
) -> Result<Option<Opened>, Broken> {
    let packet = read_packet(&mut stream).await;
    Ok(opened(Stream::Tls(Box::new(stream)), packet, shared))
}

fn opened(
    stream: Stream,
    packet: Result<Option<Packet>, ReadError>,
    shared: &Shared,
) -> Option<Opened> {
    let packet = match packet {
        Ok(Some(Packet::Start(start))) => Ok(start),
        Ok(Some(Packet::Cancel { pid, key })) => {
            shared.keys.cancel(pid, &key);
            return None;
        }
        Ok(Some(Packet::Tls | Packet::Gss)) => {
            Err(protocol_violation("the connection is already encrypted"))
        }
        Err(ReadError::Fatal(error)) => Err(error),
        Ok(None) | Err(ReadError::Io(_)) => return None,
    };
    Some(Opened { stream, packet })
}

/// A client that wants to start a session.
struct Client<'a> {
    shared: &'a Shared,
    packet: Start,
    /// `None` for a local connection.
    addresses: Option<Addresses>,
    is_encrypted: bool,
}

/// What the server knows of a session while it exists.
struct Registration {
    _key: CancelKey,
    /// Its place among the sessions.
    _place: OwnedSemaphorePermit,
}

impl Client<'_> {
    async fn start(
        self,
        incoming: &mut Incoming,
        outgoing: &mut Outgoing,
    ) -> Result<Result<(Session, Registration), SqlError>, Broken> {
        if let Err(error) = self.check() {
            return Ok(Err(error));
        }
        let Self { shared, packet, addresses, is_encrypted, .. } = self;
        let user = packet.get("user").unwrap_or_default().to_owned();
        if packet.minor > MINOR || packet.protocol_options().next().is_some() {
            negotiate_version(outgoing, &packet);
        }
        if addresses.is_some()
            && let Err(error) =
                authenticate(&shared.users, &user, is_encrypted, incoming, outgoing).await?
        {
            return Ok(Err(error));
        }
        // Clients that haven't authenticated take no places.
        let Ok(place) = Arc::clone(&shared.places).try_acquire_owned() else {
            let message = "sorry, too many clients already";
            return Ok(Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message)));
        };
        let settings = match packet.settings() {
            Ok(settings) => settings,
            Err(error) => return Ok(Err(error)),
        };
        let startup = Startup {
            database: packet
                .get("database")
                .filter(|name| !name.is_empty())
                .unwrap_or(&user)
                .to_owned(),
            application_name: packet.get("application_name").unwrap_or_default().to_owned(),
            user,
            settings,
            addresses,
        };
        let mut session = match Session::open(&shared.instance, startup).await {
            Ok(session) => session,
            Err(error) => return Ok(Err(error)),
        };
        let encoding = match session.client_encoding() {
            Ok(encoding) => encoding,
            Err(error) => return Ok(Err(error)),
        };
        let minor = packet.minor.min(MINOR);
        let key = shared.keys.register(session.pid(), minor, session.canceller());
        request(outgoing, 0, &[]);
        for (name, value) in session.take_changed_parameters() {
            reply::parameter(&mut outgoing.buffer, &encoding, &name, &value);
        }
        reply::message(&mut outgoing.buffer, b'K', |out| {
            out.extend_from_slice(&session.pid().to_be_bytes());
            out.extend_from_slice(&key.key);
        });
        for notice in session.take_notices() {
            reply::notice(&mut outgoing.buffer, &encoding, &notice, "");
        }
        Ok(Ok((session, Registration { _key: key, _place: place })))
    }

    /// Refuses clients that can't be served, whatever their password.
    fn check(&self) -> Result<(), SqlError> {
        let Self { packet, addresses, is_encrypted, .. } = self;
        if packet.get("user").is_none_or(str::is_empty) {
            let message = "no PostgreSQL user name specified in startup packet";
            return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message));
        }
        if packet
            .get("replication")
            .is_some_and(|value| !["false", "off", "0", "no"].contains(&value))
        {
            return Err(SqlError::unsupported("replication is not supported by trunkline"));
        }
        if addresses.is_some_and(|addresses| !addresses.client.ip().is_loopback()) && !is_encrypted
        {
            let message = "connections from other machines must be encrypted";
            let code = SqlState::INVALID_AUTHORIZATION_SPECIFICATION;
            return Err(SqlError::new(code, message).with_hint("Use sslmode=require."));
        }
        Ok(())
    }
}

/// `NegotiateProtocolVersion`: the newest minor version, and the options that we don't have.
fn negotiate_version(outgoing: &mut Outgoing, packet: &Start) {
    let names: Vec<&str> = packet.protocol_options().collect();
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let minor = packet.minor.min(MINOR);
    reply::message(&mut outgoing.buffer, b'v', |out| {
        out.extend_from_slice(&(0x3_0000 | u32::from(minor)).to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        for name in names {
            out.extend_from_slice(name.as_bytes());
            out.push(0);
        }
    });
}
