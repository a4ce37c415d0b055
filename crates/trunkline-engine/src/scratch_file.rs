//! Scratch file: a file of our own that never outlives us, on a file system that is examined or measured, or
//! for what doesn't fit into memory.
//!
//! Where the file system supports it, the file has no name from the start (`O_TMPFILE`), so the
//! kernel frees it whenever the process ends. Elsewhere (NFS, FUSE, older overlayfs), we create a
//! file with a name and remove the name at once. A kill between these two steps leaves an empty file
//! behind, which the next start in the same directory removes.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use trunkline_aio::clock;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};

/// The names of our files begin like this. The rest are the number of the process, the time, and
/// how many files this process has created before.
const PREFIX: &str = ".trunkline-scratch-";

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Creates a scratch file in `directory`, open for reading and writing, which bypasses the page cache if
/// `direct` is set.
///
/// # Errors
/// Nothing can be created there; `EINVAL` if the file system has no direct I/O.
pub fn create(directory: &Path, direct: bool) -> io::Result<File> {
    remove_leftovers(directory);
    match openat(CWD, directory, flags(direct) | OFlags::TMPFILE, MODE) {
        // EISDIR comes from kernels and file systems that don't know the flag.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let (file, removed) = named(directory, direct, |_| ());
            without_name(file.map(|(file, ())| file), removed)
        }
        // On some file systems, O_DIRECT fails in the same way whether or not the file has a name.
        result => Ok(result.map(File::from)?),
    }
}

/// Creates a scratch file, and lets `open` open it once more by its name before that is removed.
///
/// # Errors
/// As for [`create`]; those of `open`.
pub(crate) fn create_twice<T>(
    directory: &Path,
    open: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(File, T)> {
    remove_leftovers(directory);
    let mut tries = 1..TRIES;
    loop {
        let (file, removed) = named(directory, false, &open);
        let created = file.is_ok();
        match without_name(file.and_then(|(file, opened)| Ok((file, opened?))), removed) {
            // A process that starts in the same directory has removed the name before `open`.
            Err(error) if created && error.kind() == io::ErrorKind::NotFound => {
                tries.next().ok_or(error)?;
            }
            result => return result,
        }
    }
}

/// How often a file is created if another process removes its name.
const TRIES: u32 = 10;

const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

fn flags(direct: bool) -> OFlags {
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC;
    flags.set(OFlags::DIRECT, direct);
    flags
}

/// Creates a file, calls `use_name`, and removes the name. Returns the outcomes of both.
fn named<T>(
    directory: &Path,
    direct: bool,
    use_name: impl FnOnce(&Path) -> T,
) -> (io::Result<(File, T)>, io::Result<()>) {
    // No two files share a name, be they of one process, or of two in containers.
    let (process, time) = (std::process::id(), clock::unix_micros());
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("{PREFIX}{process}-{time}-{number}"));
    let flags = flags(direct) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let file = openat(CWD, &path, flags, MODE).map(File::from);
    let used = file.map(|file| (file, use_name(&path)));
    // Even if O_DIRECT is refused, the file may have been created.
    (used.map_err(Into::into), fs::remove_file(&path))
}

/// The file, if its name is gone. Another process that starts in the same directory may have removed
/// the name already.
fn without_name<T>(file: io::Result<T>, removed: io::Result<()>) -> io::Result<T> {
    match removed {
        Err(error) if file.is_ok() && error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => file,
    }
}

/// Removes files of processes that were killed. A file that is still in use merely loses its name,
/// which its process is about to remove anyway.
fn remove_leftovers(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_number = |part: &str| part.parse::<u64>().is_ok();
        let is_ours = number.is_some_and(|numbers| numbers.split('-').all(is_number));
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // It may belong to another user.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use trunkline_aio::facade::thread;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").map(|it| it.expect("an entry"));
        let mut names: Vec<_> =
            entries.map(|it| it.file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    }

    fn named_only(directory: &Path) -> io::Result<File> {
        let (file, removed) = named(directory, false, |_| ());
        without_name(file.map(|(file, ())| file), removed)
    }

    #[test]
    fn a_scratch_file_that_is_opened_twice_is_one_file_without_a_name() {
        let home = tempfile::tempdir().expect("a directory");
        let open = |path: &Path| File::open(path);
        let (mut file, again) = create_twice(home.path(), open).expect("made");
        file.write_all(b"xyz").expect("written");
        assert_eq!(io::read_to_string(again).expect("read"), "xyz");
        assert!(names(home.path()).is_empty());
        // If the name is removed by another process first, there is another file.
        let count = std::cell::Cell::new(0);
        let unlucky = |path: &Path| {
            count.set(count.get() + 1);
            if count.get() < 3 {
                fs::remove_file(path)?;
            }
            File::open(path)
        };
        assert!(create_twice(home.path(), unlucky).is_ok());
        let failed = create_twice(home.path(), |path| {
            fs::remove_file(path)?;
            File::open(path)
        });
        assert_eq!(failed.expect_err("gone").kind(), io::ErrorKind::NotFound);
        assert!(names(home.path()).is_empty());
    }

    #[test]
    fn a_scratch_file_has_no_name() {
        let home = tempfile::tempdir().expect("a directory");
        for file in [create(home.path(), false), named_only(home.path())] {
            file.expect("made").write_all(b"x").expect("written");
            assert!(names(home.path()).is_empty());
        }
        // Starts at the same time remove each other's names.
        let path = home.path().to_owned();
        let start = |_| {
            let path = path.clone();
            let work = move || {
                for _ in 0..200 {
                    remove_leftovers(&path);
                    named_only(&path).expect("made");
                    create_twice(&path, |path| File::open(path)).expect("made");
                }
            };
            thread::spawn("start", work).expect("started")
        };
        let starts: Vec<_> = (0..4).map(start).collect();
        starts.into_iter().for_each(|start| start.join().expect("ended"));
        assert!(create(&home.path().join("missing"), false).is_err());
    }

    #[test]
    fn a_name_may_be_gone_already() {
        let home = tempfile::tempdir().expect("a directory");
        let opened = || File::open(home.path());
        assert!(without_name(opened(), Err(io::ErrorKind::NotFound.into())).is_ok());
        assert!(without_name(opened(), Err(io::ErrorKind::PermissionDenied.into())).is_err());
        let refused = without_name::<File>(Err(io::ErrorKind::InvalidInput.into()), Ok(()));
        assert_eq!(refused.expect_err("refused").kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn leftovers_are_removed_and_nothing_else() {
        let home = tempfile::tempdir().expect("a directory");
        for name in [".trunkline-scratch-17", ".trunkline-scratch-x", "trunkline-scratch-17"] {
            fs::write(home.path().join(name), "").expect("written");
        }
        fs::create_dir(home.path().join(".trunkline-scratch-18")).expect("made");
        create(home.path(), false).expect("made");
        let expected = [".trunkline-scratch-18", ".trunkline-scratch-x", "trunkline-scratch-17"];
        assert_eq!(names(home.path()), expected);
    }
}
