//! Clients over TCP, with passwords and TLS.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pgwire::api::auth::sasl::scram::{ScramSecret, gen_salted_password};
use trunkline_server::{PasswordFile, TlsIdentity};

use crate::serving::Serving;

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
    std::fs::write(&path, line).expect("a file");
    let passwords = PasswordFile::read(&path).expect("a password file");
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificate");
    let identity =
        TlsIdentity::read(&certificates.join("certificate.pem"), &certificates.join("key.pem"));
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
