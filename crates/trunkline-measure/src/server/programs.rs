//! **Programs** of a server: where they are, and their version.

use std::path::{Path, PathBuf};

use super::account::Account;
use super::error::ServerError;

/// The oldest version whose statistics can be read at once (`pg_stat_force_next_flush`).
const MAJOR_MIN: u32 = 15;

/// A directory with the programs of one version, and the user that runs them.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) bin: PathBuf,
    pub(super) account: Account,
    /// Such as `18.6` or `19beta1`.
    pub(super) version: String,
    pub(super) major: u32,
}

impl Programs {
    /// Finds the programs, and checks that `account` can run them.
    pub(super) fn find(bin: &Path, account: Account) -> Result<Self, ServerError> {
        let unknown = |error: std::io::Error| ServerError::Program {
            path: bin.to_owned(),
            reason: error.to_string(),
        };
        let bin = bin.canonicalize().map_err(unknown)?;
        let refused =
            |name: &str, reason: String| Err(ServerError::Program { path: bin.join(name), reason });
        for name in ["postgres", "initdb"] {
            if !bin.join(name).is_file() {
                let reason = "is missing: expected a directory with the programs of a server";
                return refused(name, reason.to_owned());
            }
        }
        let asked =
            account.command(&bin.join("postgres"), Path::new("/")).arg("--version").output();
        let output = match asked {
            Ok(output) if output.status.success() => output,
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return refused("postgres", format!("--version failed: {text}"));
            }
            Err(error) => {
                let reason = format!("the user that runs the server can't execute it: {error}");
                return refused("postgres", reason);
            }
        };
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match version(&text) {
            Some((version, major)) if major >= MAJOR_MIN => {
                Ok(Self { bin, account, version, major })
            }
            Some(_) => {
                let reason = format!("is {text}, expected PostgreSQL {MAJOR_MIN} or later");
                refused("postgres", reason)
            }
            None => refused("postgres", format!("--version printed \"{text}\"")),
        }
    }
}

/// Version and major version in `postgres (PostgreSQL) 18.6 (Debian 18.6-3)`.
fn version(text: &str) -> Option<(String, u32)> {
    let version = text.strip_prefix("postgres (PostgreSQL) ")?.split(' ').next()?;
    let digits = version.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(version.len());
    Some((version.to_owned(), version[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_a_server_prints() {
        for (text, expected) in [
            ("postgres (PostgreSQL) 18.6 (Debian 18.6-3)", Some(("18.6", 18))),
            ("postgres (PostgreSQL) 19rc1", Some(("19rc1", 19))),
            ("postgres (PostgreSQL) devel", None),
            ("busybox", None),
        ] {
            let expected = expected.map(|(version, major)| (version.to_owned(), major));
            assert_eq!(version(text), expected);
        }
    }
}
