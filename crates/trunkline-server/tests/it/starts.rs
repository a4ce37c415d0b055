//! The start of connections.

use std::io::Read as _;
use std::sync::Arc;

use trunkline_server::{Server, ServerError};

use crate::client::{Client, packet, startup};
use crate::serving::{Serving, fixtures, instance, options};

const USER: (&str, &str) = ("user", "postgres");

#[test]
fn encryption_of_a_local_connection_is_declined() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::silent(&serving);
    for code in [80_877_103_u32, 80_877_104] {
        client.send(&packet(&code.to_be_bytes()));
        let mut answer = [0];
        client.stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"N");
    }
    let found = client.start(&startup(0, &[USER, ("database", "fixture")]));
    assert_eq!(found.last().map(String::as_str), Some("Z I"));
    assert_eq!(found.iter().filter(|line| line.starts_with("S ")).count(), 14, "{found:?}");
}

#[test]
fn the_protocol_is_negotiated() {
    let Some(serving) = Serving::start() else { return };
    let database = ("database", "fixture");
    let mut client = Client::silent(&serving);
    client.start(&startup(0, &[USER, database]));
    assert_eq!(client.key.len(), 4);
    let mut client = Client::silent(&serving);
    let found = client.start(&startup(2, &[USER, database]));
    assert_eq!((client.key.len(), found.last().map(String::as_str)), (32, Some("Z I")));
    let mut client = Client::silent(&serving);
    let found = client.start(&startup(9, &[USER, database, ("_pq_.x", "1")]));
    // 3.2, and one option that isn't known.
    let expected = "v 00030002000000015f70715f2e7800";
    assert_eq!(found.first().map(String::as_str), Some(expected));
    assert_eq!(client.key.len(), 32);
}

#[test]
fn wrong_starts_are_refused() {
    let Some(serving) = Serving::start() else { return };
    let refused = |bytes: &[u8]| {
        let found = Client::silent(&serving).start(bytes);
        assert_eq!(found.last().map(String::as_str), Some("end"), "{found:?}");
        found.first().cloned().unwrap_or_default()
    };
    let database = refused(&startup(0, &[USER, ("database", "none")]));
    assert_eq!(database, "E FATAL 3D000 database \"none\" does not exist");
    let unnamed = refused(&startup(0, &[("database", "fixture")]));
    assert_eq!(unnamed, "E FATAL 28000 no PostgreSQL user name specified in startup packet");
    assert!(
        refused(&packet(&[0, 2, 0, 0]))
            .starts_with("E FATAL 0A000 unsupported frontend protocol 2.0")
    );
    assert!(refused(&packet(&[0, 3, 0, 0, b'a'])).starts_with("E FATAL 08P01"));
    assert!(refused(&[0, 0, 0, 3]).starts_with("E FATAL 08P01"));
    assert!(refused(&[0x7F, 0xFF, 0xFF, 0xFF]).starts_with("E FATAL 08P01"));
    let setting = refused(&startup(0, &[USER, ("database", "fixture"), ("work_mem", "x")]));
    assert_eq!(setting, "E FATAL 22023 invalid value for parameter \"work_mem\": \"x\"");
    serving.wait_for_sessions(0);
}

#[test]
fn settings_come_with_the_start() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::silent(&serving);
    client.start(&startup(
        0,
        &[USER, ("database", "fixture"), ("options", "-c work_mem=8MB --application-name=a\\ b")],
    ));
    assert_eq!(client.query("show work_mem").get(1).map(String::as_str), Some("D 8MB"));
    assert_eq!(client.query("show application_name").get(1).map(String::as_str), Some("D a b"));
}

#[test]
fn clients_beyond_the_limit_are_refused() {
    let Some(serving) = Serving::start_with(|options| options.max_connections = 1) else { return };
    let mut first = Client::connect(&serving);
    let found = Client::silent(&serving).start(&startup(0, &[USER, ("database", "fixture")]));
    assert_eq!(found, ["E FATAL 53300 sorry, too many clients already", "end"]);
    assert_eq!(first.query("select 1").len(), 4);
}

#[test]
fn a_connection_that_starts_takes_no_place_of_a_session() {
    let Some(serving) = Serving::start_with(|options| options.max_connections = 1) else { return };
    let mut starting = Client::silent(&serving);
    starting.send(&packet(&80_877_103_u32.to_be_bytes()));
    let mut answer = [0];
    starting.stream.read_exact(&mut answer).expect("an answer");
    // As soon as one of two has started or gone, there is room for another one.
    drop(Client::connect(&serving));
    serving.wait_for_sessions(0);
    let found = starting.start(&startup(0, &[USER, ("database", "fixture")]));
    assert_eq!(found.last().map(String::as_str), Some("Z I"), "{found:?}");
}

#[test]
fn a_socket_has_one_server() {
    let Some(mut serving) = Serving::start() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let data = fixtures().pop().expect("a fixture");
    let bind = |directory: &std::path::Path| {
        runtime.block_on(Server::bind(Arc::clone(&serving.instance), options(directory)))
    };
    let found = bind(serving.directory.path()).err();
    assert!(matches!(found, Some(ServerError::SocketInUse(_))), "{found:?}");
    let found = bind(&data).err();
    assert!(matches!(found, Some(ServerError::SocketInCluster(_))), "{found:?}");
    serving.stopper.stop();
    serving.wait_for_end();
    assert!(!serving.socket().exists());
    // What a server that was killed leaves behind is replaced.
    drop(std::os::unix::net::UnixListener::bind(serving.socket()).expect("a socket"));
    let again = runtime
        .block_on(Server::bind(instance(&data, "4MB", None), options(serving.directory.path())));
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn tcp_needs_passwords_and_certificates() {
    let Some(data) = fixtures().pop() else { return };
    let directory = tempfile::TempDir::new().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut options = options(directory.path());
    options.addresses = vec!["127.0.0.1".parse().expect("an address")];
    options.port = 0;
    let runtime = runtime.expect("a runtime");
    let found = runtime.block_on(Server::bind(instance(&data, "4MB", None), options.clone())).err();
    assert!(matches!(found, Some(ServerError::NoPasswords(_))), "{found:?}");
    options.addresses = vec!["0.0.0.0".parse().expect("an address")];
    options.passwords = Some(Default::default());
    let found = runtime.block_on(Server::bind(instance(&data, "4MB", None), options)).err();
    assert!(matches!(found, Some(ServerError::NoTls(_))), "{found:?}");
}
