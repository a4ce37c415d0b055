//! Replay on a disk with faults: the log, or the files of a database, are on a file system that fails to read
//! some bytes. A table is then read as the server has it, or the error names the file that can't be read.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use trunkline_aio::facade::random::Rng;

use crate::binary::run;
use crate::differential::seeds;
use crate::fuse::{Fault, Mount, Tree};
use crate::replay::{LOAD, copy};
use crate::server::{Server, servers};

/// Size of a segment in bytes, as the clusters of these tests are initialized.
const SEGMENT: u64 = 1 << 20;

/// Faults at random places of the log, for each server.
const RANDOM: u64 = 8;

#[test]
fn a_fault_is_an_error_of_its_file_or_nothing() {
    if !geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        println!("skipped: no /dev/fuse, or not root");
        return;
    }
    for bin in servers() {
        let seed = seeds().next().expect("one");
        println!("TRUNKLINE_SEED={seed} ({})", bin.display());
        let mut server =
            Server::start(&bin, &[("checkpoint_timeout", "1h"), ("max_wal_size", "1GB")]);
        server.script("postgres", LOAD, false);
        let expected = ["kept", "long"].map(|table| {
            let query = format!("copy (select * from {table} order by 1) to stdout");
            server.sql("postgres", &query)
        });
        let of_long =
            "select pg_relation_filepath(reltoastrelid) from pg_class where oid = 'long'::regclass";
        let toast = String::from_utf8(server.sql("postgres", of_long)).expect("text");
        server.halt("immediate");
        let crashed = Crashed { path: server.data(), expected };
        crashed.check_log(&mut Rng::new(seed));
        crashed.check_files(toast.trim());
        drop(server);
    }
}

struct Crashed {
    path: PathBuf,
    /// The rows of `kept` and of `long`, in their order.
    expected: [Vec<u8>; 2],
}

impl Crashed {
    /// Copies the first or the second table. Returns the message if that fails.
    fn copy(&self, table: usize) -> Result<(), String> {
        let name = ["kept", "long"][table];
        let (code, out, err) = run(&self.path, &["copy", "-d", "postgres", name]);
        if code != 0 {
            return Err(err);
        }
        let mut rows: Vec<&[u8]> = out.as_bytes().split_inclusive(|&byte| byte == b'\n').collect();
        let number = |row: &[u8]| {
            let text = row.split(|&byte| byte == b'\t').next().unwrap_or_default();
            String::from_utf8_lossy(text).parse::<u64>().expect("a number")
        };
        rows.sort_by_key(|row| number(row));
        assert!(rows.concat() == self.expected[table], "{name}: {err}");
        Ok(())
    }

    /// Lets reads of the log fail.
    fn check_log(&self, rng: &mut Rng) {
        let own = self.path.join("pg_wal");
        let kept = self.path.with_file_name("kept-log");
        copy(&own, &kept);
        fs::remove_dir_all(&own).expect("removed");
        let (start, end) = {
            let _mount = Mount::new(own.clone(), tree(&kept, "", Fault::None));
            let (code, _, err) = run(&self.path, &["tables", "--list"]);
            assert_eq!(code, 0, "{err}");
            (position(&err, "of log from "), position(&err, " to "))
        };
        fs::remove_dir(&own).expect("unmounted");
        let mut outcomes = [0, 0];
        let mut check = |place: u64, bytes: u64, must_fail: Option<bool>| {
            let name =
                format!("00000001{:08X}{:08X}", place >> 32, (place & 0xFFFF_FFFF) / SEGMENT);
            let at = place % SEGMENT;
            let mount = Mount::new(own.clone(), tree(&kept, &name, Fault::Eio(at..at + bytes)));
            let outcome = self.copy(0);
            drop(mount);
            fs::remove_dir(&own).expect("unmounted");
            let failed = outcome.is_err();
            if let Err(text) = outcome {
                assert!(text.contains(&name) && text.contains("Input/output error"), "{text}");
            }
            assert!(must_fail.is_none_or(|expected| failed == expected), "{place:x}: {failed}");
            outcomes[usize::from(failed)] += 1;
        };
        check(start + 100, 1, Some(true));
        check(end - 1, 1, Some(true));
        // The segment at the start may be read as a whole, but not those before it.
        check(start - start % SEGMENT - SEGMENT + 10_000, 1, Some(false));
        for _ in 0..RANDOM {
            let place = start - start % SEGMENT + rng.below(end - start + SEGMENT);
            check(place.min(end + 1000), 1 + rng.below(20_000), None);
        }
        assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
        fs::rename(kept, own).expect("restored");
    }

    /// Lets reads of a file fail that the log doesn't change.
    fn check_files(&self, toast: &str) {
        let (folder, file) = toast.rsplit_once('/').expect("a path");
        let folder = self.path.join(folder);
        let kept = self.path.with_file_name("kept-files");
        copy(&folder, &kept);
        fs::remove_dir_all(&folder).expect("removed");
        let mount = Mount::new(folder.clone(), tree(&kept, file, Fault::Eio(8192..16384)));
        self.copy(0).expect("not affected");
        let text = self.copy(1).expect_err("it needs the page");
        assert!(text.contains(file) && text.contains("Input/output error"), "{text}");
        drop(mount);
        fs::remove_dir(&folder).expect("unmounted");
        let _mount = Mount::new(folder, tree(&kept, "", Fault::None));
        self.copy(1).expect("no fault");
    }
}

/// The files of a directory, one of them with a fault.
fn tree(directory: &Path, faulty: &str, fault: Fault) -> Tree {
    let mut tree = Tree::new();
    for entry in fs::read_dir(directory).expect("read") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if path.is_file() {
            let fault = if name == faulty { fault.clone() } else { Fault::None };
            tree = tree.file(name, fs::read(&path).expect("read"), fault);
        }
    }
    tree
}

/// The LSN behind a text of the message about the replay.
fn position(message: &str, before: &str) -> u64 {
    let text = message.split("replayed ").nth(1).expect("a replay");
    let text = text.split(before).nth(1).expect("a position");
    let text = text.split([' ', ':']).next().expect("a position");
    let (high, low) = text.split_once('/').expect("two parts");
    let part = |text| u64::from_str_radix(text, 16).expect("a number");
    part(high) << 32 | part(low)
}
