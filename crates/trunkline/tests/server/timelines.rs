//! Directories whose signal file asks for the log of an archive, and timelines that don't fit the files.
//!
//! ```text
//!   timeline 1   ── cold copy ── "here" ─┬─ rows behind it      the archive, and what files contain
//!   timeline 2                           └─ other rows          a server that was recovered to "here"
//! ```

use std::fs;
use std::path::Path;

use crate::binary::run;
use crate::moments::back_up;
use crate::replay::{copy, fingerprint};
use crate::server::{Server, servers};
use crate::wal::segments;

const SETTINGS: [(&str, &str); 3] =
    [("wal_level", "replica"), ("max_wal_senders", "1"), ("wal_keep_size", "1GB")];

const ROWS: &str = "copy rows to stdout";

/// The rows, if the log is also taken from an archive.
fn read(data: &Path, wal: &Path) -> (i32, String, String) {
    let before = fingerprint(data);
    let wal = format!("--wal={}", wal.display());
    let found = run(data, &["copy", "-d", "postgres", "rows", &wal]);
    assert_eq!(fingerprint(data), before, "the directory has changed");
    found
}

/// What is wrong with the newest segment of a crashed directory is not taken for the end of the log.
fn the_newest_segment_must_fit(data: &Path, name: &str) {
    let last = &data.join("pg_wal").join(name);
    let bytes = fs::read(last).expect("read");
    let refused = |parts: &[&str]| {
        let (code, _, err) = run(data, &["copy", "-d", "postgres", "rows"]);
        assert_eq!(code, 3, "{err}");
        assert!(parts.iter().all(|part| err.contains(part)), "{parts:?}: {err}");
        let (code, _, err) = run(data, &["copy", "-d", "postgres", "rows", "--allow-incomplete"]);
        assert_eq!(code, 0, "{err}");
    };
    // The system identifier.
    fs::write(last, [&bytes[..24], &[7; 8], &bytes[32..]].concat()).expect("written");
    refused(&[name, "page is of the system 506381209866536711"]);
    // It is missing, but the one behind it is there: an old one, kept for later.
    let number = u64::from_str_radix(&name[16..], 16).expect("a number") + 1;
    let behind = last.with_file_name(format!("{}{number:08X}", &name[..16]));
    fs::copy(&segments(data)[0], behind).expect("copied");
    fs::remove_file(last).expect("removed");
    refused(&[&format!("there is no segment {name}"), " behind it"]);
    // A segment of an archive that can't be decompressed.
    fs::write(last.with_file_name(format!("{name}.gz")), &bytes[..9]).expect("written");
    refused(&[name, "can't be decompressed"]);
    fs::remove_file(last.with_file_name(format!("{name}.gz"))).expect("removed");
    fs::write(last, bytes).expect("written");
}

/// The history of timeline 2 was archived, but none of its segments, and timeline 1 goes on behind the switch.
fn a_segment_of_an_abandoned_timeline_is_refused(backup: &Path, archive: &Path, other: &Path) {
    copy(archive, other);
    for entry in fs::read_dir(other).expect("read").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("00000002") && name != "00000002.history" {
            fs::remove_file(entry.path()).expect("removed");
        }
    }
    let (code, _, err) = read(backup, other);
    assert_eq!(code, 3, "{err}");
    let abandoned =
        "was written on timeline 1, but according to the history this place is on timeline 2";
    assert!(err.contains(abandoned) && err.contains("in segment 00000001"), "{err}");
}

#[test]
fn a_signal_file_asks_for_an_archive_whose_timeline_must_fit() {
    for bin in servers() {
        let mut server = Server::start(&bin, &SETTINGS);
        let home = server.home().to_owned();
        let [cold, crashed, first, second] =
            ["cold", "crashed", "first", "second"].map(|name| home.join(name));
        server.sql("postgres", "create table rows (i int)");
        server.halt("fast");
        copy(&server.data(), &cold);
        server.run();
        let backup = home.join("backup");
        back_up(&server, &backup);
        let at = |server: &Server, sql: &str| server.sql("postgres", sql);
        at(&server, "insert into rows values (1)");
        at(&server, "select pg_create_restore_point('here')");
        at(&server, "insert into rows values (2)");
        let late = home.join("late");
        back_up(&server, &late);
        at(&server, "select pg_switch_wal()");
        at(&server, "insert into rows values (4)");
        let of_first = at(&server, ROWS);
        let newest = at(&server, "select pg_walfile_name(pg_current_wal_insert_lsn())");
        let newest = String::from_utf8(newest).expect("a name");
        server.halt("immediate");
        copy(&server.data(), &crashed);
        copy(&server.data().join("pg_wal"), &first);

        the_newest_segment_must_fit(&crashed, newest.trim());
        // A clean copy is not complete if a signal file asks for more log.
        let signal = |data: &Path, name: &str| fs::write(data.join(name), "").expect("written");
        signal(&cold, "recovery.signal");
        let (code, out, err) = read(&cold, &first);
        assert_eq!((code, out.as_bytes()), (0, &*of_first), "{err}");

        // The other timeline.
        let restore = format!("cp {}/%f %p", first.display());
        let recovery = [("restore_command", restore.as_str()), ("recovery_target_name", "here")];
        let promoted = [&recovery[..], &[("recovery_target_action", "promote")]].concat();
        let other = Server::prepare(&bin);
        other.copy_from(&cold);
        let other = other.configured(&promoted);
        while at(&other, "select pg_is_in_recovery()") != b"f\n" {}
        at(&other, "insert into rows values (3)");
        let expected = at(&other, ROWS);
        let stopped = other.stop();
        copy(&stopped.data().join("pg_wal"), &second);
        let (code, out, err) = read(&cold, &second);
        assert_eq!((code, out.as_bytes()), (0, &*expected), "{err}");

        // A backup with an archive needs no signal file for that.
        for segment in fs::read_dir(&first).expect("read").map(|entry| entry.expect("an entry")) {
            let copy = second.join(segment.file_name());
            if segment.path().is_file() && !copy.exists() {
                fs::copy(segment.path(), copy).expect("copied");
            }
        }
        let (code, out, err) = read(&backup, &second);
        assert_eq!((code, out.as_bytes()), (0, &*expected), "{err}");
        assert!(err.contains("; timeline 2 was followed"), "{err}");
        // But not if the timeline was begun before.
        let (code, out, err) = read(&late, &second);
        assert_eq!((code, out.as_bytes()), (0, &*of_first), "{err}");

        a_segment_of_an_abandoned_timeline_is_refused(&backup, &second, &home.join("third"));

        // A server that was promoted, but has not made a checkpoint since. Its log has records of the timeline that it has
        // left, behind the switch.
        let paused = Server::prepare(&bin);
        paused.copy_from(&cold);
        let mut paused = paused.configured(&recovery);
        at(&paused, "select pg_promote()");
        at(&paused, "insert into rows values (6)");
        let expected = at(&paused, ROWS);
        paused.halt("immediate");
        let (code, out, err) = read(&paused.data(), &first);
        assert_eq!((code, out.as_bytes()), (0, &*expected), "{err}");

        // A primary that has gone on after the other one had left its timeline.
        signal(&crashed, "standby.signal");
        let (code, _, err) = read(&crashed, &second);
        assert_eq!(code, 3, "{err}");
        let diverged = "the files contain changes of timeline 1 up to ";
        assert!(err.contains(diverged) && err.contains(" on timeline 2"), "{err}");

        // A standby that has.
        let standby = Server::prepare(&bin);
        standby.copy_from(&cold);
        fs::remove_file(standby.data().join("recovery.signal")).expect("removed");
        signal(&standby.data(), "standby.signal");
        let mut standby = standby.configured(&recovery[..1]);
        while at(&standby, "select count(*) from rows") != b"3\n" {}
        // What was replayed is durable, and `minRecoveryPoint` says how far.
        standby.halt("fast");
        let (code, _, err) = read(&standby.data(), &second);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains(diverged) && err.contains(" on timeline 2"), "{err}");
        let (code, out, err) = read(&standby.data(), &first);
        assert_eq!((code, &*out), (0, "1\n2\n4\n"), "{err}");
    }
}
