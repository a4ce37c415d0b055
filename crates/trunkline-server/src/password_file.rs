//! The file with the users of TCP connections.
//!
//! ```text
//!   # user:verifier, as in pg_authid.rolpassword
//!   alice:SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk…=:c2VydmVy…=
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::ServerError;
use crate::secret_file;

/// The length of the keys: that of a SHA-256.
pub(crate) const KEY: usize = 32;

/// What proves that a client knows a password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Verifier {
    pub(crate) iterations: usize,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: [u8; KEY],
    pub(crate) server_key: [u8; KEY],
}

/// Users and their verifiers.
#[derive(Clone, Default)]
pub struct PasswordFile(BTreeMap<String, Verifier>);

impl std::fmt::Debug for PasswordFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Verifiers are secrets.
        f.debug_tuple("PasswordFile").field(&self.0.len()).finish()
    }
}

impl PasswordFile {
    /// Reads a file. Empty lines and those that begin with `#` are comments.
    ///
    /// # Errors
    /// [`ServerError::PasswordFile`]: others may read it, it has no users, or a line is wrong.
    pub fn read(path: &Path) -> Result<Self, ServerError> {
        let failed = |reason: String| ServerError::PasswordFile { path: path.to_owned(), reason };
        let bytes = secret_file::read(path).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
        let file = Self::parse(&text).map_err(failed)?;
        match file.0.is_empty() {
            true => Err(failed("it has no users".to_owned())),
            false => Ok(file),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut users = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let parsed = line.split_once(':').and_then(|(user, verifier)| {
                Some((user.to_owned(), Verifier::parse(verifier.trim())?))
            });
            let Some((user, verifier)) = parsed else {
                return Err(format!(
                    "line {number} is not user:SCRAM-SHA-256$iterations:salt$keys"
                ));
            };
            if users.insert(user.clone(), verifier).is_some() {
                return Err(format!("line {number}: user {user} is there twice"));
            }
        }
        Ok(Self(users))
    }

    pub(crate) fn get(&self, user: &str) -> Option<&Verifier> {
        self.0.get(user)
    }
}

impl Verifier {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("SCRAM-SHA-256$")?;
        let (first, keys) = text.split_once('$')?;
        let (iterations, salt) = first.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| STANDARD.decode(text).ok()?.try_into().ok();
        Some(Self {
            iterations: iterations.parse().ok().filter(|count| *count > 0)?,
            salt: STANDARD.decode(salt).ok()?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_users_with_verifiers() {
        let key = STANDARD.encode([7; KEY]);
        let line = format!("a:SCRAM-SHA-256$4096:{}${key}:{key}", STANDARD.encode(b"salt"));
        let file = PasswordFile::parse(&format!("# users\n\n{line}\n")).unwrap();
        assert_eq!(file.get("a").map(|found| found.iterations), Some(4096));
        assert!(file.get("b").is_none());
        let twice = PasswordFile::parse(&format!("{line}\n{line}"));
        assert_eq!(twice.unwrap_err(), "line 2: user a is there twice");
        for wrong in ["a", "a:md5abc", "a:SCRAM-SHA-256$0:c2FsdA==$x:y"] {
            assert!(PasswordFile::parse(wrong).unwrap_err().starts_with("line 1 is not"));
        }
    }
}
