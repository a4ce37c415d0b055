//! **Account**: the user that runs the server.
//!
//! A server refuses to run as root. If we are root, an ordinary user runs it and owns its
//! directories. Otherwise we run it ourselves.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::error::ServerError;

/// The users that are tried, unless one is named.
const USUAL: [&str; 2] = ["postgres", "nobody"];

/// A user that may run a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    /// User and group, unless we are this user.
    ids: Option<(u32, u32)>,
}

impl Account {
    /// The named user, or else the first usual one that exists. Only root may name one.
    pub(super) fn find(named: Option<&str>) -> Result<Self, ServerError> {
        let path = Path::new("/etc/passwd");
        let users = fs::read_to_string(path).map_err(|error| ServerError::system(path, error))?;
        Self::choose(rustix::process::geteuid().is_root(), named, &users)
    }

    fn choose(is_root: bool, named: Option<&str>, users: &str) -> Result<Self, ServerError> {
        let refused = |text: String| Err(ServerError::Account(text));
        match (is_root, named) {
            (false, None) => Ok(Self { ids: None }),
            (false, Some(name)) => {
                refused(format!("only root can run the server as another user, \"{name}\""))
            }
            (true, Some(name)) => match ids(users, name) {
                Some((0, _)) => {
                    refused(format!("the server can't run as \"{name}\", which is root"))
                }
                Some(ids) => Ok(Self { ids: Some(ids) }),
                None => refused(format!("there is no user \"{name}\"")),
            },
            (true, None) => match USUAL.into_iter().find_map(|name| ids(users, name)) {
                Some(ids) if ids.0 != 0 => Ok(Self { ids: Some(ids) }),
                _ => refused("a server can't run as root, and there is no other user".to_owned()),
            },
        }
    }

    /// A program that runs as this user in `directory`, without a terminal.
    pub(super) fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        // Messages are read by us, so they must be in English.
        command.stdin(Stdio::null()).env("LC_ALL", "C").current_dir(directory);
        for name in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGOPTIONS", "PGDATABASE"] {
            command.env_remove(name);
        }
        if let Some((user, group)) = self.ids {
            command.uid(user).gid(group);
        }
        command
    }

    /// Lets this user pass through a directory of ours to its own directories. Other users can then
    /// pass through it, too, but can't list it or write to it.
    pub(super) fn open_path(&self, path: &Path) -> Result<(), ServerError> {
        if self.ids.is_none() {
            return Ok(());
        }
        let opened = fs::metadata(path).and_then(|found| {
            let mode = found.permissions().mode() | 0o011;
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        });
        opened.map_err(|error| ServerError::system(path, error))
    }

    /// Creates a directory that only this user may read.
    pub(super) fn create_directory(&self, path: &Path) -> Result<(), ServerError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = fs::DirBuilder::new().mode(0o700).create(path);
        let owned = made.and_then(|()| match self.ids {
            Some((user, group)) => chown(path, Some(user), Some(group)),
            None => Ok(()),
        });
        owned.map_err(|error| ServerError::system(path, error))
    }
}

/// User and group of a line of `/etc/passwd`, such as `postgres:x:101:104::/:/bin/false`.
fn ids(users: &str, name: &str) -> Option<(u32, u32)> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
    Some((fields.next()??, fields.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_never_runs_a_server() {
        let users = "root:x:0:0::/root:/bin/sh\npostgres:x:101:104::/:/bin/false\nann:x:7:8::\n";
        let choose = |root, named| Account::choose(root, named, users);
        assert_eq!(choose(true, None).expect("found").ids, Some((101, 104)));
        assert_eq!(choose(true, Some("ann")).expect("found").ids, Some((7, 8)));
        assert_eq!(choose(false, None).expect("ourselves").ids, None);
        for (root, named, expected) in [
            (true, Some("root"), "can't run as \"root\""),
            (true, Some("bob"), "there is no user \"bob\""),
            (false, Some("ann"), "only root can run"),
        ] {
            let error = choose(root, named).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = Account::choose(true, None, "root:x:0:0::").expect_err("no user").to_string();
        assert!(error.contains("there is no other user"), "{error}");
    }
}
