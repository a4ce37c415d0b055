//! `copy --all`: a database into the files of a directory, resumed after an interruption.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::process::Signal;
use trunkline_format::page_checksum;

use crate::copy::{Damaged, copy, copy_of, expected, fixtures, rows};
use crate::jobs::until;
use crate::{json, run, trunkline};

#[test]
fn copying_a_database_into_files_can_be_resumed() {
    for fixture in fixtures() {
        let home = tempfile::tempdir().expect("a directory");
        let out = home.path().join("out");
        let path = out.to_string_lossy().into_owned();
        let all = ["--all", "--ctid", "-o", &path, "--json"];
        let report = json(&rows(&fixture, &all));
        let count = fs::read_dir(fixture.join("expected/fixture")).expect("a directory").count();
        // One of the expected files is the list of columns.
        assert_eq!(report["outputs"], count - 1);
        assert_eq!(report["present"], 0);
        let same = |table: &str, file: &str| {
            let found = fs::read_to_string(out.join(file)).expect("read");
            assert!(found == expected(&fixture, table), "{file}");
        };
        same("s1.ty", "s1.ty.copy");
        same("s1.toast", "s1.toast.copy");
        same("s1.inh_p", "s1.inh_p.copy");
        same("public.Weird Name.x", "public.Weird Name%2Ex.copy");
        fs::remove_file(out.join("s1.ty.copy")).expect("removed");
        fs::write(out.join("s1.ty.copy.partial"), "half").expect("written");
        let report = json(&rows(&fixture, &all));
        assert_eq!((&report["outputs"], &report["present"]), (&1.into(), &(count - 2).into()));
        same("s1.ty", "s1.ty.copy");
        assert!(!out.join("s1.ty.copy.partial").exists());
        let (code, _, err) = copy(&fixture, &["--all", "-o", &path]);
        assert!(code == 2 && err.contains("contains copies with other options"), "{err}");
        let file = home.path().join("one.csv").to_string_lossy().into_owned();
        let text = rows(&fixture, &["s1.rw", "-o", &file, "--format", "csv"]);
        assert!(text.contains("Rows:          5\n"), "{text}");
        assert_eq!(fs::read_to_string(file).expect("read"), "1,r\n2,r\n3,r\n4,r\n5,r\n");
    }
}

/// Names, inodes and sizes of the files in a directory.
fn listing(directory: &Path) -> Vec<(String, u64, u64)> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| {
        let entry = entry.expect("an entry");
        let (name, found) = (entry.file_name(), entry.metadata().expect("there"));
        (name.into_string().expect("UTF-8"), found.ino(), found.len())
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    entries
}

#[test]
fn a_killed_copy_is_resumed() {
    for fixture in fixtures() {
        let home = tempfile::tempdir().expect("a directory");
        let out = home.path().join("out");
        let path = out.to_string_lossy().into_owned();
        let data = fixture.join("data");
        // The kernel kills the copy when a file grows above the limit.
        let mut killed = Command::new("prlimit");
        killed.args(["--fsize=150000:150000", "--core=0:0", env!("CARGO_BIN_EXE_trunkline")]);
        killed.args(["copy", "-d", "fixture", "--all", "-j", "1", "-o", &path, "-D"]).arg(&data);
        let killed = killed.stdin(Stdio::null()).output().expect("runs");
        assert_eq!(killed.status.signal(), Some(Signal::XFSZ.as_raw()), "{killed:?}");
        let before = listing(&out);
        let partial: Vec<_> = before.iter().filter(|it| it.0.ends_with(".partial")).collect();
        assert!(matches!(partial[..], [(_, _, 150_000)]), "{partial:?}");
        let done: Vec<_> = before.iter().filter(|it| it.0.ends_with(".copy")).collect();
        let report = json(&rows(&fixture, &["--all", "-o", &path, "--json"]));
        let count = fs::read_dir(fixture.join("expected/fixture")).expect("a directory").count();
        assert_eq!(report["present"], done.len());
        assert_eq!(report["outputs"], count - 1 - done.len());
        let after = listing(&out);
        assert!(done.iter().all(|file| after.contains(file)), "{done:?} {after:?}");
        // All files, the manifest and the script, and no partial file.
        assert_eq!(after.len(), count - 1 + 2);
        let file = partial[0].0.strip_suffix(".partial").expect("a suffix");
        let without = expected(&fixture, file.strip_suffix(".copy").expect("a suffix"));
        let without = without.lines().map(|line| line.split_once('\t').expect("ctid").1);
        let found = fs::read_to_string(out.join(file)).expect("read");
        assert!(found.lines().eq(without), "{file}");
    }
}

#[test]
fn only_one_process_copies_into_a_directory() {
    for fixture in fixtures() {
        let home = tempfile::tempdir().expect("a directory");
        let out = home.path().join("out");
        let path = out.to_string_lossy().into_owned();
        let data = fixture.join("data");
        // Standard output is a full pipe, so the copy hangs when it prints its report.
        let pipe = home.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut full = File::options().read(true).write(true).custom_flags(flags).open(&pipe);
        let full = full.as_mut().expect("opened");
        while full.write(&[0; 4096]).is_ok() {}
        let stdout = File::options().write(true).open(&pipe).expect("opened");
        let mut first = trunkline();
        first.args(["copy", "-d", "fixture", "--all", "-o", &path, "-D"]).arg(&data);
        let mut first = first.stdout(stdout).stderr(Stdio::null()).spawn().expect("runs");
        let count = fs::read_dir(fixture.join("expected/fixture")).expect("a directory").count();
        // The script is the last file.
        until(&mut first, |_| out.join("load.sql").exists());
        let before = listing(&out);
        for other in ["fixture", "postgres"] {
            let args = ["-d", other, "--all", "-o", &path, "-D", &data.to_string_lossy()];
            let (code, _, err) = run(["copy"].into_iter().chain(args));
            assert!(code == 3 && err.contains("another copy is writing to"), "{code} {err}");
        }
        assert_eq!(listing(&out), before);
        first.kill().expect("killed");
        first.wait().expect("gone");
        let report = json(&rows(&fixture, &["--all", "-o", &path, "--json"]));
        assert_eq!((&report["outputs"], &report["present"]), (&0.into(), &(count - 1).into()));
    }
}

/// In a cluster that was not shut down cleanly, two live rows of `pg_class` can have one name.
#[test]
fn tables_of_one_name_are_copied_into_two_files() {
    let Some(fixture) = fixtures().pop() else { return };
    let damaged = Damaged::new(&fixture);
    let data = damaged.fixture.join("data");
    let shown = data.to_string_lossy().into_owned();
    let (code, out, err) = run(["tables", "-D", &shown, "-d", "fixture", "--all", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let tables = json(&out)["relations"].as_array().expect("relations").clone();
    let find = |name: &str| {
        tables.iter().find(|it| it["name"] == name && it["kind"] == "table").expect(name)
    };
    let oid = |name: &str| find(name)["oid"].as_u64().expect("an OID");
    let file = data.join(find("pg_class")["file"].as_str().expect("a file"));
    let mut bytes = fs::read(&file).expect("read");
    // The column relname: 64 bytes.
    let name = |text: &str| [text.as_bytes(), &[0; 64]].concat()[..64].to_vec();
    let (hot, rw) = (name("hot"), name("rw"));
    for (block, page) in (0..).zip(bytes.as_chunks_mut::<8192>().0) {
        while let Some(at) = page.windows(64).position(|window| window == hot) {
            page[at..at + 64].copy_from_slice(&rw);
        }
        let sum = page_checksum(page, block);
        page[8..10].copy_from_slice(&sum.to_le_bytes());
    }
    fs::write(&file, bytes).expect("written");
    let out = damaged.fixture.join("out");
    let path = out.to_string_lossy().into_owned();
    let all = ["--all", "--ctid", "-o", &path, "--json"];
    for run in 0..2 {
        let (code, text, err) = copy(&damaged.fixture, &all);
        assert_eq!(code, 1, "{err}");
        assert!(err.contains("is one of several relations of this name in pg_class"), "{err}");
        assert_eq!(json(&text)["outputs"] == 0, run == 1, "{text}");
        for table in ["hot", "rw"] {
            let file = out.join(format!("s1.rw%~{}.copy", oid(table)));
            let found = fs::read_to_string(file).expect("read");
            assert_eq!(found, expected(&fixture, &format!("s1.{table}")));
        }
        assert!(!out.join("s1.rw.copy").exists() && !out.join("s1.hot.copy").exists());
    }
}

#[test]
fn a_directory_contains_copies_of_one_database() {
    let fixtures = fixtures();
    let [first, .., last] = &fixtures[..] else { return };
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().to_string_lossy().into_owned();
    rows(first, &["--all", "-o", &path]);
    let before = listing(home.path());
    let manifest = fs::read(home.path().join("copy.manifest")).expect("read");
    for (fixture, database, other) in [
        (last, "fixture", "cluster"),
        (first, "postgres", "database"),
        (last, "postgres", "cluster"),
    ] {
        let data = fixture.join("data").to_string_lossy().into_owned();
        let (code, out, err) = run(["copy", "-D", &data, "-d", database, "--all", "-o", &path]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(&format!("\"{path}\" contains copies of another {other}")), "{err}");
    }
    assert_eq!(listing(home.path()), before);
    assert_eq!(fs::read(home.path().join("copy.manifest")).expect("read"), manifest);
}

/// Without a manifest, nothing says what a file is a copy of.
#[test]
fn a_file_of_unknown_origin_is_not_kept() {
    let Some(fixture) = fixtures().pop() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().to_string_lossy().into_owned();
    let args = ["-t", "s1.rw", "-t", "s1.hot", "-o", &path];
    for name in ["load.sql", "s1.rw.copy"] {
        let file = home.path().join(name);
        fs::write(&file, "junk").expect("written");
        // The second attempt finds the manifest of the first.
        for _ in 0..2 {
            let (code, out, err) = copy(&fixture, &args);
            assert_eq!((code, out.as_str()), (2, ""), "{err}");
            let expected = format!("{name}\" may be a copy of something else");
            assert!(err.contains(&expected), "{err}");
            assert!(!home.path().join("s1.hot.copy").exists());
        }
        assert_eq!(fs::read(&file).expect("read"), b"junk");
        fs::remove_file(&file).expect("removed");
    }
    let file = home.path().join("s1.rw.copy");
    rows(&fixture, &args);
    assert_eq!(rows(&fixture, &["s1.rw"]).as_bytes(), fs::read(&file).expect("read"));
}

/// `backup_label` marks a cluster whose files lack its newest changes.
#[test]
fn copies_of_an_unclean_cluster_say_so() {
    let Some(fixture) = fixtures().pop() else { return };
    let (home, data) = copy_of(&fixture);
    let copied = |to: &str| {
        let out = home.path().join(to).display().to_string();
        let data = data.display().to_string();
        let args = ["copy", "-D", &data, "-d", "bench", "--all", "--force-unclean", "--json"];
        let (code, report, err) = run(args.into_iter().chain(["-o", &out]));
        assert_eq!(code, 0, "{err}");
        let read = |name| fs::read_to_string(home.path().join(to).join(name)).expect("read");
        let says = ["load.sql", "copy.manifest"].map(|name| read(name).contains("not shut down"));
        (json(&report), says)
    };
    let (report, says) = copied("clean");
    assert_eq!((&report["unclean"], &report["warnings"]), (&false.into(), &0.into()));
    assert_eq!(says, [false; 2]);
    fs::write(data.join("backup_label"), "").expect("written");
    let (report, says) = copied("unclean");
    assert_eq!((&report["unclean"], &report["warnings"]), (&true.into(), &1.into()));
    assert_eq!((&report["complete"], says), (&true.into(), [true; 2]));
}
