//! Directories whose signal file asks for the log of an archive, and timelines that don't fit the files.
//!
//! ```text
//!   timeline 1   ── cold copy ── "here" ─┬─ rows behind it      the archive, and what files contain
//!   timeline 2                           └─ other rows          a server that was recovered to "here"
//! ```

use std::fs;
use std::path::Path;

use crate::binary::run;
use crate::replay::{copy, fingerprint};
use crate::server::{Server, servers};

const SETTINGS: [(&str, &str); 3] =
    [("wal_level", "replica"), ("max_wal_senders", "1"), ("wal_keep_size", "1GB")];

const ROWS: &str = "copy rows to stdout";

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
        let at = |server: &Server, sql: &str| server.sql("postgres", sql);
        at(&server, "insert into rows values (1)");
        at(&server, "select pg_create_restore_point('here')");
        at(&server, "insert into rows values (2)");
        at(&server, "select pg_switch_wal()");
        let expected = at(&server, ROWS);
        server.halt("immediate");
        copy(&server.data(), &crashed);
        copy(&server.data().join("pg_wal"), &first);

        // A clean copy is not complete if a signal file asks for more log.
        let read = |data: &Path, wal: &Path| {
            let before = fingerprint(data);
            let wal = wal.display().to_string();
            let found = run(data, &["copy", "-d", "postgres", "rows", "--wal", &wal]);
            assert_eq!(fingerprint(data), before, "the directory has changed");
            found
        };
        let signal = |data: &Path, name: &str| fs::write(data.join(name), "").expect("written");
        signal(&cold, "recovery.signal");
        let (code, out, err) = read(&cold, &first);
        assert_eq!((code, out.as_bytes()), (0, &*expected), "{err}");

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

        // A primary that has gone on after the other one had left its timeline.
        signal(&crashed, "standby.signal");
        let (code, _, err) = read(&crashed, &second);
        assert_eq!(code, 3, "{err}");
        let diverged = "the files have changes of timeline 1 up to ";
        assert!(err.contains(diverged) && err.contains(" is on timeline 2"), "{err}");

        // A standby that has.
        let standby = Server::prepare(&bin);
        standby.copy_from(&cold);
        fs::remove_file(standby.data().join("recovery.signal")).expect("removed");
        signal(&standby.data(), "standby.signal");
        let mut standby = standby.configured(&recovery[..1]);
        while at(&standby, "select count(*) from rows") != b"2\n" {}
        // What was replayed is durable, and `minRecoveryPoint` says how far.
        standby.halt("fast");
        let (code, _, err) = read(&standby.data(), &second);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains(diverged) && err.contains(" is on timeline 2"), "{err}");
        let (code, out, err) = read(&standby.data(), &first);
        assert_eq!((code, &*out), (0, "1\n2\n"), "{err}");
    }
}
