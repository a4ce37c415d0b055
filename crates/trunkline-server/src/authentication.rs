//! Which clients may connect.
//!
//! Over the unix socket: the user that runs the server, and root. Over TCP: clients that know a password
//! of the password file.

use trunkline_sql::{SqlError, SqlState};

use crate::connection::Broken;
use crate::io::{Incoming, Outgoing};
use crate::message::{ReadError, protocol_violation};
use crate::reply;
use crate::scram::{Exchange, ScramError, Users};

/// The longest message of the exchange, in bytes: PostgreSQL's `PG_MAX_SASL_MESSAGE_LENGTH`.
const LENGTH_MAX: usize = 1024;

/// Checks the password of a user.
///
/// # Errors
/// `Ok(Err(_))`: it is wrong, or the messages are. `Err(_)`: the connection is broken.
pub(crate) async fn authenticate(
    users: &Users,
    user: &str,
    is_encrypted: bool,
    incoming: &mut Incoming,
    outgoing: &mut Outgoing,
) -> Result<Result<(), SqlError>, Broken> {
    let mut names = Vec::new();
    for name in users.mechanisms(is_encrypted) {
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    names.push(0);
    request(outgoing, 10, &names);
    outgoing.flush().await?;
    let first = match response(incoming).await? {
        Ok(first) => first,
        Err(error) => return Ok(Err(error)),
    };
    let exchange = match begin(users, user, is_encrypted, &first) {
        Ok(exchange) => exchange,
        Err(error) => return Ok(Err(error)),
    };
    request(outgoing, 11, exchange.server_first().as_bytes());
    outgoing.flush().await?;
    let last = match response(incoming).await? {
        Ok(last) => last,
        Err(error) => return Ok(Err(error)),
    };
    Ok(exchange.finish(&last).map_err(|error| refusal(&error, user)).map(|answer| {
        request(outgoing, 12, answer.as_bytes());
    }))
}

/// An Authentication message.
pub(crate) fn request(outgoing: &mut Outgoing, code: u32, data: &[u8]) {
    reply::message(&mut outgoing.buffer, b'R', |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// `SASLInitialResponse`: the mechanism, then a length and the client's first message.
fn begin(
    users: &Users,
    user: &str,
    is_encrypted: bool,
    message: &[u8],
) -> Result<Exchange, SqlError> {
    let invalid = || protocol_violation("malformed SCRAM message");
    let end = message.iter().position(|&byte| byte == 0).ok_or_else(invalid)?;
    let (mechanism, rest) = message.split_at(end);
    let offered = users.mechanisms(is_encrypted);
    let Some(mechanism) = offered.iter().find(|name| name.as_bytes() == mechanism) else {
        return Err(protocol_violation("client selected an invalid SASL authentication mechanism"));
    };
    let (length, first) =
        rest.get(1..).and_then(|rest| rest.split_first_chunk()).ok_or_else(invalid)?;
    if u32::from_be_bytes(*length) as usize != first.len() {
        return Err(invalid());
    }
    users.begin(user, mechanism, is_encrypted, first).map_err(|error| refusal(&error, user))
}

fn refusal(error: &ScramError, user: &str) -> SqlError {
    match error {
        ScramError::Malformed(why) => protocol_violation("malformed SCRAM message")
            .with_detail(format!("The message: {why}.")),
        ScramError::WrongPassword => {
            let message = format!("password authentication failed for user \"{user}\"");
            SqlError::new(SqlState::INVALID_PASSWORD, message)
        }
    }
}

/// The body of the next message, which must be a password message.
async fn response(incoming: &mut Incoming) -> Result<Result<Vec<u8>, SqlError>, Broken> {
    if !incoming.fill(5).await? {
        return Err(Broken::Io);
    }
    let &[kind, a, b, c, d, ..] = incoming.bytes() else { return Err(Broken::Io) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if kind != b'p' {
        let message = format!("expected SASL response, got message type {kind}");
        return Ok(Err(protocol_violation(message)));
    }
    if !(4..=LENGTH_MAX).contains(&length) {
        return Ok(Err(protocol_violation("invalid message length")));
    }
    if !incoming.fill(1 + length).await? {
        return Err(Broken::Io);
    }
    let body = incoming.bytes().get(5..1 + length).unwrap_or_default().to_vec();
    incoming.take(1 + length);
    Ok(Ok(body))
}

impl From<ReadError> for Broken {
    fn from(_: ReadError) -> Self {
        Self::Io
    }
}
