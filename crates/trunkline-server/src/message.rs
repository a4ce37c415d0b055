//! What clients send after the start, decoded.
//!
//! ```text
//!   'P'  length in 4 bytes, which count themselves  body
//! ```
//!
//! A message is decoded from the bytes that have arrived. Lengths and counts inside it are checked
//! against its end, and memory is only reserved for what is there.

use std::io;

use trunkline_query::encode::ValueFormat;
use trunkline_sql::{SqlError, SqlState};

use crate::io::Incoming;

/// The longest message, in bytes: PostgreSQL's `PQ_LARGE_MESSAGE_LIMIT`.
const LARGE_MAX: usize = 0x3FFF_FFFE;
/// The longest message of a kind that carries no text of a statement and no values.
const SMALL_MAX: usize = 10_000;

/// The bytes before a body: the kind and the length.
const HEADER: usize = 5;

/// A text in the client's encoding.
pub(crate) type Text = Vec<u8>;

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Statements to execute.
    Query(Text),
    /// A statement to prepare, with the types of its first parameters.
    Parse { name: Text, text: Text, types: Vec<u32> },
    /// A prepared statement and values for its parameters become a portal.
    Bind(Bind),
    /// What are the parameters and columns?
    Describe(Target),
    /// Execute a portal. At most `limit` rows, or all if it is 0.
    Execute { portal: Text, limit: u32 },
    /// Forget a statement or a portal.
    Close(Target),
    /// Write what has been collected.
    Flush,
    /// The end of a series of messages.
    Sync,
    /// The client goes.
    Terminate,
    /// Data of a COPY from the client that isn't running (any more), which is ignored.
    Copy,
    /// A function call.
    FunctionCall,
}

/// A prepared statement or a portal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement(Text),
    Portal(Text),
}

/// The contents of a Bind message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) portal: Text,
    pub(crate) statement: Text,
    /// As for the results: none, one for all, or one for each.
    pub(crate) formats: Vec<ValueFormat>,
    pub(crate) values: Vec<Option<Vec<u8>>>,
    pub(crate) result_formats: Vec<ValueFormat>,
}

/// Why there is no message.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The connection is broken.
    Io(io::Error),
    /// The connection has lost its place in the stream, and must end.
    Fatal(SqlError),
}

/// A message that has arrived as a whole. Its bytes are the first ones that weren't taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawMessage {
    kind: u8,
    /// The length of all of it.
    length: usize,
}

impl RawMessage {
    /// Whether it belongs to the extended protocol. An error in such a message makes the server skip
    /// those that follow, until Sync.
    pub(crate) fn is_extended(self) -> bool {
        matches!(self.kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H')
    }

    /// Whether it is answered even while messages are skipped.
    pub(crate) fn ends_skipping(self) -> bool {
        matches!(self.kind, b'S' | b'X')
    }

    /// Whether it is data of a COPY, which has no answer.
    pub(crate) fn is_copy(self) -> bool {
        matches!(self.kind, b'd' | b'c' | b'f')
    }

    /// Takes it, and decodes it.
    ///
    /// # Errors
    /// 08P01: it doesn't have the format of its kind.
    pub(crate) fn decode(self, incoming: &mut Incoming) -> Result<Message, SqlError> {
        let body = incoming.bytes().get(HEADER..self.length).unwrap_or_default();
        let decoded = decode(self.kind, body);
        self.skip(incoming);
        decoded
    }

    /// Takes it without decoding it.
    pub(crate) fn skip(self, incoming: &mut Incoming) {
        incoming.take(self.length);
    }
}

/// Whether a whole message was read already, or one that is known to be wrong.
pub(crate) fn has_message(incoming: &Incoming) -> bool {
    match *incoming.bytes() {
        [_, a, b, c, d, ref rest @ ..] => {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            length < 4 || rest.len() >= length - 4
        }
        _ => false,
    }
}

/// Waits until the next message is there, which stays in `incoming`; `None` if the client has closed the connection.
///
/// # Errors
/// See [`ReadError`].
pub(crate) async fn read_message(incoming: &mut Incoming) -> Result<Option<RawMessage>, ReadError> {
    if !incoming.fill(HEADER).await.map_err(ReadError::Io)? {
        return Ok(None);
    }
    let &[kind, a, b, c, d, ..] = incoming.bytes() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    let longest = match kind {
        b'Q' | b'P' | b'B' | b'F' | b'd' => LARGE_MAX,
        b'D' | b'E' | b'C' | b'H' | b'S' | b'X' | b'c' | b'f' => SMALL_MAX,
        _ => {
            let message = format!("invalid frontend message type {kind}");
            return Err(ReadError::Fatal(protocol_violation(message)));
        }
    };
    if !(4..=longest + 4).contains(&length) {
        return Err(ReadError::Fatal(protocol_violation("invalid message length")));
    }
    if !incoming.fill(1 + length).await.map_err(ReadError::Io)? {
        return Ok(None);
    }
    Ok(Some(RawMessage { kind, length: 1 + length }))
}

fn decode(kind: u8, body: &[u8]) -> Result<Message, SqlError> {
    let mut body = Body(body);
    let message = match kind {
        b'Q' => Message::Query(body.text()?),
        b'P' => {
            let (name, text) = (body.text()?, body.text()?);
            let count = body.count()?;
            let types = (0..count).map(|_| body.u32()).collect::<Result<_, _>>()?;
            Message::Parse { name, text, types }
        }
        b'B' => Message::Bind(body.bind()?),
        b'D' => Message::Describe(body.target()?),
        b'C' => Message::Close(body.target()?),
        b'E' => Message::Execute { portal: body.text()?, limit: body.u32()? },
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => return Ok(Message::Terminate),
        b'F' => return Ok(Message::FunctionCall),
        _ => return Ok(Message::Copy),
    };
    match body.0 {
        [] => Ok(message),
        _ => Err(protocol_violation("invalid message format")),
    }
}

/// The rest of a message's body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn bytes(&mut self, length: usize) -> Result<&[u8], SqlError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, SqlError> {
        let bytes = self.bytes(2)?.first_chunk().ok_or_else(too_short)?;
        Ok(u16::from_be_bytes(*bytes))
    }

    fn u32(&mut self) -> Result<u32, SqlError> {
        let bytes = self.bytes(4)?.first_chunk().ok_or_else(too_short)?;
        Ok(u32::from_be_bytes(*bytes))
    }

    fn count(&mut self) -> Result<usize, SqlError> {
        self.u16().map(usize::from)
    }

    /// A text that ends with a zero.
    fn text(&mut self) -> Result<Text, SqlError> {
        let end = self.0.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| protocol_violation("invalid string in message"))?;
        let text = self.bytes(end)?.to_vec();
        self.bytes(1)?;
        Ok(text)
    }

    fn formats(&mut self) -> Result<Vec<ValueFormat>, SqlError> {
        let count = self.count()?;
        let format = |code: u16| match code {
            0 => Ok(ValueFormat::Text),
            1 => Ok(ValueFormat::Binary),
            other => {
                let message = format!("unsupported format code: {}", other.cast_signed());
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        };
        (0..count).map(|_| self.u16().and_then(format)).collect()
    }

    fn bind(&mut self) -> Result<Bind, SqlError> {
        let (portal, statement) = (self.text()?, self.text()?);
        let formats = self.formats()?;
        let count = self.count()?;
        if formats.len() > 1 && formats.len() != count {
            let message = format!(
                "bind message has {} parameter formats but {count} parameters",
                formats.len()
            );
            return Err(protocol_violation(message));
        }
        let mut values = Vec::new();
        for _ in 0..count {
            let length = self.u32()?;
            values.push(match length {
                u32::MAX => None,
                length => Some(self.bytes(length as usize)?.to_vec()),
            });
        }
        let result_formats = self.formats()?;
        Ok(Bind { portal, statement, formats, values, result_formats })
    }

    fn target(&mut self) -> Result<Target, SqlError> {
        let kind = self.bytes(1)?.first().copied().unwrap_or_default();
        let name = self.text()?;
        match kind {
            b'S' => Ok(Target::Statement(name)),
            b'P' => Ok(Target::Portal(name)),
            other => Err(protocol_violation(format!("invalid message subtype {other}"))),
        }
    }
}

pub(crate) fn protocol_violation(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message.into())
}

fn too_short() -> SqlError {
    protocol_violation("insufficient data left in message")
}
