//! Files on a slow disk behave as on the file system below.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Advice, FallocateFlags, FlockOperation, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::mounted::Mounted;

/// A disk that is as fast as possible.
const FAST: &str = "latency=10us";

/// A user without privileges.
const ORDINARY_USER: u32 = 65534;

fn direct(path: &Path) -> File {
    let flags = OFlags::DIRECT.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).custom_flags(flags).open(path).expect("opened")
}

#[test]
fn names_and_contents_are_those_of_the_directory_below() {
    let Some(mut disk) = Mounted::new(FAST) else { return };
    let (path, below) = (disk.path(), disk.below());
    fs::create_dir_all(path.join("a/b")).expect("directories");
    fs::write(path.join("a/one"), "one").expect("written");
    fs::hard_link(path.join("a/one"), path.join("a/b/two")).expect("linked");
    symlink("one", path.join("a/link")).expect("linked");
    fs::rename(path.join("a/b"), path.join("c")).expect("renamed");
    assert_eq!(fs::read_to_string(path.join("c/two")).expect("read"), "one");
    assert_eq!(fs::read_to_string(path.join("a/link")).expect("read"), "one");
    let (one, two) = (path.join("a/one"), path.join("c/two"));
    let stat = |path: &Path| fs::metadata(path).expect("found");
    assert_eq!((stat(&one).ino(), stat(&one).nlink()), (stat(&two).ino(), 2));
    // An open file outlives its names.
    let mut open = File::open(&two).expect("opened");
    fs::remove_file(&one).expect("removed");
    fs::remove_file(&two).expect("removed");
    let mut text = String::new();
    open.read_to_string(&mut text).expect("read");
    assert_eq!((text.as_str(), open.metadata().expect("found").nlink()), ("one", 0));
    drop(open);
    let denied = fs::remove_dir(&path).expect_err("a mount point");
    assert_eq!(denied.raw_os_error(), Some(Errno::BUSY.raw_os_error()));
    let full = fs::remove_dir(path.join("a")).expect_err("not empty");
    assert_eq!(full.raw_os_error(), Some(Errno::NOTEMPTY.raw_os_error()));
    // More names than fit into one reply.
    for number in 0..1_000 {
        fs::write(path.join(format!("c/{number:0>60}")), "").expect("written");
    }
    assert_eq!(fs::read_dir(path.join("c")).expect("listed").count(), 1_000);
    disk.unmount();
    assert_eq!(fs::read_dir(&path).expect("the mount point").count(), 0);
    assert_eq!(fs::read_dir(below.join("c")).expect("listed").count(), 1_000);
    assert_eq!(fs::read_link(below.join("a/link")).expect("a link"), Path::new("one"));
}

#[test]
fn data_is_the_same_through_the_cache_and_without_it() {
    let Some(mut disk) = Mounted::new(FAST) else { return };
    let path = disk.path().join("file");
    let block = |byte: u8| vec![byte; 8192];
    let (cached, direct) = (File::create_new(&path).expect("created"), direct(&path));
    let read = |at: u64| {
        let mut found = block(0);
        direct.read_exact_at(&mut found, at * 8192).expect("read");
        found[0]
    };
    // Buffered writes are seen by direct reads, and direct writes by buffered reads.
    cached.write_all_at(&block(1), 0).expect("written");
    cached.write_all_at(&block(2), 8192).expect("written");
    assert_eq!((read(0), read(1)), (1, 2));
    direct.write_all_at(&block(3), 0).expect("written");
    assert_eq!(fs::read(&path).expect("read")[..8193], [block(3), vec![2]].concat());
    // A part of a page.
    cached.write_all_at(b"part", 8190).expect("written");
    cached.sync_all().expect("synced");
    assert_eq!(fs::read(&path).expect("read")[8188..8196], *b"\x03\x03part\x02\x02");
    cached.set_len(10_000).expect("truncated");
    assert_eq!(fs::metadata(&path).expect("found").len(), 10_000);
    rustix::fs::fallocate(&cached, FallocateFlags::empty(), 0, 20_000).expect("allocated");
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&cached, punch, 0, 4096).expect("punched");
    let now = fs::read(&path).expect("read");
    assert_eq!((now.len(), now[0], now[4096], now[15_000]), (20_000, 0, 3, 0));
    let mut appending = OpenOptions::new().append(true).open(&path).expect("opened");
    appending.write_all(b"end").expect("written");
    appending.sync_data().expect("synced");
    drop((cached, direct, appending));
    disk.unmount();
    let below = fs::read(disk.below().join("file")).expect("read");
    assert_eq!((below.len(), &below[20_000..]), (20_003, &b"end"[..]));
}

#[test]
fn only_reads_that_miss_the_cache_reach_the_disk() {
    let Some(disk) = Mounted::new(FAST) else { return };
    let path = disk.path().join("file");
    let mut file =
        OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("created");
    file.write_all(&vec![7; 1 << 20]).expect("written");
    file.sync_all().expect("synced");
    let written = disk.statistics();
    assert!(written.written_bytes >= 1 << 20 && written.flushes == 1, "{written:?}");
    let read = |file: &mut File| {
        file.seek(SeekFrom::Start(0)).expect("position");
        let mut data = Vec::new();
        file.read_to_end(&mut data).expect("read");
        assert_eq!(data, vec![7; 1 << 20]);
        disk.statistics().read_bytes
    };
    assert_eq!(read(&mut file), written.read_bytes, "just written, so cached");
    // The cache survives a close, as on a disk.
    drop(file);
    let mut file = File::open(&path).expect("opened");
    assert_eq!(read(&mut file), written.read_bytes, "still cached");
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).expect("dropped");
    assert_eq!(read(&mut file), written.read_bytes + (1 << 20), "cold");
}

#[test]
fn owners_and_permissions_are_kept() {
    let Some(mut disk) = Mounted::new(FAST) else { return };
    let path = disk.path();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).expect("changed");
    fs::write(path.join("secret"), "text").expect("written");
    fs::set_permissions(path.join("secret"), PermissionsExt::from_mode(0o600)).expect("changed");
    let as_user = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).uid(ORDINARY_USER).gid(ORDINARY_USER).current_dir(&path);
        command.output().expect("runs").status.success()
    };
    assert!(!as_user("cat", &["secret"]));
    assert!(as_user(
        "sh",
        &["-c", "umask 027; mkdir own && echo text > own/file && ln -s x own/l"]
    ));
    for (name, mode) in [("own", 0o40750), ("own/file", 0o100640), ("own/l", 0o120777)] {
        let found = fs::symlink_metadata(path.join(name)).expect("found");
        assert_eq!(
            (found.uid(), found.gid(), found.mode()),
            (ORDINARY_USER, ORDINARY_USER, mode),
            "{name}"
        );
    }
    // The change of the owner must not cost a file the mode that it is created with.
    let set_user =
        OpenOptions::new().write(true).create_new(true).mode(0o4755).open(path.join("s"));
    let mode = set_user.and_then(|file| file.metadata()).expect("created").mode();
    assert_eq!(mode & 0o7700, 0o4700);
    std::os::unix::fs::chown(path.join("own"), Some(1), None).expect("changed");
    assert_eq!(fs::metadata(path.join("own")).expect("found").uid(), 1);
    // A program that runs from the disk is mapped into memory. Another process copies it: a program
    // can't be started while it is open for writing, and children of other tests may have a copy of
    // our descriptor for a moment.
    let copied = Command::new("cp").arg("/bin/echo").arg(path.join("echo")).status();
    assert!(copied.expect("runs").success());
    let said = Command::new(path.join("echo")).arg("mapped").output().expect("runs");
    assert_eq!(said.stdout, b"mapped\n");
    drop(said);
    disk.unmount();
    assert_eq!(fs::metadata(disk.below().join("own/file")).expect("found").uid(), ORDINARY_USER);
}

#[test]
fn locks_and_attributes_work() {
    let Some(mut disk) = Mounted::new(FAST) else { return };
    let path = disk.path().join("file");
    let (one, two) = (File::create(&path).expect("created"), File::open(&path).expect("opened"));
    rustix::fs::flock(&one, FlockOperation::LockExclusive).expect("locked");
    let taken = rustix::fs::flock(&two, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(taken, Err(Errno::WOULDBLOCK));
    drop(one);
    rustix::fs::flock(&two, FlockOperation::NonBlockingLockExclusive).expect("locked");
    let name = "user.trunkline";
    // Not every file system below has attributes of users.
    let plain = disk.below().join("file");
    if rustix::fs::setxattr(&plain, "user.probe", b"", XattrFlags::empty()).is_ok() {
        rustix::fs::setxattr(&path, name, b"value", XattrFlags::CREATE).expect("set");
        let again = rustix::fs::setxattr(&path, name, b"value", XattrFlags::CREATE);
        assert_eq!(again, Err(Errno::EXIST));
        let mut value = [0; 16];
        assert_eq!(rustix::fs::getxattr(&path, name, &mut value[..]), Ok(5));
        assert_eq!(rustix::fs::getxattr(&path, name, &mut value[..2]), Err(Errno::RANGE));
        rustix::fs::removexattr(&path, name).expect("removed");
        assert_eq!(rustix::fs::getxattr(&path, name, &mut value[..]), Err(Errno::NODATA));
    }
    let times = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    two.set_times(times).expect("set");
    assert_eq!(fs::metadata(&path).expect("found").mtime(), 0);
    drop(two);
    disk.unmount();
    assert_eq!(fs::metadata(plain).expect("found").mtime(), 0);
}
