//! The user that runs a server, with its groups: io_uring may be allowed to a group only
//! (`kernel.io_uring_group`).
//!
//! ```text
//!   running server ──▶ /proc/PID/status ─┐
//!   owner of the data directory ──▶ passwd and group databases ─┴▶ uid, gid, groups
//! ```
//! A process becomes that user itself, after it was started as root. If it became the user before it
//! is executed, as with `Command::uid`, the user would have to be allowed to execute our program, and
//! would have no supplementary groups.

use std::ffi::CString;
use std::fs;
use std::io;

use nix::unistd::{Gid, Uid, User, getgrouplist, setgroups, setresgid, setresuid};

/// A user and its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerUser {
    pub(crate) uid: u32,
    /// The primary group first.
    pub(crate) groups: Vec<u32>,
}

impl ServerUser {
    /// The user of a running process. `None` if the process has ended.
    pub(crate) fn of_process(pid: u32) -> Option<ServerUser> {
        parse_status(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    /// The owner of files, with its groups as at a login. A user that the system doesn't know has only
    /// the group of the files.
    pub(crate) fn of_owner(uid: u32, gid: u32) -> ServerUser {
        let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        let groups = user.and_then(|user| {
            let name = CString::new(user.name).ok()?;
            // The primary group is the first one.
            getgrouplist(&name, user.gid).ok()
        });
        let groups = groups.map(|groups| groups.into_iter().map(Gid::as_raw).collect());
        ServerUser { uid, groups: groups.unwrap_or_else(|| vec![gid]) }
    }

    /// Makes this process one of the user.
    ///
    /// # Errors
    /// We are not root, or the user namespace doesn't have the user or a group.
    pub(crate) fn assume(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        let primary = groups.first().copied().unwrap_or_else(Gid::current);
        let uid = Uid::from_raw(self.uid);
        setgroups(&groups)?;
        setresgid(primary, primary, primary)?;
        setresuid(uid, uid, uid)?;
        Ok(())
    }
}

/// The effective user and group, and the supplementary groups.
fn parse_status(status: &str) -> Option<ServerUser> {
    let numbers = |name: &str| -> Option<Vec<u32>> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().map(|number| number.parse().ok()).collect()
    };
    let (uid, gid) = (*numbers("Uid")?.get(1)?, *numbers("Gid")?.get(1)?);
    let others = numbers("Groups")?.into_iter().filter(|group| *group != gid);
    Some(ServerUser { uid, groups: [gid].into_iter().chain(others).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_user_and_groups() {
        let status = "Name:\tpostgres\nUid:\t0\t26\t0\t0\nGid:\t0\t27\t0\t0\nGroups:\t1234 27 5 \n";
        let expected = ServerUser { uid: 26, groups: vec![27, 1234, 5] };
        assert_eq!(parse_status(status), Some(expected));
        assert_eq!(parse_status("Uid:\t1\t1\t1\t1\n"), None);
        let own = ServerUser::of_process(std::process::id()).expect("this process");
        assert_eq!(own.uid, rustix::process::geteuid().as_raw());
    }

    #[test]
    fn an_unknown_owner_has_the_group_of_its_files() {
        let found = ServerUser::of_owner(4_000_000_001, 77);
        assert_eq!(found, ServerUser { uid: 4_000_000_001, groups: vec![77] });
        assert_eq!(ServerUser::of_owner(0, 77).groups.first(), Some(&0), "root is known");
    }
}
