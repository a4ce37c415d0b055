//! Clients over TCP, with passwords and TLS.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pgwire::api::auth::sasl::scram::{ScramSecret, gen_salted_password};
use trunkline_server::{PasswordFile, TlsIdentity};

use crate::ends::ENDLESS;
use crate::serving::Serving;

/// A file beside the tests.
fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificate").join(name)
}

fn write(path: &Path, bytes: &[u8], mode: u32) {
    std::fs::write(path, bytes).expect("a file");
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
}

/// Serves TCP on loopback. The user `alice` has the password `secret`.
fn serve(tls: bool) -> Option<Serving> {
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("passwords");
    let salt = b"0123456789abcdef".to_vec();
    let salted = gen_salted_password("secret", &salt, 4096);
    let secret = ScramSecret::verifier_from_salted_password(salt, salted, 4096);
    let ScramSecret::Verifier { salt, iterations, stored_key, server_key } = secret else {
        panic!("a verifier");
    };
    let [salt, stored, server] = [salt, stored_key, server_key].map(|key| STANDARD.encode(key));
    let line = format!("alice:SCRAM-SHA-256${iterations}:{salt}${stored}:{server}\n");
    write(&path, line.as_bytes(), 0o600);
    let passwords = PasswordFile::read(&path).expect("a password file");
    let key = directory.path().join("key.pem");
    write(&key, &std::fs::read(certificate("key.pem")).expect("a key"), 0o600);
    let identity = TlsIdentity::read(&certificate("certificate.pem"), &key);
    let identity = identity.expect("a certificate");
    Serving::start_with(|options| {
        options.port = 0;
        options.addresses = vec!["127.0.0.1".parse().expect("an address")];
        options.passwords = Some(passwords);
        options.tls = tls.then_some(identity);
    })
}

/// Connects with psql, and returns what it prints, errors included.
fn connect(serving: &Serving, user: &str, password: &str, more: &[(&str, &str)]) -> String {
    let address = serving.addresses.first().expect("an address");
    let mut psql = Command::new("psql");
    psql.args(["-X", "-At", "-h", "127.0.0.1", "-d", "fixture", "-U", user]);
    psql.args(["-p", &address.port().to_string(), "-c", "select current_user"]);
    psql.env("PGPASSWORD", password).envs(more.iter().copied());
    let output = psql.output().expect("psql");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_password_is_needed() {
    let Some(serving) = serve(false) else { return };
    assert_eq!(connect(&serving, "alice", "secret", &[]), "alice\n");
    let found = connect(&serving, "alice", "wrong", &[]);
    assert!(found.contains("password authentication failed for user \"alice\""), "{found}");
    // A user that doesn't exist fails in the same way.
    let found = connect(&serving, "bob", "secret", &[]);
    assert!(found.contains("password authentication failed for user \"bob\""), "{found}");
    let found = connect(&serving, "alice", "secret", &[("PGSSLMODE", "require")]);
    assert!(found.contains("server does not support SSL, but SSL was required"), "{found}");
}

#[test]
fn a_connection_is_encrypted() {
    let Some(serving) = serve(true) else { return };
    let require = ("PGSSLMODE", "require");
    assert_eq!(connect(&serving, "alice", "secret", &[require]), "alice\n");
    // The proof holds for this certificate only.
    let bound = [require, ("PGCHANNELBINDING", "require")];
    assert_eq!(connect(&serving, "alice", "secret", &bound), "alice\n");
    let unbound = [require, ("PGCHANNELBINDING", "disable")];
    assert_eq!(connect(&serving, "alice", "secret", &unbound), "alice\n");
    let found = connect(&serving, "alice", "wrong", &bound);
    assert!(found.contains("password authentication failed"), "{found}");
    // On loopback, TLS is the client's choice.
    assert_eq!(connect(&serving, "alice", "secret", &[("PGSSLMODE", "disable")]), "alice\n");
}

#[test]
fn files_that_others_can_read_are_refused() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("secret");
    let key = std::fs::read(certificate("key.pem")).expect("a key");
    let error_of = |bytes: &[u8], mode| {
        write(&path, bytes, mode);
        let identity = TlsIdentity::read(&certificate("certificate.pem"), &path);
        identity.expect_err("it is refused").to_string()
    };
    let start = format!("cannot use the private key {}: ", path.display());
    let found = error_of(&key, 0o604);
    assert!(found.starts_with(&start) && found.contains("group or world access"), "{found}");
    // Errors of the key name the key.
    let found = error_of(b"no key", 0o600);
    assert!(found.starts_with(&start), "{found}");
    let passwords = |bytes: &[u8], mode| {
        write(&path, bytes, mode);
        PasswordFile::read(&path).expect_err("it is refused").to_string()
    };
    let found = passwords(b"# no users yet\n", 0o640);
    assert!(found.contains("group or world access"), "{found}");
    let found = passwords(b"# no users yet\n", 0o600);
    assert!(found.ends_with(": it has no users"), "{found}");
}

/// Begins with TLS, sends a packet without a user, and reads to the end, which TLS must announce.
const CLOSE: &str = r#"
import socket, ssl, sys
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(["postgresql"])
plain = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
tls = context.wrap_socket(plain, suppress_ragged_eofs=False)
tls.sendall(bytes([0, 0, 0, 9, 0, 3, 0, 0, 0]))
while tls.recv(1000):
    pass
print("closed")
"#;

#[test]
fn a_statement_ends_with_its_client_over_tcp() {
    let Some(serving) = serve(true) else { return };
    let port = serving.addresses.first().expect("an address").port().to_string();
    for mode in ["disable", "require"] {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-h", "127.0.0.1", "-p", &port, "-d", "fixture", "-U", "alice"]);
        psql.args(["-c", ENDLESS]).envs([("PGPASSWORD", "secret"), ("PGSSLMODE", mode)]);
        let mut psql = psql.spawn().expect("psql");
        serving.wait_until_active();
        psql.kill().expect("a process");
        psql.wait().expect("its end");
        serving.wait_for_sessions(0);
    }
}

#[test]
fn the_end_of_an_encrypted_connection_is_announced() {
    let Some(serving) = serve(true) else { return };
    let port = serving.addresses.first().expect("an address").port().to_string();
    let output = Command::new("python3").args(["-c", CLOSE, &port]).output().expect("python");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "closed\n", "{error}");
}
