//! **Control group** with a memory limit. It is removed on drop.
//!
//! We find the cgroup v2 root by looking up its mount point. Alternatively, the user can specify a
//! parent group of either version with `--group`. That is necessary on machines where the memory
//! controller is still attached to v1, or where a service manager owns the root.

use crate::failure::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// A control group, which is removed when this value is dropped. The kernel refuses to remove a
/// group that still contains processes, so all of its processes must have exited by then.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    limit: u64,
    version: u32,
}

impl Group {
    /// Creates a group below `parent`, or below the v2 root if there is no parent, limited to
    /// `limit` bytes of memory.
    pub(crate) fn make(parent: Option<&Path>, limit: u64) -> Result<Self> {
        let parent = match parent {
            Some(parent) => parent.to_owned(),
            None => root()?,
        };
        let version = if parent.join("memory.limit_in_bytes").exists() { 1 } else { 2 };
        if version == 2 {
            let listed = |file| {
                let text = fs::read_to_string(parent.join(file)).unwrap_or_default();
                text.split_whitespace().any(|word| word == "memory")
            };
            if !listed("cgroup.controllers") {
                return Err(format!(
                    "{} has no memory controller (name another group by --group)",
                    parent.display()
                )
                .into());
            }
            if !listed("cgroup.subtree_control") {
                write(&parent.join("cgroup.subtree_control"), "+memory")?;
            }
        }
        let path = parent.join(format!("trunkline-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| named(&path, &error))?;
        let group = Self { path, limit, version };
        let file = if version == 1 { "memory.limit_in_bytes" } else { "memory.max" };
        write(&group.path.join(file), &limit.to_string())?;
        Ok(group)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Version and limit, for the report.
    pub(crate) fn describe(&self) -> String {
        format!("cgroup v{}, at most {} MB of memory", self.version, self.limit / 1_000_000)
    }

    /// Moves this process into the group at `path`. Any memory that the process has already
    /// allocated stays charged to its old group, so it must enter the group before it allocates the
    /// pool.
    pub(crate) fn enter(path: &Path) -> Result<()> {
        write(&path.join("cgroup.procs"), "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}

/// Mount point of cgroup v2, from `/proc/self/mounts`.
fn root() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    });
    Ok(mount.ok_or("no cgroup2 file system is mounted (name a group by --group)")?)
}

fn write(path: &Path, text: &str) -> Result<()> {
    Ok(fs::write(path, text).map_err(|error| named(path, &error))?)
}

fn named(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
