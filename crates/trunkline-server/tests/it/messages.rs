//! Malformed messages: an error or the end of the connection, and never of the server.

use crate::client::{Client, message, text};
use crate::serving::Serving;

#[test]
fn a_message_that_lies_about_its_contents_is_an_error() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let invalid: [(u8, &[u8]); 10] = [
        (b'Q', b"select 1"),
        (b'Q', b"select 1\0more"),
        (b'P', b"\0select 1\0\xFF\xFF"),
        (b'P', b"\0"),
        (b'B', b"\0\0\0\0\0\x01\x7F\xFF\xFF\xFF"),
        (b'B', b"\0\0\xFF\xFF"),
        (b'D', b"X\0"),
        (b'E', b"\0\0"),
        (b'C', b""),
        (b'E', b"\0\0\0\0\0\0"),
    ];
    for (kind, body) in invalid {
        client.send(&message(kind, body));
        // A Query is answered at once, a message of the extended protocol at Sync.
        if kind != b'Q' {
            client.send(&message(b'S', b""));
        }
        let found = client.until_ready();
        assert!(found.first().is_some_and(|error| error.starts_with("E ERROR 08P01")), "{found:?}");
        assert_eq!(found.get(1).map(String::as_str), Some("Z I"), "{found:?}");
    }
    assert_eq!(client.query("select 1").len(), 4);
}

#[test]
fn a_connection_that_is_out_of_step_ends() {
    let Some(serving) = Serving::start() else { return };
    for bytes in [
        &b"z\0\0\0\x04"[..],
        b"Q\0\0\0\x03",
        b"Q\x7F\xFF\xFF\xFF",
        b"Q\xFF\xFF\xFF\xFF",
        b"E\0\x10\0\0",
        // Nothing has asked for a password.
        b"p\0\0\0\x05\0",
    ] {
        let mut client = Client::connect(&serving);
        client.send(bytes);
        let found = client.until_ready();
        assert!(found.first().is_some_and(|error| error.starts_with("E FATAL 08P01")), "{found:?}");
        assert_eq!(found.last().map(String::as_str), Some("end"));
    }
    // A message that never comes to its end.
    let mut client = Client::connect(&serving);
    client.send(b"Q\x3F\xFF\xFF\x00");
    client.send(&text("select"));
    drop(client);
    serving.wait_for_sessions(0);
}

#[test]
fn a_malformed_sync_ends_the_series() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    client.query("begin");
    client.send(&message(b'S', b"more"));
    assert_eq!(client.until_ready(), ["E ERROR 08P01 invalid message format", "Z E"]);
    client.query("rollback");
    client.send(&[message(b'E', b"x"), message(b'S', b"more")].concat());
    let expected =
        ["E ERROR 08P01 invalid string in message", "E ERROR 08P01 invalid message format", "Z I"];
    assert_eq!(client.until_ready(), expected);
}

#[test]
fn what_is_skipped_is_not_decoded() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let skipped = [message(b'E', b"x"), message(b'B', b"zz"), message(b'Q', b"x")].concat();
    client.send(&[skipped, message(b'S', b"")].concat());
    assert_eq!(client.until_ready(), ["E ERROR 08P01 invalid string in message", "Z I"]);
    assert_eq!(client.query("select 1").len(), 4);
    // The client may go meanwhile.
    client.send(&[message(b'E', b"x"), message(b'X', b"")].concat());
    assert_eq!(client.until_ready(), ["E ERROR 08P01 invalid string in message", "end"]);
}
