//! A slow disk for one test. The test uses the mount that its own process serves. A program must not,
//! because it might be killed meanwhile; tests end by themselves.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use trunkline_aio::facade::{Arc, Futex};
use trunkline_slow_disk::{Accuracy, SlowDisk, Statistics, measure, unmount};

/// A mounted directory. It is unmounted when this value is dropped.
pub(crate) struct Mounted {
    disk: Option<SlowDisk>,
    home: TempDir,
}

impl Mounted {
    /// Mounts an empty directory with this profile. `None` if the machine can't; the test is then
    /// skipped.
    pub(crate) fn new(profile: &str) -> Option<Mounted> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root");
            return None;
        }
        if !Path::new("/dev/fuse").exists() {
            println!("skipped: no /dev/fuse");
            return None;
        }
        let home = tempfile::Builder::new().prefix("trunkline-").tempdir().expect("directory");
        // Tests run programs as other users.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(home.path(), open).expect("changed");
        for name in ["below", "mount"] {
            fs::create_dir(home.path().join(name)).expect("directory");
        }
        let mut mounted = Mounted { disk: None, home };
        mounted.mount(profile);
        Some(mounted)
    }

    /// Mounts the directory, which must not be mounted.
    pub(crate) fn mount(&mut self, profile: &str) {
        let profile = profile.parse().expect("a profile");
        let (below, mount) = (self.below(), self.path());
        let ended = Arc::new(Futex::new(0));
        self.disk = Some(SlowDisk::mount(&below, &mount, profile, ended).expect("mounted"));
    }

    /// Unmounts, and mounts again with another profile.
    pub(crate) fn remount(&mut self, profile: &str) {
        self.unmount();
        self.mount(profile);
    }

    /// Unmounts, and returns what the disk has done.
    pub(crate) fn unmount(&mut self) -> Statistics {
        let disk = self.disk.take().expect("mounted");
        unmount(&self.path(), disk.device()).expect("unmounted");
        disk.wait().expect("served")
    }

    /// What the disk has done so far.
    pub(crate) fn statistics(&self) -> Statistics {
        self.disk.as_ref().expect("mounted").statistics()
    }

    /// Measures the accuracy.
    pub(crate) fn measure(&self) -> Vec<Accuracy> {
        let disk = self.disk.as_ref().expect("mounted");
        disk.show_probe(true);
        let measured = measure(&self.path(), disk.profile().latency()).expect("measured");
        disk.show_probe(false);
        measured
    }

    /// The mount point.
    pub(crate) fn path(&self) -> PathBuf {
        self.home.path().join("mount")
    }

    /// The directory below.
    pub(crate) fn below(&self) -> PathBuf {
        self.home.path().join("below")
    }

    /// The parent of both, which is not on the slow disk.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A test that failed may have files open, so we don't wait.
        if let Some(disk) = &self.disk {
            let _ = unmount(&self.path(), disk.device());
        }
    }
}
