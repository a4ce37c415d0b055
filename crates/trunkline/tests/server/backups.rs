//! Base backups of a real `pg_basebackup`, checked without a restore. Each kind of damage is found, by
//! name, and nothing is written.
//!
//! npm's servers come without `pg_basebackup`, and Debian's makes no backups of newer ones. So these tests run
//! with Debian's version, and with others that are named.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::replay::{LOAD, copy, fingerprint};
use crate::server::{Server, servers, succeed};

/// The size of a log segment of the servers.
const SEGMENT: u64 = 1 << 20;

/// Exit code, standard output and standard error of `backup verify`.
fn verify(backup: &Path, options: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.env_remove("PGDATA").env_remove("PGDATABASE").current_dir("/");
    let output = command.args(["backup", "verify"]).arg(backup).args(options).output();
    let output = output.expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("exited"), text(output.stdout), text(output.stderr))
}

/// A backup with a tablespace, and the log that was written afterwards.
struct Backup {
    /// Contains everything else.
    _stopped: crate::server::Stopped,
    root: PathBuf,
    archive: PathBuf,
    /// The file of a table that doesn't change while the backup is made.
    table: String,
}

impl Backup {
    fn make(bin: &Path) -> Backup {
        let settings =
            [("wal_level", "replica"), ("max_wal_senders", "4"), ("wal_keep_size", "1GB")];
        let server = Server::start(bin, &settings);
        let home = server.home().to_owned();
        server.make_directory(&home.join("space"));
        let create = format!("create tablespace space location '{}/space'", home.display());
        server.sql("postgres", &create);
        server.script("postgres", LOAD, false);
        server.sql("postgres", "create table spaced tablespace space as select * from kept");
        server.sql("postgres", "checkpoint");
        let table = server.sql("postgres", "select pg_relation_filepath('kept')");
        let table = String::from_utf8(table).expect("text").trim().to_owned();
        // Other tables change meanwhile.
        let changes = "select format('insert into made (t) select md5(i::text) from generate_series(1, 50) i; \
                       update cut set t = ''%s'' where i < 100', i) from generate_series(1, 20) i \\gexec\n";
        let script = home.join("changes.sql");
        fs::write(&script, changes).expect("written");
        let mut load = server.psql("postgres").arg("-f").arg(&script).spawn().expect("a client");
        let root = home.join("backup");
        let mut command = server.command("pg_basebackup");
        command.args(["-U", "postgres", "-c", "fast", "-X", "stream", "-h"]).arg(&home);
        command.arg(format!("--tablespace-mapping={0}/space={0}/moved", home.display()));
        succeed(command.arg("-D").arg(&root));
        assert!(load.wait().expect("ended").success());
        for _ in 0..3 {
            server.sql(
                "postgres",
                "insert into made (t) select md5(i::text) from generate_series(1, 500) i",
            );
            server.sql("postgres", "select pg_switch_wal()");
        }
        let stopped = server.stop();
        let archive = home.join("archive");
        copy(&stopped.data().join("pg_wal"), &archive);
        Backup { _stopped: stopped, root, archive, table }
    }

    /// Changes a copy of the backup, which must then be found to be damaged. The tablespace is not copied.
    fn check(&self, change: impl FnOnce(&Path), options: &[&str], expected: &[&str]) {
        let copied = self.root.with_file_name("changed");
        copy(&self.root, &copied);
        change(&copied);
        let before = fingerprint(&copied);
        let (code, out, err) = verify(&copied, options);
        assert_eq!(code, 1, "{expected:?}: {out}{err}");
        for expected in expected {
            assert!(out.contains(expected), "{expected}: {out}{err}");
        }
        assert!(out.contains("this backup is damaged or incomplete: "), "{out}");
        assert_eq!(fingerprint(&copied), before, "the directory has changed");
        fs::remove_dir_all(copied).expect("removed");
    }

    /// The segments in a folder, in order.
    fn segments(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry"));
        let names = entries.map(|entry| entry.file_name().into_string().expect("text"));
        let mut names: Vec<_> = names.filter(|name| name.len() == 24).collect();
        names.sort();
        names
    }
}

fn backups() -> impl Iterator<Item = Backup> {
    let has_program = |bin: &PathBuf| bin.join("pg_basebackup").is_file();
    servers().into_iter().filter(has_program).map(|bin| Backup::make(&bin))
}

/// Changes a byte.
fn flip(path: &Path, at: u64) {
    let file = fs::File::options().read(true).write(true).open(path).expect("opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("read");
    file.write_all_at(&[byte[0] ^ 1], at).expect("written");
}

/// Replaces a part of the manifest, and computes the checksum again.
fn forge(backup: &Path, from: &str, to: &str) {
    let path = backup.join("backup_manifest");
    let text = fs::read_to_string(&path).expect("read");
    let body = text.split("\"Manifest-Checksum\"").next().expect("a body");
    let forged = body.replacen(from, to, 1);
    assert_ne!(forged, body, "{from}");
    let checksum: String =
        Sha256::digest(&forged).iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(path, format!("{forged}\"Manifest-Checksum\": \"{checksum}\"}}\n")).expect("written");
}

#[test]
fn a_good_backup_restores() {
    for backup in backups() {
        let before = fingerprint(&backup.root);
        let (code, out, err) = verify(&backup.root, &[]);
        assert_eq!(code, 0, "{out}{err}");
        let last = |out: &str| out.lines().last().expect("a verdict").to_owned();
        assert!(last(&out).starts_with("this backup restores: consistent at "), "{out}");
        let archive = backup.archive.display().to_string();
        let (code, longer, err) = verify(&backup.root, &["--wal", &archive]);
        assert_eq!(code, 0, "{longer}{err}");
        assert!(last(&longer) > last(&out), "{longer}");
        let (code, json, err) = verify(&backup.root, &["--json", "--wal", &archive]);
        assert_eq!(code, 0, "{json}{err}");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["restores"], true, "{json}");
        assert_eq!(json["verdict"], last(&longer), "{json}");
        assert_eq!(json["manifest"]["files"], json["manifest"]["checksums_compared"], "{json}");
        for (option, expected) in [
            ("--allow-incomplete", "--allow-incomplete can't be used with backup verify"),
            ("--until=0/1", "--until can't be used with backup verify"),
            ("--pgdata=/", "backup takes its directory as an argument"),
        ] {
            let (code, _, err) = verify(&backup.root, &[option]);
            assert_eq!(code, 2, "{err}");
            assert!(err.contains(expected), "{err}");
        }
        assert_eq!(fingerprint(&backup.root), before, "the directory has changed");
    }
}

#[test]
fn damage_in_files_is_found_by_name() {
    for backup in backups() {
        let table = backup.table.clone();
        let checksum = format!("{table}: has the CRC32C ");
        let at = |root: &Path| root.join(&table);
        // The manifest finds it, and so do the pages.
        backup.check(
            |root| flip(&at(root), 8192 + 5000),
            &[],
            &[&checksum, "block 1: checksum 0x"],
        );
        backup.check(
            |root| flip(&at(root), 8192 + 5000),
            &[],
            &["Bad checksums:                   1"],
        );
        let missing = format!("{table}: does not exist, expected ");
        backup.check(|root| fs::remove_file(at(root)).expect("removed"), &[], &[&missing]);
        let add = |root: &Path| fs::write(root.join("base/extra"), "").expect("written");
        backup.check(add, &[], &["base/extra: is not listed in backup_manifest"]);
        let cut = |root: &Path| {
            let file = fs::File::options().write(true).open(at(root)).expect("opened");
            file.set_len(8192).expect("cut");
        };
        let size = format!("{table}: has 8192 bytes, expected ");
        backup.check(cut, &[], &[&size]);
        let label = |root: &Path| fs::remove_file(root.join("backup_label")).expect("removed");
        backup.check(label, &[], &["backup_label: does not exist, expected "]);
    }
}

#[test]
fn a_manifest_is_not_believed() {
    for backup in backups() {
        let manifest = |root: &Path| root.join("backup_manifest");
        let change = |root: &Path| flip(&manifest(root), 300);
        backup.check(change, &[], &["backup_manifest: its checksum is "]);
        let cut = |root: &Path| {
            let file = fs::File::options().write(true).open(manifest(root)).expect("opened");
            file.set_len(1000).expect("cut");
        };
        backup.check(cut, &[], &["backup_manifest: it ends without a line \"Manifest-Checksum\""]);
        let remove = |root: &Path| fs::remove_file(manifest(root)).expect("removed");
        backup.check(remove, &[], &["backup_manifest: does not exist"]);
        for (from, to, expected) in [
            ("\"backup_label\"", "\"../label\"", "path \"../label\" is not a path inside"),
            ("\"backup_label\"", "\"PG_VERSION\"", "path \"PG_VERSION\" is listed twice"),
            ("\"Size\": 3,", "\"Size\": 4,", "PG_VERSION: has 3 bytes, expected 4"),
            ("\"End-LSN\": \"0/", "\"End-LSN\": \"F/", "backup_manifest: needs log to F/"),
            ("\"Start-LSN\": \"0/", "\"Start-LSN\": \"1/", "backup_manifest: the log begins at 1/"),
            ("\"Timeline\": 1", "\"Timeline\": 9", "backup_manifest: has log of timeline 9"),
        ] {
            let forge = |root: &Path| {
                // A longer position stays before the end.
                if from.starts_with("\"Start") {
                    forge(root, "\"End-LSN\": \"0/", "\"End-LSN\": \"F/");
                }
                forge(root, from, to);
            };
            backup.check(forge, &[], &[expected]);
        }
    }
}

#[test]
fn gaps_and_damage_in_the_log_are_found_by_segment() {
    for backup in backups() {
        let own = Backup::segments(&backup.root.join("pg_wal"));
        let first = own.first().expect("a segment").clone();
        let segment = |root: &Path| root.join("pg_wal").join(&first);
        let cut = |root: &Path| {
            let file = fs::File::options().write(true).open(segment(root)).expect("opened");
            file.set_len(SEGMENT - 8192).expect("cut");
        };
        let length = format!("the file has {} bytes, expected {SEGMENT}", SEGMENT - 8192);
        backup.check(cut, &[], &[&first, &length]);
        let remove = |root: &Path| fs::remove_file(segment(root)).expect("removed");
        backup.check(remove, &[], &["pg_wal: the log cannot be replayed: ", "Pages:"]);
        // The record at the start, which is somewhere in the first segment if sessions were fast.
        let label = fs::read_to_string(backup.root.join("backup_label")).expect("read");
        let start = label.split(['/', ' ']).nth(4).expect("a position");
        let start = u64::from_str_radix(start, 16).expect("a number") % SEGMENT;
        backup.check(|root| flip(&segment(root), start), &[], &["pg_wal: the "]);
        let archive = backup.archive.clone();
        let later: Vec<String> =
            Backup::segments(&archive).into_iter().filter(|name| Some(name) > own.last()).collect();
        let [one, two, ..] = &later[..] else { panic!("too few segments: {later:?}") };
        let wal = archive.display().to_string();
        let (kept, gone) = (archive.join(one), archive.join("gone"));
        // It is in none of the folders.
        fs::rename(&kept, &gone).expect("renamed");
        let expected = format!("there is no segment {one}, which contains ");
        backup.check(|_| (), &["--wal", &wal], &[&expected, &format!("{two} behind it")]);
        fs::rename(&gone, &kept).expect("renamed");
        // A segment of another system.
        flip(&kept, 24);
        backup.check(|_| (), &["--wal", &wal], &[one, "page is of the system "]);
        flip(&kept, 24);
        // A record. Behind a switch, the rest of a segment is not log.
        flip(&kept, 18_000);
        backup.check(|_| (), &["--wal", &wal], &["pg_wal: the log ends at "]);
        flip(&kept, 18_000);
        assert_eq!(verify(&backup.root, &["--wal", &wal]).0, 0);
    }
}
