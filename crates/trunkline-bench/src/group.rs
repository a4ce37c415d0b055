//! A control group with a memory limit, removed when it is dropped.
//!
//! The root of cgroup version 2 is found by its mount. The user can name a parent group of either version instead,
//! for machines where the memory controller still belongs to version 1 or a service manager owns the root.

use crate::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// See the module. Removed when dropped, which its processes must not outlive.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    limit: u64,
    version: u32,
}

impl Group {
    /// A new group in `parent`, or else in the root of version 2, for `limit` bytes of memory.
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

    /// What it is.
    pub(crate) fn describe(&self) -> String {
        format!("cgroup v{}, at most {} MB of memory", self.version, self.limit / 1_000_000)
    }

    /// Moves this process into a group.
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

/// Where version 2 is mounted.
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
