//! A file system of our own on a loop device, to be mounted, unmounted and damaged.
//!
//! ```text
//!   home/image     the device, a sparse file; on a tmpfs of its own if that is to be full some day
//!   home/mounted   where it is to be found
//! ```

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::need;

/// Unmounted when this is dropped.
pub(crate) struct Looped {
    home: tempfile::TempDir,
    /// Type of the file system.
    kind: &'static str,
    options: &'static str,
    /// The image is on a tmpfs.
    in_memory: bool,
}

impl Looped {
    /// One of so many bytes, made by a program that takes the image's name at last. `None`: the machine
    /// cannot, and the test is skipped.
    pub(crate) fn new(
        make: &[&str],
        bytes: u64,
        kind: &'static str,
        options: &'static str,
    ) -> Option<Self> {
        Self::start(make, bytes, (kind, options), None)
    }

    /// The same with its image on a tmpfs that has room for so many bytes of it.
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

    /// Where it is mounted.
    pub(crate) fn path(&self) -> PathBuf {
        self.home.path().join("mounted")
    }

    /// The device's bytes.
    pub(crate) fn image(&self) -> PathBuf {
        self.image_folder().join("image")
    }

    /// What the image is in.
    pub(crate) fn image_folder(&self) -> PathBuf {
        self.home.path().join("device")
    }

    /// Mounts it.
    pub(crate) fn attach(&self) -> Result<(), String> {
        let (image, path) = (self.image(), self.path());
        let options = format!("loop,{}", self.options);
        let arguments = ["-t", self.kind, "-o", &options, text(&image), text(&path)];
        run("mount", &arguments).map(drop)
    }

    /// Unmounts it: whatever is in memory goes with it.
    pub(crate) fn detach(&self) -> Result<(), String> {
        run("umount", &[text(&self.path())]).map(drop)
    }
}

impl Drop for Looped {
    fn drop(&mut self) {
        // It may never have been mounted.
        let _ = self.detach();
        if self.in_memory {
            let _ = run("umount", &[text(&self.image_folder())]);
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name")
}

/// What a program has said, or why it did not do what it was to do.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
