//! A file system on a loop device. Tests can mount, unmount and damage it.
//!
//! ```text
//!   home/device/image   the device, a sparse file; on a tmpfs of its own if the test fills that up
//!   home/mounted        the mount point
//! ```

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::need;

/// A mounted file system. Dropping it unmounts it.
pub(crate) struct Looped {
    home: tempfile::TempDir,
    /// Type of the file system.
    kind: &'static str,
    options: &'static str,
    /// The image is on a tmpfs.
    in_memory: bool,
}

impl Looped {
    /// Creates and mounts a file system of size `bytes`. `make` is the command that formats the
    /// image; we append the path of the image to it. If the machine doesn't support this, we skip
    /// the test and return `None`.
    pub(crate) fn new(
        make: &[&str],
        bytes: u64,
        kind: &'static str,
        options: &'static str,
    ) -> Option<Self> {
        Self::start(make, bytes, (kind, options), None)
    }

    /// Like `new`, but with the image on its own tmpfs of `room` bytes.
    pub(crate) fn in_memory(
        make: &[&str],
        bytes: u64,
        kind: (&'static str, &'static str),
        room: u64,
    ) -> Option<Self> {
        Self::start(make, bytes, kind, Some(room))
    }

    fn start(
        make: &[&str],
        bytes: u64,
        (kind, options): (&'static str, &'static str),
        room: Option<u64>,
    ) -> Option<Self> {
        let home = tempfile::tempdir().expect("a folder");
        let mut this = Self { home, kind, options, in_memory: false };
        let made = this.make(make, bytes, room).and_then(|()| this.attach());
        match made {
            Ok(()) => Some(this),
            Err(reason) => {
                need::skip(&reason);
                None
            }
        }
    }

    fn make(&mut self, make: &[&str], bytes: u64, room: Option<u64>) -> Result<(), String> {
        fs::create_dir(self.path()).expect("a folder");
        let folder = self.image_folder();
        fs::create_dir(&folder).expect("a folder");
        if let Some(room) = room {
            let size = format!("size={room}");
            run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", text(&folder)])?;
            self.in_memory = true;
        }
        let file = OpenOptions::new().create_new(true).write(true).open(self.image());
        file.and_then(|file| file.set_len(bytes)).expect("an image");
        let image = self.image();
        let (program, arguments) = make.split_first().expect("a program");
        run(program, &[arguments, &[text(&image)]].concat()).map(drop)
    }

    /// The mount point.
    pub(crate) fn path(&self) -> PathBuf {
        self.home.path().join("mounted")
    }

    /// The device's image.
    pub(crate) fn image(&self) -> PathBuf {
        self.image_folder().join("image")
    }

    /// The image's directory.
    pub(crate) fn image_folder(&self) -> PathBuf {
        self.home.path().join("device")
    }

    /// Mounts the file system.
    pub(crate) fn attach(&self) -> Result<(), String> {
        let (image, path) = (self.image(), self.path());
        let options = format!("loop,{}", self.options);
        let arguments = ["-t", self.kind, "-o", &options, text(&image), text(&path)];
        run("mount", &arguments).map(drop)
    }

    /// Unmounts the file system, which drops it from the page cache.
    pub(crate) fn detach(&self) -> Result<(), String> {
        run("umount", &[text(&self.path())]).map(drop)
    }
}

impl Drop for Looped {
    fn drop(&mut self) {
        // Fails if the file system was never mounted.
        let _ = self.detach();
        if self.in_memory {
            let _ = run("umount", &[text(&self.image_folder())]);
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name")
}

/// Runs a program. Returns its output, or its error message if it failed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
