//! `trunkline init`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::{json, run};

#[test]
fn a_new_cluster_can_be_inspected_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let path = data.display().to_string();
    let (code, out, err) = run(["init", &path, "--wal-segsize", "1", "--no-data-checksums"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("created a cluster of PostgreSQL 18 in "), "{out}");
    assert!(out.ends_with(", without checksums\n"), "{out}");
    assert!(err.contains("it has no catalogs"), "{err}");
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&data.join("global/pg_control"))), (0o700, 0o600));
    let (code, out, _) = run(["inspect", "control", "-D", &path]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("shut down\n"), "{out}");
    assert!(out.contains("1048576\n"), "{out}");
    let (code, out, err) = run(["inspect", "wal", "-D", &path, "--json"]);
    assert_eq!((code, out.lines().count()), (0, 1), "{out}{err}");
    assert_eq!(json(&out)["operation"], "CHECKPOINT_SHUTDOWN");
    let (code, out, err) = run(["verify", "-D", &path, "--files-only"]);
    assert_eq!(code, 0, "{out}{err}");
    // What needs catalogs says what is missing.
    let (code, _, err) = run(["tables", "-D", &path]);
    assert_ne!(code, 0);
    assert!(err.contains("pg_filenode.map"), "{err}");
}

#[test]
fn the_options_are_shown_in_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let (code, out, err) = run(["init", &path, "--json"]);
    assert_eq!(code, 0, "{err}");
    let made = json(&out);
    assert_eq!((&made["version"], &made["data_checksums"]), (&18.into(), &true.into()));
    assert_eq!(made["wal_segment_size"], 16 << 20);
    let control = run(["inspect", "control", "-D", &path]).1;
    assert!(control.contains(made["system_identifier"].as_str().expect("text")), "{control}");
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    fs::write(folder.path().join("file"), "mine").expect("written");
    let (code, out, err) = run(["init", &path]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("exists but is not empty"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 1);
}

#[test]
fn what_fails_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let below = file.join("data").display().to_string();
    let (code, _, err) = run(["init", &below]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("Not a directory"), "{err}");
    let missing = folder.path().join("missing/data");
    let (code, _, err) = run(["init", &missing.display().to_string()]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("could not create directory"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 1);
}

#[test]
fn wrong_options_are_refused() {
    for size in ["0", "3", "2048", "x"] {
        let (code, _, err) = run(["init", "unused", "--wal-segsize", size]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("must be a power of two between 1 and 1024"), "{err}");
    }
    let (code, _, err) = run(["init", "unused", "-D", "other"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("init reads no data directory"), "{err}");
    assert!(!std::path::Path::new("unused").exists());
}

/// An archive has got the segment while it was written. Its log ends where the file does, and that is no finding.
#[test]
fn a_partial_segment_may_be_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data").display().to_string();
    assert_eq!(run(["init", &path, "--wal-segsize", "1"]).0, 0);
    let name = "000000010000000000000001";
    let bytes = fs::read(format!("{path}/pg_wal/{name}")).expect("read");
    // The first page: the second one is not there, and the file says nothing about it.
    for (name, status) in [(name.to_owned(), 1), (format!("{name}.partial"), 0)] {
        let archive = tempfile::tempdir().expect("a folder");
        let file = archive.path().join(name);
        // A record that goes on behind the page keeps the reader going.
        let mut cut = bytes[..8192].to_vec();
        let length = (cut.len() - 40) as u32 + 100;
        cut[40..44].copy_from_slice(&length.to_le_bytes());
        fs::write(&file, cut).expect("written");
        let (code, _, err) = run(["inspect", "wal", &file.display().to_string()]);
        assert_eq!(code, status, "{err}");
        assert!(err.contains("the file has 8192 bytes, expected 1048576"), "{err}");
    }
}
