//! The first message of a connection, which has no type.
//!
//! ```text
//!   length  196608 (protocol 3.0)  user NUL alice NUL database NUL shop NUL NUL
//!   length  80877103               a request for TLS
//!   length  80877102               a cancel request, with number and key
//! ```

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use trunkline_sql::{SqlError, SqlState};

use crate::message::{ReadError, protocol_violation};

/// `MAX_STARTUP_PACKET_LENGTH`.
const LENGTH_MAX: usize = 10_000;

const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// The newest minor version of protocol 3 that we have.
pub(crate) const MINOR: u16 = 2;

/// A first message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// Encrypt with TLS?
    Tls,
    /// Encrypt with GSSAPI?
    Gss,
    /// Cancel the statement of another session.
    Cancel { pid: i32, key: Vec<u8> },
    /// Start a session.
    Start(Start),
}

/// What a client starts a session with.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Start {
    /// The minor version of the protocol that it wants.
    pub(crate) minor: u16,
    /// Names and values.
    pub(crate) parameters: Vec<(String, String)>,
}

impl Start {
    /// A parameter that was given.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().rev().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The names of protocol options, none of which we have.
    pub(crate) fn protocol_options(&self) -> impl Iterator<Item = &str> {
        let names = self.parameters.iter().map(|(name, _)| name.as_str());
        names.filter(|name| name.starts_with("_pq_."))
    }

    /// The settings: parameters that aren't something else, and those in `options`.
    ///
    /// # Errors
    /// 42601: `options` has something else than `-c name=value` and `--name=value`.
    pub(crate) fn settings(&self) -> Result<Vec<(String, String)>, SqlError> {
        let mut settings = options(self.get("options").unwrap_or_default())?;
        let others = self.parameters.iter().filter(|(name, _)| {
            let known = ["user", "database", "options", "replication", "application_name"];
            !known.contains(&name.as_str()) && !name.starts_with("_pq_.")
        });
        settings.extend(others.cloned());
        Ok(settings)
    }
}

/// Reads a first message, and not a byte more, because TLS may follow; `None` if the client has gone.
///
/// # Errors
/// It isn't one, or the connection is broken.
pub(crate) async fn read_packet(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<Packet>, ReadError> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(ReadError::Io(error)),
    }
    let length = u32::from_be_bytes(length) as usize;
    if !(8..=LENGTH_MAX).contains(&length) {
        return Err(ReadError::Fatal(protocol_violation("invalid length of startup packet")));
    }
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body).await.map_err(ReadError::Io)?;
    let (code, rest) = body.split_first_chunk().unwrap_or((&[0; 4], &[]));
    decode(u32::from_be_bytes(*code), rest).map(Some).map_err(ReadError::Fatal)
}

fn decode(code: u32, rest: &[u8]) -> Result<Packet, SqlError> {
    match code {
        TLS => Ok(Packet::Tls),
        GSS => Ok(Packet::Gss),
        CANCEL => {
            let invalid = || protocol_violation("invalid length of cancel request packet");
            let (pid, key) = rest.split_first_chunk().ok_or_else(invalid)?;
            match key.len() {
                4..=256 => Ok(Packet::Cancel { pid: i32::from_be_bytes(*pid), key: key.to_vec() }),
                _ => Err(invalid()),
            }
        }
        _ if code >> 16 == 3 => {
            let minor = (code & 0xFFFF) as u16;
            Ok(Packet::Start(Start { minor, parameters: parameters(rest)? }))
        }
        _ => {
            let message = format!(
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.{MINOR}",
                code >> 16,
                code & 0xFFFF
            );
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    }
}

/// Names and values, each with a zero behind it, and one more zero.
fn parameters(bytes: &[u8]) -> Result<Vec<(String, String)>, SqlError> {
    let invalid =
        || protocol_violation("invalid startup packet layout: expected terminator as last byte");
    let inner = bytes.strip_suffix(&[0]).ok_or_else(invalid)?;
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    let inner = inner.strip_suffix(&[0]).ok_or_else(invalid)?;
    let text = |bytes: &[u8]| {
        let text = str::from_utf8(bytes);
        text.map(str::to_owned).map_err(|_| protocol_violation("invalid startup packet: not UTF-8"))
    };
    let texts: Vec<&[u8]> = inner.split(|&byte| byte == 0).collect();
    let pairs = texts.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(invalid());
    }
    pairs
        .map(|pair| match pair {
            [name, value] => Ok((text(name)?, text(value)?)),
            _ => Err(invalid()),
        })
        .collect()
}

/// Command-line options, such as `-c work_mem=8MB`. A backslash protects the character behind it.
fn options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words = vec![String::new()];
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                if let (Some(word), Some(next)) = (words.last_mut(), chars.next()) {
                    word.push(next);
                }
            }
            char if char.is_ascii_whitespace() => words.push(String::new()),
            char => {
                if let Some(word) = words.last_mut() {
                    word.push(char);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    let mut settings = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("-c") {
            Some("") => words.next().unwrap_or_default(),
            Some(setting) => setting.to_owned(),
            None => word.strip_prefix("--").map(str::to_owned).unwrap_or_default(),
        };
        let Some((name, value)) = setting.split_once('=') else {
            let message = format!("invalid command-line argument for server process: {word}");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_has_pairs_of_texts() {
        let found = decode(196_610, b"user\0a\0options\0-c work_mem=8MB --x-y=a\\ b\0\0").unwrap();
        let Packet::Start(start) = found else { panic!("{found:?}") };
        assert_eq!((start.minor, start.get("user")), (2, Some("a")));
        let settings = start.settings().unwrap();
        let expected = [("work_mem", "8MB"), ("x_y", "a b")];
        assert_eq!(settings, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn invalid_packets_are_refused() {
        for bytes in [&b"user\0"[..], b"user\0a", b"user\0a\0", b"user\0\0", b"\xFF\0a\0\0", b""] {
            assert!(decode(196_608, bytes).is_err(), "{bytes:?}");
        }
        assert!(decode(CANCEL, &[0; 6]).is_err());
        assert!(decode(131_072, b"").is_err());
        assert!(options("nonsense").is_err());
    }
}
