//! A client that sends what a test wants, and shows what it receives.
//!
//! A row is shown as `D 1,NULL`, an error as `E ERROR 42703 column "x" does not exist @8`.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::serving::{PATIENCE, Serving};

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    pub(crate) pid: i32,
    pub(crate) key: Vec<u8>,
}

/// A text and the zero behind it.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// A message.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// A startup packet.
pub(crate) fn startup(minor: u16, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = (0x3_0000 | u32::from(minor)).to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend(text(name));
        body.extend(text(value));
    }
    body.push(0);
    packet(&body)
}

/// A first message.
pub(crate) fn packet(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&length.to_be_bytes(), body].concat()
}

pub(crate) fn parse(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let mut body = [text(name), text(sql)].concat();
    body.extend((types.len() as u16).to_be_bytes());
    types.iter().for_each(|ty| body.extend(ty.to_be_bytes()));
    message(b'P', &body)
}

pub(crate) fn bind(
    portal: &str,
    statement: &str,
    formats: &[u16],
    values: &[Option<&[u8]>],
    results: &[u16],
) -> Vec<u8> {
    let mut body = [text(portal), text(statement)].concat();
    let numbers = |numbers: &[u16], body: &mut Vec<u8>| {
        body.extend((numbers.len() as u16).to_be_bytes());
        numbers.iter().for_each(|number| body.extend(number.to_be_bytes()));
    };
    numbers(formats, &mut body);
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        match value {
            None => body.extend([0xFF; 4]),
            Some(value) => {
                body.extend((value.len() as u32).to_be_bytes());
                body.extend(*value);
            }
        }
    }
    numbers(results, &mut body);
    message(b'B', &body)
}

pub(crate) fn execute(portal: &str, limit: u32) -> Vec<u8> {
    message(b'E', &[text(portal), limit.to_be_bytes().to_vec()].concat())
}

pub(crate) fn describe(kind: u8, name: &str) -> Vec<u8> {
    message(b'D', &[vec![kind], text(name)].concat())
}

pub(crate) fn sync() -> Vec<u8> {
    message(b'S', &[])
}

impl Client {
    /// A connection on which nothing was sent.
    pub(crate) fn silent(serving: &Serving) -> Self {
        let stream = UnixStream::connect(serving.socket()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { stream, pid: 0, key: Vec::new() }
    }

    /// A session.
    pub(crate) fn connect(serving: &Serving) -> Self {
        Self::connect_to(serving, "fixture")
    }

    /// A session in a database.
    pub(crate) fn connect_to(serving: &Serving, database: &str) -> Self {
        let mut client = Self::silent(serving);
        let found = client.start(&startup(0, &[("user", "postgres"), ("database", database)]));
        assert_eq!(found.last().map(String::as_str), Some("Z I"), "{found:?}");
        client
    }

    /// Sends a startup packet and reads until the session is ready or the connection ends.
    pub(crate) fn start(&mut self, packet: &[u8]) -> Vec<String> {
        self.send(packet);
        self.until_ready()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a connection");
    }

    /// The next message; `None` at the end of the connection.
    pub(crate) fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        match self.stream.read_exact(&mut head) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("no answer")
            }
            Err(_) => return None,
            Ok(()) => {}
        }
        let [kind, a, b, c, d] = head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize - 4;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a whole message");
        if kind == b'K' {
            let (pid, key) = body.split_first_chunk().expect("a number");
            (self.pid, self.key) = (i32::from_be_bytes(*pid), key.to_vec());
        }
        Some((kind, body))
    }

    /// All messages until the server is ready, or until the connection ends.
    pub(crate) fn until_ready(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some((kind, body)) = self.read() {
            all.push(shown(kind, &body));
            if kind == b'Z' {
                return all;
            }
        }
        all.push("end".to_owned());
        all
    }

    /// The answer to a text of statements.
    pub(crate) fn query(&mut self, sql: &str) -> Vec<String> {
        self.send(&message(b'Q', &text(sql)));
        self.until_ready()
    }

    /// The answer to messages of the extended protocol, with a Sync behind them.
    pub(crate) fn series(&mut self, messages: &[Vec<u8>]) -> Vec<String> {
        self.send(&[messages.concat(), sync()].concat());
        self.until_ready()
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A message as a text.
fn shown(kind: u8, body: &[u8]) -> String {
    let letter = char::from(kind);
    let shown = match kind {
        b'Z' => lossy(body),
        b'C' => lossy(body).trim_end_matches('\0').to_owned(),
        b'S' => lossy(body).trim_end_matches('\0').replace('\0', "="),
        b'D' => values(body)
            .iter()
            .map(|value| value.as_deref().map_or("NULL".into(), lossy))
            .collect::<Vec<_>>()
            .join(","),
        b'T' => columns(body).join(","),
        b't' => body
            .get(2..)
            .unwrap_or_default()
            .chunks_exact(4)
            .map(|oid| u32::from_be_bytes(oid.try_into().expect("4 bytes")).to_string())
            .collect::<Vec<_>>()
            .join(","),
        b'E' | b'N' => {
            let field = |wanted: u8| {
                let fields = body.split(|&byte| byte == 0);
                fields
                    .filter_map(|field| field.split_first())
                    .find(|(kind, _)| **kind == wanted)
                    .map(|(_, value)| lossy(value))
            };
            let part = |kind| field(kind).unwrap_or_default();
            let position = field(b'P').map(|at| format!(" @{at}")).unwrap_or_default();
            format!("{} {} {}{position}", part(b'S'), part(b'C'), part(b'M'))
        }
        _ => body.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    format!("{letter} {shown}").trim_end().to_owned()
}

/// The values of a row.
pub(crate) fn values(body: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut rest = body.get(2..).unwrap_or_default();
    let mut values = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        match i32::from_be_bytes(*length) {
            -1 => {
                values.push(None);
                rest = after;
            }
            length => {
                let (value, after) = after.split_at(usize::try_from(length).expect("a length"));
                values.push(Some(value.to_vec()));
                rest = after;
            }
        }
    }
    values
}

/// The columns of a description: name, type and format.
fn columns(body: &[u8]) -> Vec<String> {
    let mut rest = body.get(2..).unwrap_or_default();
    let mut columns = Vec::new();
    while let Some(end) = rest.iter().position(|&byte| byte == 0) {
        let (name, after) = rest.split_at(end);
        let fields = after.get(1..19).expect("the fields of a column");
        let oid =
            u32::from_be_bytes(fields.get(6..10).expect("a type").try_into().expect("4 bytes"));
        let format = fields.last().copied().unwrap_or_default();
        columns.push(format!("{}:{oid}:{format}", lossy(name)));
        rest = after.get(19..).unwrap_or_default();
    }
    columns
}
