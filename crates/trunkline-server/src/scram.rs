//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side. The computation is pgwire's.
//!
//! ```text
//!   client   n,,n=,r=nonce
//!   server   r=nonce+more,s=salt,i=iterations
//!   client   c=biws,r=nonce+more,p=proof
//!   server   v=signature
//! ```
//!
//! For a user that doesn't exist, the exchange is the same, with a salt that is always the same for
//! that name, and fails in the end. Inside TLS, the proof may include the certificate's hash
//! (`SCRAM-SHA-256-PLUS`), so that it is worth nothing to a server in between.

use std::fmt;

use pgwire::api::auth::sasl::scram::{
    ScramSecret, ScramServerAuth, ScramServerAuthWaitingForClientFinal,
};
use pgwire::error::PgWireError;

use crate::cancel_keys::random_bytes;
use crate::password_file::{KEY, PasswordFile};

/// The mechanism without channel binding.
pub(crate) const PLAIN: &str = "SCRAM-SHA-256";

/// The mechanism with channel binding.
pub(crate) const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// The iterations that are claimed for users that don't exist: PostgreSQL's default.
const ITERATIONS: usize = 4096;

/// The length of the salt for users that don't exist: PostgreSQL's.
const SALT: usize = 16;

/// The users, and a secret from which the salts of others are made.
pub(crate) struct Users {
    file: PasswordFile,
    secret: [u8; KEY],
    /// How a channel without TLS is authenticated.
    plain: ScramServerAuth,
    /// How a channel with TLS is; `None` if the certificate's hash can't be computed.
    bound: Option<ScramServerAuth>,
    /// Why it can't.
    unbound_reason: Option<String>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("file", &self.file).finish_non_exhaustive()
    }
}

/// An exchange after its first message.
#[derive(Debug)]
pub(crate) struct Exchange {
    waiting: ScramServerAuthWaitingForClientFinal,
    /// Whether the user exists.
    exists: bool,
    server_first: String,
}

/// Why an exchange ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScramError {
    /// The message isn't one of the exchange's.
    Malformed(String),
    /// The proof is wrong.
    WrongPassword,
}

impl From<PgWireError> for ScramError {
    fn from(error: PgWireError) -> Self {
        match error {
            PgWireError::InvalidPassword(_) => Self::WrongPassword,
            other => Self::Malformed(other.to_string()),
        }
    }
}

impl Users {
    /// The users of a password file. `certificate` is the server's, in PEM.
    pub(crate) fn new(file: PasswordFile, certificate: Option<&[u8]>) -> Self {
        let mut secret = [0; KEY];
        secret.iter_mut().zip(random_bytes()).for_each(|(place, byte)| *place = byte);
        let (mut bound, mut unbound_reason) = (None, None);
        if let Some(certificate) = certificate {
            let mut auth = ScramServerAuth::new();
            match auth.configure_certificate(certificate) {
                Ok(()) => bound = Some(auth),
                Err(error) => unbound_reason = Some(error.to_string()),
            }
        }
        Self { file, secret, plain: ScramServerAuth::new(), bound, unbound_reason }
    }

    /// Why there is no channel binding although there is a certificate.
    pub(crate) fn unbound_reason(&self) -> Option<&str> {
        self.unbound_reason.as_deref()
    }

    /// The mechanisms to offer, the better one first.
    pub(crate) fn mechanisms(&self, is_encrypted: bool) -> &'static [&'static str] {
        if is_encrypted && self.bound.is_some() { &[BOUND, PLAIN] } else { &[PLAIN] }
    }

    /// Reads the client's first message.
    ///
    /// # Errors
    /// [`ScramError::Malformed`].
    pub(crate) fn begin(
        &self,
        user: &str,
        mechanism: &str,
        is_encrypted: bool,
        message: &[u8],
    ) -> Result<Exchange, ScramError> {
        let wants_binding = message.first() == Some(&b'p');
        if (mechanism == BOUND) != wants_binding {
            let text = "the mechanism and the kind of channel binding don't fit";
            return Err(ScramError::Malformed(text.to_owned()));
        }
        let (secret, exists) = self.verifier(user);
        let server = self.bound.as_ref().filter(|_| is_encrypted).unwrap_or(&self.plain);
        let (server_first, waiting) =
            server.on_client_first_message_with_secret(message, secret)?;
        Ok(Exchange { waiting, exists, server_first })
    }

    /// The verifier of a user, and whether the user exists.
    fn verifier(&self, user: &str) -> (ScramSecret, bool) {
        if let Some(found) = self.file.get(user) {
            let secret = ScramSecret::Verifier {
                salt: found.salt.clone(),
                iterations: found.iterations,
                stored_key: found.stored_key.to_vec(),
                server_key: found.server_key.to_vec(),
            };
            return (secret, true);
        }
        // A hash of the secret and the name: pgwire offers no bare one, but its verifiers are hashes.
        let hashed = ScramSecret::verifier_from_salted_password(
            Vec::new(),
            [&self.secret, user.as_bytes()].concat(),
            ITERATIONS,
        );
        let salt = match hashed {
            ScramSecret::Verifier { stored_key, .. } => stored_key.into_iter().take(SALT).collect(),
            ScramSecret::SaltedPassword { salt, .. } => salt,
        };
        let (stored_key, server_key) = (self.secret.to_vec(), self.secret.to_vec());
        let secret = ScramSecret::Verifier { salt, iterations: ITERATIONS, stored_key, server_key };
        (secret, false)
    }
}

impl Exchange {
    /// The answer to the first message.
    pub(crate) fn server_first(&self) -> &str {
        &self.server_first
    }

    /// Reads the client's final message. Returns the answer.
    ///
    /// # Errors
    /// See [`ScramError`].
    pub(crate) fn finish(&self, message: &[u8]) -> Result<String, ScramError> {
        let answer = self.waiting.on_client_final_message(message)?;
        if self.exists { Ok(answer) } else { Err(ScramError::WrongPassword) }
    }
}
